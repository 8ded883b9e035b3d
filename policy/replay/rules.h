// SPDX-License-Identifier: Apache-2.0
// A policy that decides while the program runs, as data: what it prefetches ahead, whom it evicts,
// what it pins. The driver itself and most published systems are one setting of these
// (policy/baselines/). Values only; any thread. Positions and lengths count launches.
#pragma once

#include <cstdint>
#include <vector>

namespace atp::policy {

struct Rules {
  // Launches ahead whose data is prefetched; 0 = by faults only.
  uint32_t prefetch_ahead = 0;
  // Launches ahead whose new data is placed without a fault; 0 = first touches fault.
  uint32_t populate_ahead = 0;
  // Density prefetch of the driver: a block comes as a whole after a few faults.
  bool density_prefetch = true;

  enum class Victim {
    kOldestArrival,  // the driver's own order: by migration, not by use
    kFurthestUse,    // Belady's order
  };
  Victim victim = Victim::kOldestArrival;
  // What the next so many launches touch is no victim of a prefetch.
  uint32_t keep_ahead = 0;

  // Per tensor, or empty. Protected: evicted only when nothing else is left. Remote: stays in host
  // memory and is read and written over the link.
  std::vector<bool> protected_tensors;
  std::vector<bool> remote;
};

}  // namespace atp::policy
