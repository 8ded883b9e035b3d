// SPDX-License-Identifier: Apache-2.0
// Who touches what when, in one period: the look-up tables that the replay model, the baselines and
// the throughput model share. Values only; safe to copy between threads.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "policy/trace.h"

namespace atp::policy {

// A launch of the endless run: period * launches per period + position.
using Instance = uint64_t;
inline constexpr Instance kNever = std::numeric_limits<Instance>::max();

struct Uses {
  explicit Uses(const Trace& trace);

  uint32_t launches = 0;
  std::vector<std::vector<uint32_t>> positions;  // per tensor: its launches, ascending
  std::vector<std::vector<uint32_t>> touched;    // per launch: distinct tensors
  // Per launch: tensors that hold nothing before it, or nothing after it. A local tensor lives more
  // than once in a period if a launch overwrites it without reading it, any tensor that is dropped.
  std::vector<std::vector<uint32_t>> born, dies;
  std::vector<std::vector<bool>> dead_after;  // per tensor, as `positions`
  std::vector<bool> global;                   // per tensor
  std::vector<bool> written;                  // per tensor: by any launch of the period

  // The first use after `instance` of what the tensor holds then; kNever if that is dead.
  Instance NextUse(uint32_t tensor, Instance instance) const;

 private:
  void FindLives(const Trace& trace, uint32_t tensor);
};

// Most bytes live at a launch if nothing ever leaves: the footprint.
Bytes PeakLiveBytes(const Trace& trace);
// Bytes of the launch that needs most at once: no smaller memory can run the trace.
Bytes LargestLaunchBytes(const Trace& trace);

}  // namespace atp::policy
