// SPDX-License-Identifier: Apache-2.0
// A plan in which nothing moves: what does not fit stays in host memory for good, and launches read
// and write it over the link (unified memory advised to stay on the host and be mapped by the
// device). It wins where memory holds little more than one launch: a move needs room before its
// launch, a mapped access needs none, and what is born there never has to leave. Called by MakePlan
// only. Pure; one thread.
//
// Time of a launch: its own seconds + max(bytes read / h2d rate, bytes written / d2h rate) over the
// link, nothing overlapped (the strict rule of SUV's replay, MICRO'24). The choice is a knapsack
// over the launches of each tensor's life, filled greedily.
#pragma once

#include "policy/planner.h"
#include "policy/trace.h"

namespace atp::policy {

// The best of a few greedy choices. Infeasible where even the link's rates are unknown or what must
// not be mapped (`options.never_advised`) does not fit. O((tensors + touches) log launches).
Plan MappedPlan(const Trace& trace, Bytes memory, const PlanOptions& options);

}  // namespace atp::policy
