// SPDX-License-Identifier: Apache-2.0
#include "policy/actions.h"

#include <algorithm>
#include <utility>

namespace atp::policy {
namespace {

using Kind = Action::Kind;

struct Use {
  uint32_t launch;
  bool reads, writes, restores;
};

// Per tensor, ascending.
std::vector<std::vector<Use>> FindUses(const Trace& trace) {
  std::vector<std::vector<Use>> uses(trace.tensors.size());
  for (uint32_t k = 0; k < trace.launches.size(); ++k) {
    for (bool writes : {false, true}) {
      const Launch& launch = trace.launches[k];
      for (uint32_t t : writes ? launch.writes : launch.reads) {
        if (t >= uses.size()) continue;
        if (uses[t].empty() || uses[t].back().launch != k)
          uses[t].push_back({k, false, false, false});
        (writes ? uses[t].back().writes : uses[t].back().reads) = true;
      }
    }
    for (uint32_t t : trace.launches[k].restores) {
      if (t < uses.size() && !uses[t].empty()) uses[t].back().restores = true;
    }
  }
  return uses;
}

Action Whole(const Trace& trace, Kind kind, uint32_t tensor) {
  Action action;
  action.kind = kind;
  action.tensor = tensor;
  action.bytes = trace.tensors[tensor].bytes;
  return action;
}

// A local tensor is dead after its last use, and before a use that overwrites it without reading;
// any tensor before a use that restores it.
void AddDiscards(const Trace& trace, const Plan& plan, uint32_t t, const std::vector<Use>& uses,
                 std::vector<Action>* actions) {
  for (size_t i = 0; i < uses.size(); ++i) {
    const bool last = i + 1 == uses.size(), global = trace.tensors[t].global;
    const bool overwritten = !last && uses[i + 1].writes && !uses[i + 1].reads;
    const bool dead = global ? !last && uses[i + 1].restores : last || overwritten;
    if (!dead) continue;
    Action action = Whole(trace, Kind::kDiscard, t);
    action.launch = uses[i].launch;
    action.start = plan.launch_end[action.launch];
    // Before it is written again, in the next period at the latest.
    action.deadline = last ? plan.period_seconds + plan.launch_start[uses.front().launch]
                           : plan.launch_start[uses[i + 1].launch];
    actions->push_back(action);
  }
}

// The ranges of the tensor that no move names.
void AddTouches(const Trace& trace, const Plan& plan, uint32_t t, uint32_t first,
                std::vector<std::pair<Bytes, Bytes>> moved, std::vector<Action>* actions) {
  std::sort(moved.begin(), moved.end());
  moved.push_back({trace.tensors[t].bytes, trace.tensors[t].bytes});
  Bytes from = 0;
  for (const auto& [begin, end] : moved) {
    if (begin > from) {
      Action action = Whole(trace, Kind::kTouch, t);
      action.offset = from, action.bytes = begin - from;
      action.launch = first;
      action.start = action.deadline = plan.launch_start[first];
      actions->push_back(action);
    }
    from = std::max(from, end);
  }
}

Action FromMove(const Plan& plan, const Move& move) {
  const bool evicts = move.kind == Move::Kind::kEvict;
  Action action;
  action.kind = evicts ? Kind::kEvict : Kind::kPrefetch;
  action.tensor = move.tensor;
  action.offset = move.offset, action.bytes = move.bytes;
  action.launch = evicts ? move.after : move.before;
  action.copies = move.copies;
  action.start = move.start, action.deadline = move.end;
  if (!evicts) {
    constexpr double kTick = 5e-9;  // seconds; times closer than this are the same time
    const double use = plan.launch_start[move.before];
    action.deadline = use + kTick >= move.end ? use : use + plan.period_seconds;
  }
  return action;
}

}  // namespace

std::vector<Action> ToActions(const Trace& trace, const Plan& plan) {
  std::vector<Action> advice, actions;
  for (uint32_t t : plan.advised) advice.push_back(Whole(trace, Kind::kAdviseReadMostly, t));
  for (uint32_t t : plan.mapped) advice.push_back(Whole(trace, Kind::kAdviseHost, t));
  std::vector<std::vector<std::pair<Bytes, Bytes>>> moved(trace.tensors.size());
  for (const auto* moves : {&plan.evictions, &plan.fetches}) {
    for (const Move& move : *moves) {
      actions.push_back(FromMove(plan, move));
      moved[move.tensor].push_back({move.offset, move.offset + move.bytes});
    }
  }
  const bool anything = !actions.empty();
  const auto uses = FindUses(trace);
  for (uint32_t t = 0; t < uses.size(); ++t) {
    const bool mapped = std::binary_search(plan.mapped.begin(), plan.mapped.end(), t);
    if (uses[t].empty() || mapped) continue;
    AddDiscards(trace, plan, t, uses[t], &actions);
    const uint32_t first = uses[t].front().launch;
    if (anything) AddTouches(trace, plan, t, first, std::move(moved[t]), &actions);
  }
  std::stable_sort(actions.begin(), actions.end(),
                   [](const Action& a, const Action& b) { return a.start < b.start; });
  advice.insert(advice.end(), actions.begin(), actions.end());
  return advice;
}

}  // namespace atp::policy
