// SPDX-License-Identifier: Apache-2.0
// Our planner on the trace in which some data is computed again instead of moved
// (policy/recompute_plan.h): by any launch, as ATP does, or by those only whose kind is known to be
// element-wise.
#include "policy/baselines/baseline.h"
#include "policy/model/elementwise.h"
#include "policy/recompute_plan.h"

namespace atp::policy {
namespace {

Policy Make(const Trace& trace, const PlanOptions& options, const RecomputeOptions& recompute) {
  RecomputePlan best = BestRecompute(trace, options, recompute);
  return {.how = std::move(best.plan), .trace = std::move(best.made.trace)};
}

}  // namespace

Policy MakePlannedRecompute(const Trace& trace, const PlanOptions& options) {
  return Make(trace, options, {});
}

Policy MakePlannedElementwise(const Trace& trace, const PlanOptions& options) {
  RecomputeOptions recompute;
  recompute.may_run_again = Elementwise(trace);
  return Make(trace, options, recompute);
}

}  // namespace atp::policy
