// SPDX-License-Identifier: Apache-2.0
#include "shim/plan_drops.h"

#include <algorithm>

#include "policy/recompute_plan.h"
#include "shim/recompute_gain.h"

namespace atp::shim {
namespace {

using Folding = policy::Folded::Drop;

// Calls body(allocation, touch) for what a launch was given a pointer into, or a range of.
template <typename Body>
void ForEachTouch(const Recorder::Period& period, uint32_t launch, Body body) {
  const policy::SeenLaunch& seen = period.seen.launches[launch];
  for (uint32_t t = seen.first_touch; t < seen.first_touch + seen.touch_count; ++t) {
    const policy::SeenTouch& touch = period.seen.touches[t];
    body(period.allocations[touch.allocation], touch);
  }
}

bool Touches(const Recorder::Period& period, uint32_t launch, const Allocation* wanted,
             bool writing) {
  bool found = false;
  ForEachTouch(period, launch, [&](const Allocation* allocation, const policy::SeenTouch& touch) {
    found |= allocation == wanted && (touch.writes || !writing);
  });
  return found;
}

// The range is an allocation of the program, whole.
bool IsOneAllocation(const Placed& tensor, const Recorder::Period& period) {
  for (size_t a = 0; a < period.allocations.size(); ++a) {
    if (period.allocations[a] != tensor.allocation) continue;
    return tensor.offset == 0 && tensor.bytes == period.mapped[a];
  }
  return false;
}

// Of what the plan takes for granted nothing hangs on a guess.
bool IsCertain(const Folding& drop, const Recorder::Period& period,
               const std::vector<Placed>& placed, const Repeatable& repeatable) {
  const Allocation* dropped = placed[drop.tensor].allocation;
  const Again* producer = AgainAt(repeatable, drop.producer);
  const bool whole = producer != nullptr && producer->outputs.size() == 1 &&
                     producer->outputs[0].allocation == dropped &&
                     IsOneAllocation(placed[drop.tensor], period);
  if (!whole || drop.producer > drop.after || drop.after >= drop.before) return false;
  std::vector<const Allocation*> inputs;
  ForEachTouch(period, drop.producer, [&](const Allocation* allocation, const policy::SeenTouch&) {
    if (allocation != dropped) inputs.push_back(allocation);
  });
  for (uint32_t k = drop.producer + 1; k <= drop.before; ++k) {
    const Again* again = AgainAt(repeatable, k);
    if (again == nullptr || again->unwatched) return false;
    if (k == drop.before) break;  // that one runs behind the producer
    if (Touches(period, k, dropped, /*writing=*/k <= drop.after)) return false;
    for (const Allocation* input : inputs) {
      if (Touches(period, k, input, /*writing=*/true)) return false;
    }
  }
  return true;
}

// What `made` is made of is there again when it is: dropped itself, it comes back before, or with
// it.
bool InTime(const Folding& made, const std::vector<Folding>& drops, const Recorder::Period& period,
            const std::vector<Placed>& placed) {
  return std::none_of(drops.begin(), drops.end(), [&](const Folding& other) {
    const bool away = other.after < made.before && made.before < other.before;
    return away && Touches(period, made.producer, placed[other.tensor].allocation, false);
  });
}

}  // namespace

DropPlan PlanDrops(const policy::Trace& trace, const policy::PlanOptions& options,
                   const policy::Plan& plain, const Recorder::Period& period,
                   const std::vector<Placed>& placed, const Repeatable& repeatable,
                   const std::unordered_set<uint64_t>& passed) {
  constexpr double kWorthIt = 0.98;
  constexpr int kTries = 4;
  DropPlan none;
  policy::RecomputeOptions recompute;
  recompute.may_run_again = Droppable(trace, period, placed, repeatable);
  recompute.unsure.assign(trace.launches.size(), true);
  for (const Again& again : repeatable.again) {
    recompute.unsure[again.position] = again.unwatched;
    if (passed.count(again.key) == 0) recompute.may_run_again[again.position] = false;
  }
  for (int i = 0; i < kTries; ++i) {
    const policy::RecomputePlan best = policy::BestRecompute(trace, options, recompute);
    if (!best.plan.feasible || best.made.reruns.empty()) return none;
    DropPlan made{{}, policy::FoldReruns(best.made), best.made.seconds};
    bool certain = true;
    for (const Folding& drop : made.folded.drops) {
      if (IsCertain(drop, period, placed, repeatable) &&
          InTime(drop, made.folded.drops, period, placed)) {
        continue;
      }
      certain = recompute.may_run_again[drop.producer] = false;
    }
    if (!certain) continue;
    if (made.folded.drops.size() != best.made.reruns.size()) return none;
    made.plan = policy::MakePlan(made.folded.trace, options);
    const bool pays =
        made.plan.feasible && made.plan.period_seconds < kWorthIt * plain.period_seconds;
    return pays ? made : none;
  }
  return none;
}

}  // namespace atp::shim
