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
  // Bytes of each of life.intervals, the mean of a few periods; empty when some launch cannot run.
  std::vector<int64_t> amounts;
};

// `copied`: per interval, false leaves without the link.
ChaseResult ChaseUses(const Trace& trace, const Lifetimes& life, const LinkRates& rates,
                      const std::vector<bool>& copied, const CoverOptions& options);

}  // namespace atp::policy
