// SPDX-License-Identifier: Apache-2.0
// A whole run as the shim records it or the simulated machine knows it: allocations, launches and
// the byte ranges they touch. ToPeriod cuts one steady period out of it for planners and bounds.
// Values and pure functions; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "policy/trace.h"

namespace atp::policy {

struct RawTrace {
  enum class Access : uint8_t {
    kRead,
    kWrite,  // parts of the range
    kReadWrite,
    kOverwrite,  // all of the range, not read
  };
  static constexpr uint64_t kNever = ~uint64_t{0};

  struct Allocation {
    uint64_t id = 0;  // never reused
    Bytes bytes = 0;
    uint64_t at = 0;             // launches submitted before it
    uint64_t freed_at = kNever;  // the same for its end
    int device = 0;
    std::string kind;               // "managed", "native", ...
    std::string extra, free_extra;  // JSON objects of keys that mean nothing here; empty = none
  };
  struct Touch {
    uint32_t allocation = 0;  // index into allocations
    Bytes offset = 0, bytes = 0;
    Access access = Access::kReadWrite;
  };
  struct Launch {
    std::string name;
    uint64_t signature = 0;
    double seconds = 0;
    int stream = 0, device = 0;
    std::vector<Touch> touches;
    std::string extra;
  };
  struct Mark {
    std::string text;
    uint64_t at = 0;
    std::string extra;
  };

  std::string name, source;
  Bytes device_bytes = 0, host_bytes = 0;
  LinkRates link;
  std::vector<Allocation> allocations;
  std::vector<Launch> launches;
  std::vector<Mark> marks;
  std::string extra;
};

struct LaunchRange {
  uint64_t begin = 0, end = 0;  // [begin, end)
};

// The last whole period of the phase in which the run spends most of its time: an ending that
// repeats something short, such as the copies of all results, is not what the run is about. None
// when the run does not repeat.
std::optional<LaunchRange> FindMainPeriod(const RawTrace& raw);

struct ToPeriodOptions {
  int device = -1;  // only launches and allocations of this device; -1 = all
  // A write that may leave parts of its range as they were keeps them alive: it counts as a read
  // too. Without this the trace is what no policy could beat.
  bool partial_writes_read = true;
};

// Cuts each allocation at every boundary of a touch in the range, joins neighbours that are always
// touched together, and makes a tensor of each piece ("id+offset"). Global is what lives from
// before the range until after it. O(touches * log + pieces touched).
Trace ToPeriod(const RawTrace& raw, LaunchRange range, const ToPeriodOptions& options = {});

}  // namespace atp::policy
