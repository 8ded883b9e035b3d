// SPDX-License-Identifier: Apache-2.0
// Which bytes of each inactive interval leave when furthest next use (Belady) is played in time:
// what is needed soonest comes while there is room, and what is needed latest makes room for it.
// Other than cover.h it sees what the link can do between two launches. Called by MakePlan only.
// Pure; one thread.
#pragma once

#include <cstdint>
#include <vector>

#include "policy/cover.h"
#include "policy/layout.h"
#include "policy/lifetimes.h"
#include "policy/trace.h"

namespace atp::policy {

struct ChaseResult {
  bool repeats = false;  // the play itself repeats: `layout` is a plan
  Layout layout;
  // For each period played freely, less the first three: bytes of each of life.intervals that left
  // in it.
  std::vector<std::vector<int64_t>> left;
};

// Plays `options.periods` and three more freely, then some that are held to the times of the one
// before. `copied`: per interval, false leaves without the link.
ChaseResult ChaseUses(const Trace& trace, const Lifetimes& life, const LinkRates& rates,
                      const std::vector<bool>& copied, const CoverOptions& options);

}  // namespace atp::policy
