// SPDX-License-Identifier: Apache-2.0
// Something learned, for tests.
#pragma once

#include "protocol/learned.h"

namespace atp::protocol {

// `scale`: of the sizes; `seed`: another program.
inline Learned SampleLearned(uint64_t scale = 1, uint64_t seed = 0) {
  Learned learned;
  learned.fingerprint = {"Tiny", 64u << 20, 60u << 20, {10 + seed, 20 + seed, 30 + seed}, {}};
  for (uint64_t i = 1; i <= 4; ++i) learned.fingerprint.allocations.push_back(scale * i << 21);
  learned.command = "train --seed " + std::to_string(seed);
  learned.h2d = learned.d2h = 12e9;
  LearnedPhase phase;
  for (uint32_t slot = 0; slot < 4; ++slot)
    phase.tensors.push_back({scale * (slot + 1) << 21, 0, scale * (slot + 1) << 21, slot});
  for (uint32_t i = 0; i < 6; ++i) {
    phase.launches.push_back({100 + i + seed, 7, 1e-3 * (i + 1), {i % 4}, {(i + 1) % 4}});
  }
  phase.before = {0, 0, 5, 6};
  phase.capacity_bytes = 60u << 20;
  phase.best_seconds = 0.021;
  phase.periods = 7;
  learned.phases.push_back(phase);
  return learned;
}

}  // namespace atp::protocol
