// SPDX-License-Identifier: Apache-2.0
// Our planner on the trace in which some data is computed again instead of moved
// (policy/recompute_plan.h).
#include "policy/baselines/baseline.h"
#include "policy/recompute_plan.h"

namespace atp::policy {

Policy MakePlannedRecompute(const Trace& trace, const PlanOptions& options) {
  RecomputePlan best = BestRecompute(trace, options);
  return {.how = std::move(best.plan), .trace = std::move(best.made.trace)};
}

}  // namespace atp::policy
