// SPDX-License-Identifier: Apache-2.0
// Touches of launches that have run, for launches that are bound to touch the same.
//
// One memo per kernel. A launch is the same when its geometry, the parameters that its touches
// depend on (touch_slice.h) and the allocations that it touched are. The memo answers with the
// touches and counts of the first run; whether the launch is executed all the same (its result is
// the program's business) is for Module::Execute to decide. Under the driver's lock.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "sim/exec/exec.h"
#include "sim/exec/touch_slice.h"

namespace atp::sim::exec {

class TouchMemo {
 public:
  TouchMemo() = default;
  explicit TouchMemo(TouchSlice slice) : slice_(std::move(slice)) {}

  bool Applies() const { return !slice_.depends_on_data; }
  const TouchSlice& slice() const { return slice_; }
  std::string Key(const LaunchConfig& config, std::span<const uint8_t> params) const;

  // Fills in touches and counts of an earlier run with this key; false when there was none, or an
  // allocation that it touched is not there any more.
  bool Recall(const std::string& key, const MemoryMap& memory, ExecResult* result) const;
  void Remember(const std::string& key, std::vector<Region> regions, const ExecResult& result);

 private:
  struct Run {  // pages that follow each other and were touched alike
    uint64_t first = 0;
    uint32_t count = 0;
    uint8_t flags = 0;
  };
  struct Entry {
    std::vector<Region> regions;
    std::vector<Run> runs;
    std::vector<uint32_t> wave_ends;                // in runs
    std::vector<std::vector<uint32_t>> block_ends;  // of each wave
    uint64_t warp_instructions = 0, lane_instructions = 0, sector_bytes = 0;
    uint64_t bytes = 0;  // of this entry
  };

  TouchSlice slice_;
  std::map<std::string, Entry> entries_;
  uint64_t bytes_ = 0;
};

}  // namespace atp::sim::exec
