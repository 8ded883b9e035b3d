// SPDX-License-Identifier: Apache-2.0
#include "policy/replay/replay.h"

#include "policy/replay/plan_executor.h"
#include "policy/replay/rules_executor.h"

namespace atp::policy {
namespace {

// Why the trace cannot be replayed at all; empty = it can.
std::string Refusal(const Trace& trace, const ReplayOptions& options) {
  if (trace.launches.empty()) return "the trace has no launches";
  if (trace.link.h2d <= 0 || trace.link.d2h <= 0) return "the trace names no link rates";
  if (options.block == 0) return "the block size is zero";
  return "";
}

}  // namespace

ReplayResult ReplayPlan(const Trace& trace, const Plan& plan, const ReplayOptions& options) {
  ReplayResult refused;
  refused.why = Refusal(trace, options);
  if (refused.why.empty() && plan.launch_start.size() != trace.launches.size()) {
    refused.why = "the plan was made for another number of launches";
  }
  if (!refused.why.empty()) return refused;
  const Uses uses(trace);
  return PlanExecutor(trace, uses, options, plan).Run();
}

ReplayResult ReplayRules(const Trace& trace, const Rules& rules, const ReplayOptions& options) {
  ReplayResult refused;
  refused.why = Refusal(trace, options);
  if (!refused.why.empty()) return refused;
  const Uses uses(trace);
  return RulesExecutor(trace, uses, options, rules).Run();
}

}  // namespace atp::policy
