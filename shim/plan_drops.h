// SPDX-License-Identifier: Apache-2.0
// A plan in which some of what launches write is dropped instead of being moved, and the launches
// run again before the next use (ATP_RECOMPUTE=1). Pure; any thread.
//
// A drop destroys data, so nothing in it is a guess. Between the launch that made the data and the
// one that needs it again every launch is proven (repeatable.h): what it touches is known to the
// byte, and so is that none of them needs what was dropped, or changes what it is made of. That is
// asked of whole allocations, whatever part of them a plan takes a launch to touch.
#pragma once

#include <cstdint>
#include <unordered_set>
#include <vector>

#include "policy/planner.h"
#include "policy/recompute.h"
#include "shim/repeatable.h"
#include "shim/schedule.h"

namespace atp::shim {

struct DropPlan {
  policy::Plan plan;
  policy::Folded folded;  // no drops: nothing that may be dropped would make the period faster
  double rerun_seconds = 0;
};

// As GainOf (recompute_gain.h). `passed`: keys of the launches that have given the same bits
// (shadow.h). `period`: as seen, before reaches are found.
DropPlan PlanDrops(const policy::Trace& trace, const policy::PlanOptions& options,
                   const policy::Plan& plain, const Recorder::Period& period,
                   const std::vector<Placed>& placed, const Repeatable& repeatable,
                   const std::unordered_set<uint64_t>& passed);

}  // namespace atp::shim
