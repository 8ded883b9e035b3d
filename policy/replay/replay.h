// SPDX-License-Identifier: Apache-2.0
// The replay model: runs a trace under a plan, or under rules that decide while it runs, on a
// modelled machine, event by event and block by block. It is modelled, not executed: no kernel
// runs. It is written apart from sim/, so that each checks the other. docs/policy.md, "Replay
// model", has the formulas. Pure: no I/O, no threads, no globals; the same input gives the same
// result.
#pragma once

#include "policy/planner.h"
#include "policy/replay/options.h"
#include "policy/replay/result.h"
#include "policy/replay/rules.h"
#include "policy/trace.h"

namespace atp::policy {

// The plan may come from another trace with the same tensors and launches, such as a wrong
// prediction.
ReplayResult ReplayPlan(const Trace& trace, const Plan& plan, const ReplayOptions& options);
ReplayResult ReplayRules(const Trace& trace, const Rules& rules, const ReplayOptions& options);

}  // namespace atp::policy
