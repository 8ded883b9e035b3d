// SPDX-License-Identifier: Apache-2.0
// What the planners after others share: a plan from a list of what goes out, on the clock of the
// launches alone (none of them plans its stalls). Pure; any thread.
#pragma once

#include <vector>

#include "policy/planner.h"
#include "policy/trace.h"

namespace atp::policy {

// A part of a tensor that is out between two uses.
struct Outing {
  uint32_t tensor = 0;
  Bytes offset = 0, bytes = 0;
  uint32_t after = 0, before = 0;  // positions; `before` <= `after`: it wraps around the period
  uint32_t lead = 1;               // launches before its use from which it comes back
};

// A plan without moves: the launches one after another.
Plan LaunchesOnly(const Trace& trace);
// Each part leaves as soon as it may and comes back from its lead before its use.
Plan PlanFromOutings(const Trace& trace, const std::vector<Outing>& outings);
// Sorts both lists by start, as a Plan promises, and sums what moves.
void FinishPlan(Plan* plan);

}  // namespace atp::policy
