// SPDX-License-Identifier: Apache-2.0
// Every policy that `atp replay` can compare, by name: our planner and models of what others do.
// Each is one file that turns a trace into a plan, or into rules that decide while the program
// runs; all are then replayed on the same modelled machine (policy/replay). They are models after
// the published descriptions, not the systems themselves: no figure of theirs may be quoted from
// here as that system's own. Pure; any thread.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <variant>

#include "policy/planner.h"
#include "policy/replay/replay.h"
#include "policy/trace.h"

namespace atp::policy {

struct Policy {
  std::variant<Plan, Rules> how{};
  bool unlimited = false;  // replayed with as much memory as it likes
  std::optional<Trace>
      trace{};  // replayed instead of the given one: launches added by recomputation
};

struct Baseline {
  std::string_view name;
  std::string_view summary;
  bool recomputes;  // modelled, not executed
  Policy (*make)(const Trace& trace, const PlanOptions& options);
};

std::span<const Baseline> Baselines();
// Null when there is none of that name.
const Baseline* FindBaseline(std::string_view name);

ReplayResult Replay(const Trace& trace, const Policy& policy, const ReplayOptions& options);

// One per file of the same name, but for two second ones in atp.cc and planned_recompute.cc.
Policy MakePlanned(const Trace& trace, const PlanOptions& options);
Policy MakePlannedRecompute(const Trace& trace, const PlanOptions& options);
Policy MakePlannedElementwise(const Trace& trace, const PlanOptions& options);
Policy MakeStock(const Trace& trace, const PlanOptions& options);
Policy MakeStockNoPrefetch(const Trace& trace, const PlanOptions& options);
Policy MakeDeepUm(const Trace& trace, const PlanOptions& options);
Policy MakeBelady(const Trace& trace, const PlanOptions& options);
Policy MakeG10(const Trace& trace, const PlanOptions& options);
Policy MakeVTensor(const Trace& trace, const PlanOptions& options);
Policy MakeVTensorWhole(const Trace& trace, const PlanOptions& options);
Policy MakeAtp(const Trace& trace, const PlanOptions& options);
Policy MakeAtpRule(const Trace& trace, const PlanOptions& options);
Policy MakeStaticPin(const Trace& trace, const PlanOptions& options);
Policy MakeProtect(const Trace& trace, const PlanOptions& options);
Policy MakeIdeal(const Trace& trace, const PlanOptions& options);

}  // namespace atp::policy
