// SPDX-License-Identifier: Apache-2.0
#include "policy/model/recompute.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "policy/lifetimes.h"
#include "policy/replay/uses.h"

namespace atp::policy {
namespace {

bool Contains(const std::vector<uint32_t>& list, uint32_t value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

// Whether the tensor holds at `later` what it held after launch `earlier`.
bool Holds(const Trace& trace, const Uses& uses, uint32_t tensor, uint32_t earlier,
           uint32_t later) {
  const auto& at = uses.positions[tensor];
  for (auto it = std::upper_bound(at.begin(), at.end(), earlier); it != at.end() && *it < later;
       ++it) {
    if (Contains(trace.launches[*it].writes, tensor)) return false;
  }
  if (uses.global[tensor]) return true;
  const auto after = std::lower_bound(at.begin(), at.end(), later);
  if (after == at.begin()) return false;
  return !uses.dead_after[tensor][after - at.begin() - 1];
}

std::optional<uint32_t> Producer(const Trace& trace, const Uses& uses,
                                 const InactiveInterval& interval) {
  const auto& at = uses.positions[interval.tensor];
  auto it = std::upper_bound(at.begin(), at.end(), interval.last_use);
  while (it != at.begin()) {
    const uint32_t k = *--it;
    if (!Contains(trace.launches[k].writes, interval.tensor)) continue;
    if (Contains(trace.launches[k].reads, interval.tensor))
      return std::nullopt;  // updated in place
    for (uint32_t input : trace.launches[k].reads) {
      if (Contains(trace.launches[k].writes, input)) return std::nullopt;
      if (!Holds(trace, uses, input, k, interval.next_use)) return std::nullopt;
    }
    return k;
  }
  return std::nullopt;
}

}  // namespace

std::vector<Recomputation> Recomputable(const Trace& trace) {
  const Uses uses(trace);
  std::vector<Recomputation> list;
  for (const InactiveInterval& interval : FindLifetimes(trace).intervals) {
    if (uses.global[interval.tensor] || interval.next_use >= uses.launches) continue;
    const auto producer = Producer(trace, uses, interval);
    if (!producer) continue;
    list.push_back({interval.tensor, interval.last_use, interval.next_use, *producer,
                    trace.launches[*producer].seconds, interval.bytes});
  }
  std::stable_sort(list.begin(), list.end(),
                   [](const auto& a, const auto& b) { return a.Efficiency() > b.Efficiency(); });
  return list;
}

// Whether `a` drops what `b` reads when it runs again.
bool RecomputeSet::Conflicts(const Recomputation& a, const Recomputation& b) const {
  const bool away = a.last_use < b.next_use && b.next_use <= a.next_use;
  return away && Contains(trace_.launches[b.producer].reads, a.tensor);
}

bool RecomputeSet::Add(const Recomputation& candidate) {
  for (const Recomputation& other : chosen_) {
    if (Conflicts(candidate, other) || Conflicts(other, candidate)) return false;
  }
  chosen_.push_back(candidate);
  return true;
}

Trace ApplyRecompute(const Trace& trace, const std::vector<Recomputation>& chosen,
                     std::vector<uint32_t>* new_position) {
  Trace result = trace;
  result.launches.clear();
  if (new_position != nullptr) new_position->clear();
  std::vector<std::vector<const Recomputation*>> before(trace.launches.size());
  for (const Recomputation& r : chosen) before[r.next_use].push_back(&r);
  // Which tensor of the result holds a tensor's data now: each life is a tensor of its own.
  std::vector<uint32_t> holder(trace.tensors.size());
  for (uint32_t t = 0; t < holder.size(); ++t) holder[t] = t;
  auto rename = [&](std::vector<uint32_t>* list) {
    for (uint32_t& t : *list) t = holder[t];
  };
  for (uint32_t k = 0; k < trace.launches.size(); ++k) {
    for (const Recomputation* r : before[k]) {
      const Launch& producer = trace.launches[r->producer];
      Launch again = producer;
      again.name = "recompute:" + producer.name;
      rename(&again.reads);
      for (uint32_t other : producer.writes) {  // its other results are thrown away
        if (other != r->tensor) again.workspace += trace.tensors[other].bytes;
      }
      Tensor copy = trace.tensors[r->tensor];
      copy.id.append("'").append(std::to_string(result.tensors.size()));
      holder[r->tensor] = static_cast<uint32_t>(result.tensors.size());
      again.writes = {holder[r->tensor]};
      result.tensors.push_back(std::move(copy));
      result.launches.push_back(std::move(again));
    }
    if (new_position != nullptr) new_position->push_back(uint32_t(result.launches.size()));
    Launch launch = trace.launches[k];
    rename(&launch.reads);
    rename(&launch.writes);
    result.launches.push_back(std::move(launch));
  }
  return result;
}

namespace {

// What can help at all: dropped across a launch that has too little memory, and cheaper than the
// link.
std::vector<Recomputation> Useful(const Trace& trace, Bytes memory) {
  const Lifetimes lifetimes = FindLifetimes(trace);
  std::vector<uint32_t> tight{0};  // tight[k] = launches before k with more live bytes than memory
  for (Bytes live : lifetimes.live) tight.push_back(tight.back() + (live > memory ? 1 : 0));
  RecomputeSet set(trace);
  for (const Recomputation& r : Recomputable(trace)) {
    const bool crosses = tight[r.next_use] > tight[r.last_use + 1];
    if (crosses && r.Efficiency() > trace.link.d2h) set.Add(r);
  }
  return set.chosen();
}

}  // namespace

RecomputePlan BestRecompute(const Trace& trace, const PlanOptions& options) {
  const Bytes memory = options.memory != 0 ? options.memory : trace.device_bytes;
  RecomputePlan best{.trace = trace, .plan = MakePlan(trace, options)};
  const double floor = best.plan.compute_seconds * (1 + 1e-6);
  if (best.plan.feasible && best.plan.period_seconds <= floor) return best;
  const std::vector<Recomputation> useful = Useful(trace, memory);
  auto attempt = [&](size_t count) {
    const std::vector<Recomputation> chosen(useful.begin(), useful.begin() + long(count));
    RecomputePlan plan{.trace = ApplyRecompute(trace, chosen)};
    plan.plan = MakePlan(plan.trace, options);
    plan.launches = count;
    for (const Recomputation& r : chosen) plan.bytes += r.bytes, plan.seconds += r.seconds;
    const double seconds =
        plan.plan.feasible ? plan.plan.period_seconds : std::numeric_limits<double>::infinity();
    const bool better =
        plan.plan.feasible && (!best.plan.feasible || seconds < best.plan.period_seconds);
    if (better) best = std::move(plan);
    return seconds;
  };
  // Too little leaves stalls, too much adds work: the time falls, then rises.
  size_t low = 0, high = useful.size();
  while (high - low > 2) {
    const size_t a = low + (high - low) / 3, b = high - (high - low) / 3;
    if (attempt(a) <= attempt(b))
      high = b;
    else
      low = a;
    if (high - low <= std::max<size_t>(2, useful.size() / 64)) break;
  }
  for (size_t count : {low, (low + high) / 2, high}) {
    if (count > 0) attempt(count);
  }
  return best;
}

}  // namespace atp::policy
