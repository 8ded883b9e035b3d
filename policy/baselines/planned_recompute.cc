// SPDX-License-Identifier: Apache-2.0
// Our planner on the trace in which some data is computed again instead of moved
// (policy/model/recompute.h).
#include "policy/baselines/baseline.h"
#include "policy/model/recompute.h"

namespace atp::policy {

Policy MakePlannedRecompute(const Trace& trace, const PlanOptions& options) {
  RecomputePlan best = BestRecompute(trace, options);
  return {.how = std::move(best.plan), .trace = std::move(best.trace)};
}

}  // namespace atp::policy
