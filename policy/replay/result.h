// SPDX-License-Identifier: Apache-2.0
// What a replay reports: figures of its last period. Values only.
#pragma once

#include <string>
#include <vector>

#include "policy/replay/machine.h"

namespace atp::policy {

struct ReplayResult {
  bool completed = false;  // false: `why` says which launch could not run
  std::string why;
  double period_seconds = 0, compute_seconds = 0, stall_seconds = 0;
  Bytes h2d = 0, d2h = 0;                // moved
  Bytes remote_h2d = 0, remote_d2h = 0;  // read and written over the link without moving
  Bytes peak = 0;                        // most bytes on the device at once
  uint64_t fault_blocks = 0;             // blocks that came or were born by a fault
  uint64_t fault_batches = 0;
  uint64_t forced_evictions = 0;  // blocks that left because a fault or a launch had no room
  std::vector<double> launch_start, launch_end;  // seconds from the start of the period
  // Only with ReplayOptions::timeline; seconds from the start of the period.
  std::vector<TransferRun> transfers;
  std::vector<ResidencySample> residency;
};

}  // namespace atp::policy
