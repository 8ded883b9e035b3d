// SPDX-License-Identifier: Apache-2.0
// What a period would gain if what its repeatable launches write were dropped, and the launches run
// again, where the planner finds that this pays (policy/recompute_plan.h). Pure; any thread.
#pragma once

#include <cstdint>
#include <vector>

#include "policy/planner.h"
#include "shim/repeatable.h"
#include "shim/schedule.h"

namespace atp::shim {

struct RecomputeGain {
  double plain_seconds = 0, seconds = 0;  // of a period: as planned, and with recomputation
  double rerun_seconds = 0;               // of running again, in it
  uint64_t dropped_bytes = 0;
  uint64_t droppable = 0;  // launches that write whole tensors of the plan, and those alone
  std::vector<uint32_t> producers;  // positions of those that would run again, ascending
};

// Per launch: it writes whole tensors of the plan, and nothing else.
std::vector<bool> Droppable(const policy::Trace& trace, const Recorder::Period& period,
                            const std::vector<Placed>& placed, const Repeatable& repeatable);
// `trace`: of the period, with measured durations; its tensor i lies at placed[i]. `options`: as
// for `plain`, the plan that runs.
RecomputeGain GainOf(const policy::Trace& trace, const policy::PlanOptions& options,
                     const policy::Plan& plain, const Recorder::Period& period,
                     const std::vector<Placed>& placed, const Repeatable& repeatable);
void LogGain(const RecomputeGain& gain);  // one line for ATP_LOG=info

}  // namespace atp::shim
