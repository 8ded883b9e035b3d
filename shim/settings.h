// SPDX-License-Identifier: Apache-2.0
// What the user asks for through environment variables: one table (settings.cc: name, default,
// form, help), parsed strictly. A bad value gives one line on stderr that names variable, value and
// the accepted form, and the default holds. Unknown ATP_ variables are nobody's business: another
// vendor's tool uses the same prefix. Read once, at the first driver look-up or call; no heap.
// docs/settings.md lists the table.
#pragma once

#include <cstddef>
#include <cstdint>

namespace atp::shim {

enum class Policy : uint8_t { kLearned, kManaged, kOff };

// A number of bytes, or a part of something whose size is known later.
struct Size {
  bool given = false;
  bool percent = false;
  uint64_t value = 0;
  uint64_t Of(uint64_t whole) const {
    return percent ? whole / 100 * value + whole % 100 * value / 100 : value;
  }
};

inline constexpr int kMaxDevices = 64;

// One size for every device, or one for each: "16GiB", "80%", "0=16GiB,1=24GiB".
struct DeviceSizes {
  Size all;
  Size each[kMaxDevices];
  const Size& Of(int device) const {
    return device >= 0 && device < kMaxDevices && each[device].given ? each[device] : all;
  }
};

enum class ReportMemory : uint8_t { kPhysical, kVirtual, kSize };

// ATP_DISABLE: parts of the shim that can be switched off one by one, to find which one is to
// blame.
enum Disable : uint32_t {
  kDisablePopulate = 1u << 0,
  kDisablePrefetch = 1u << 1,
  kDisableEvict = 1u << 2,
  kDisableTouch = 1u << 3,
  kDisableDiscard = 1u << 4,
  kDisableReadMostly = 1u << 5,
  kDisableSlabs = 1u << 6,
  kDisableAsyncTwins = 1u << 7,
  kDisableDeepbind = 1u << 8,
  kDisableVmm = 1u << 9,
  kDisablePools = 1u << 10,
  kDisableGraphs = 1u << 11,
  kDisableDemand = 1u << 12,
  kDisableHeap = 1u << 13,
  kDisableReach = 1u << 14,
  kDisableSight = 1u << 15,
  kDisableMoreMovers = 1u << 16,
  kDisableNeighbours = 1u << 17,
};

// ATP_RECOMPUTE: which launches may run again is logged; and they do, into scratch memory; and what
// those write that pass is dropped instead of being moved.
enum class Recompute : uint8_t { kOff, kReport, kShadow, kOn };

struct Configuration {
  Policy policy = Policy::kLearned;
  DeviceSizes budget;
  Size host_budget;
  double weight = 1;  // on a shared card, against other jobs of the same priority
  int priority = 0;
  ReportMemory report_memory = ReportMemory::kPhysical;
  Size report_size;
  uint32_t disabled = 0;
  bool real_threads = false;  // movers on threads even where the simulated machine offers lanes
  char log_file[512] = "";
  char trace_file[512] = "";
  char report_file[512] = "";
  bool access_stats = false;
  char access_file[512] = "";  // empty: the log
  Recompute recompute = Recompute::kOff;
  bool no_ledger = false;        // ATP_LEDGER=off
  char ledger_file[512] = "";    // empty: the usual one (host_ledger.h)
  uint64_t wait_ms = 0;          // ATP_WAIT: for room on the card or in the host's memory
  bool no_record = false;        // ATP_RECORD=off
  char record_folder[512] = "";  // of the record file; empty = the first of the usual ones
  char native_sites[512] = "";   // beginnings of file names of libraries, separated by commas
  char exporters_file[512] = "";
  bool exporters_off = false;
  bool Disabled(Disable part) const { return (disabled & part) != 0; }
};

// Idempotent and thread-safe; the environment is read by the first call only. Sets the log level
// and opens the log file too.
void ReadSettings();
const Configuration& Settings();  // defaults before ReadSettings

// Parsers, for ReadSettings and its tests. False: malformed.
bool ParseSize(const char* text, Size* size);
bool ParseDeviceSizes(const char* text, DeviceSizes* sizes);
bool ParseDuration(const char* text, uint64_t* ms);  // 30s, 500ms, 2m; a number means seconds
bool ParseBool(const char* text, bool* value);       // 0 off false no "" / 1 on true yes
bool ParseDisable(const char* text, uint32_t* mask);
// Fills `settings` from `lookup` (getenv in life); reports each bad value.
void ParseSettings(const char* (*lookup)(const char*), Configuration* settings,
                   void (*bad_value)(const char* name, const char* value, const char* form));
// %p pid, %h host name, %r rank (of the launcher that started us, 0 without one), %% a percent
// sign. False when it does not fit.
bool ExpandFileName(const char* name, char* out, size_t size);

}  // namespace atp::shim
