// SPDX-License-Identifier: Apache-2.0
// Our own planner (policy/planner.h), beside the others.
#include "policy/baselines/baseline.h"

namespace atp::policy {

Policy MakePlanned(const Trace& trace, const PlanOptions& options) {
  return {.how = MakePlan(trace, options)};
}

}  // namespace atp::policy
