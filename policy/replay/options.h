// SPDX-License-Identifier: Apache-2.0
// What the replay model assumes about the machine and the program. Every default has its source
// beside it; docs/policy.md, "Replay model", says what follows from them. Values only; any thread.
#pragma once

#include <cstdint>

#include "policy/trace.h"

namespace atp::policy {

// Costs that are not link time. Zero all of them for the idealised machine that the bounds speak
// of.
struct DriverCosts {
  // Driver CPU for each block that a prefetch call moves, each direction; overlaps the copy of the
  // block before. "The driver's work per 2 MiB block": about 20 us by faults on RTX cards (ARIADNE,
  // HPCA'26), less by prefetch.
  double move_seconds = 5e-6;
  // A fault batch: fixed part, and the part for each block in it; a block's first touch costs more,
  // since its state is built (Allen & Ge, "Demystifying GPU UVM cost", SC'21). Evictions in a batch
  // are serial.
  double batch_seconds = 20e-6;
  double fault_seconds = 20e-6;
  double first_touch_seconds = 50e-6;
  double evict_seconds = 20e-6;
  // Entries in one batch (nvidia-uvm: 256), and how many faults a block takes: with the driver's
  // density prefetcher a few of its 16 big pages fault before the rest follows; without it each 4
  // KiB page does.
  uint32_t faults_per_batch = 256;
  uint32_t faults_per_block_with_prefetch = 32;
  uint32_t faults_per_block_without = 512;
};

// When a launch may run. Both rules are applied to every policy alike.
enum class LaunchRule {
  kResidentFirst,  // it starts when all that it touches is resident (the rule of bound_safe and the
                   // planner)
  kOverlapOwn,     // it starts at once and ends no sooner than its last byte arrives (the G10
                   // artifact's rule)
};

struct ReplayOptions {
  Bytes memory = 0;     // 0 = trace.device_bytes
  Bytes head_room = 0;  // the plan's runtime keeps it free by its own evictions
  Bytes block = 2u << 20;
  DriverCosts costs;
  LaunchRule rule = LaunchRule::kResidentFirst;
  bool clean_leaves_free =
      false;  // tensors that the period never writes leave without a copy (ReadMostly)
  // The last period is reported. Where it differs from the one before it, as with policies that do
  // not repeat themselves, more are run, and the mean of all but the first two is reported.
  uint32_t periods = 3;
  bool timeline = false;  // record residency and transfers of the last period
};

}  // namespace atp::policy
