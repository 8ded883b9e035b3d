// SPDX-License-Identifier: Apache-2.0
// Which data is dropped and made again beside the best plan for the rest. Pure; one thread.
//
// Only what widens the narrowest place of the period is taken (FindTurnPoint: the bytes that must
// cross the link there and have no time): data that waits across it, the most bytes for each second
// of running again first (ATP, ACM TACO 22(1), 2024), as long as running again is quicker than the
// move it spares. Then the narrowest place is another one. Outside of it recomputation is pure
// loss: what moves there is hidden already.
#pragma once

#include "policy/planner.h"
#include "policy/recompute.h"

namespace atp::policy {

struct RecomputePlan {
  Recomputed made;  // its trace is what `plan` is for, and bounds and replay of it; nothing is
                    // dropped where that gains nothing: then it is the trace as it was
  Plan plan;        // moves name launches of that trace; drops are in `made`
};

// Never slower than MakePlan with the same options. Confidence and advice are per tensor and hold
// on. Costs a few times as much (at most kRecomputePlans plans, and bounds that are quick beside
// them).
inline constexpr int kRecomputePlans = 4;
RecomputePlan BestRecompute(const Trace& trace, const PlanOptions& options,
                            const RecomputeOptions& recompute = {});

}  // namespace atp::policy
