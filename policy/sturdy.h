// SPDX-License-Identifier: Apache-2.0
// A plan from predictions that may be wrong: durations are off, some touches are missing, some are
// not true. Values only; pure; any thread.
//
// - Touches that cannot be true together are not believed: a launch that ran has not touched more
//   than there is room for. What is over is left to faults.
// - Room is kept free for what comes by surprise, as long as it costs little (room is data that the
//   plan has to move).
// - Of plans that are as fast, the one that leaves the link the most to spare
//   (PlanOptions::duration_spread).
// None of the three has a formula of somebody else's: what they are worth is measured by
// `atp replay --noise-seeds` (docs/policy.md, "Wrong predictions").
#pragma once

#include "policy/planner.h"
#include "policy/trace.h"

namespace atp::policy {

struct SturdyOptions {
  double duration_spread = 0.2;  // relative
  // Room that is kept free: between two blocks and this, as much as makes the plan slower by at
  // most `head_room_cost`, relative.
  Bytes most_head_room = Bytes{256} << 20;
  double head_room_cost = 0.01;
};

struct SturdyPlan {
  Plan plan;
  Bytes head_room = 0;  // that the plan leaves free
};

// `options.head_room` and `options.duration_spread` are not looked at. An infeasible plan as
// MakePlan's: `why` says what is in the way.
SturdyPlan MakeSturdyPlan(const Trace& predicted, const PlanOptions& options,
                          const SturdyOptions& sturdy);

// The trace without the touches that make a launch exceed `memory`: of its tensors the smallest
// that is enough, or the largest, and so on. Reads and writes of it alike.
Trace WithoutExcess(const Trace& trace, Bytes memory);

}  // namespace atp::policy
