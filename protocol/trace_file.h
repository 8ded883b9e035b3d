// SPDX-License-Identifier: Apache-2.0
// A trace as plain rows: what the binary form holds once read and checked. Used by the writer and
// the reader in this folder and by whoever converts (cli/). Values only.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace atp::protocol {

inline constexpr uint32_t kTraceVersion = 1;
inline constexpr uint32_t kNoString = 0xffffffffu;

// `extra` of a row: a string with a JSON object of keys that this version does not know.

enum Access : uint8_t { kReads = 1, kWrites = 2, kOverwrites = 4 };

struct TouchRow {
  uint64_t allocation = 0, offset = 0, bytes = 0;
  uint8_t access = 0;
};
struct LaunchRow {
  uint64_t signature = 0;
  double seconds = 0;
  uint32_t name = 0;  // index into TraceFile::strings
  int32_t stream = 0, device = 0;
  uint64_t first_touch = 0;  // into TraceFile::touches
  uint32_t touches = 0;
  uint32_t extra = kNoString;
};
struct AllocationRow {
  uint64_t id = 0, bytes = 0, at = 0;
  int32_t device = 0;
  uint32_t kind = 0;
  uint32_t extra = kNoString;
};
struct FreeRow {
  uint64_t id = 0, at = 0;
  uint32_t extra = kNoString;
};
struct MarkRow {
  uint64_t at = 0;
  uint32_t text = 0;
  uint32_t extra = kNoString;
};
struct TensorRow {
  uint64_t bytes = 0;
  uint32_t id = 0, kind = 0;
  bool global = true;
  uint32_t extra = kNoString;
};
struct StepRow {
  double seconds = 0;
  uint64_t workspace_bytes = 0;
  uint32_t name = 0;
  int32_t stream = 0;
  uint64_t first_use = 0;  // into TraceFile::uses: reads, then writes
  uint32_t reads = 0, writes = 0;
  uint32_t extra = kNoString;
};

struct TraceHeader {
  std::string name, source;
  uint64_t device_bytes = 0, host_bytes = 0;
  double h2d_bytes_per_s = 0, d2h_bytes_per_s = 0;
  double duplex_h2d_bytes_per_s = 0, duplex_d2h_bytes_per_s = 0;  // 0 = independent links
  std::string other;  // a JSON object with keys that this version does not know; may be empty
};

struct TraceFile {
  TraceHeader header;
  std::vector<std::string> strings;
  std::vector<AllocationRow> allocations;
  std::vector<FreeRow> frees;
  std::vector<LaunchRow> launches;
  std::vector<TouchRow> touches;
  std::vector<MarkRow> marks;
  std::vector<TensorRow> tensors;
  std::vector<StepRow> steps;
  std::vector<uint32_t> uses;
  bool truncated = false;  // the last chunk was cut off, and the reader was told to accept that

  bool HasTensorBody() const { return !tensors.empty() || !steps.empty(); }
};

}  // namespace atp::protocol
