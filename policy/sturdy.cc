// SPDX-License-Identifier: Apache-2.0
#include "policy/sturdy.h"

#include <algorithm>
#include <utility>

namespace atp::policy {
namespace {

constexpr Bytes kLeastHeadRoom = Bytes{4} << 20;  // two blocks of unified memory
constexpr Bytes kParts[] = {64, 128, 256};        // of memory

std::vector<uint32_t> Touched(const Launch& launch) {
  std::vector<uint32_t> touched = launch.reads;
  touched.insert(touched.end(), launch.writes.begin(), launch.writes.end());
  std::sort(touched.begin(), touched.end());
  touched.erase(std::unique(touched.begin(), touched.end()), touched.end());
  return touched;
}

// The smallest that is at least `excess`, else the largest; false when there is none.
bool Least(const Trace& trace, const std::vector<uint32_t>& touched, Bytes excess,
           uint32_t* found) {
  auto better = [&](uint32_t a, uint32_t b) {
    const Bytes x = trace.tensors[a].bytes, y = trace.tensors[b].bytes;
    if ((x >= excess) != (y >= excess)) return x >= excess;
    return x >= excess ? x < y : x > y;
  };
  const auto it = std::min_element(touched.begin(), touched.end(), better);
  if (it == touched.end()) return false;
  *found = *it;
  return true;
}

}  // namespace

Trace WithoutExcess(const Trace& trace, Bytes memory) {
  Trace less = trace;
  for (Launch& launch : less.launches) {
    std::vector<uint32_t> touched = Touched(launch);
    Bytes bytes = launch.workspace;
    for (uint32_t t : touched) bytes += trace.tensors[t].bytes;
    uint32_t gone = 0;
    while (bytes > memory && Least(trace, touched, bytes - memory, &gone)) {
      bytes -= trace.tensors[gone].bytes;
      std::erase(touched, gone), std::erase(launch.reads, gone), std::erase(launch.writes, gone);
    }
  }
  return less;
}

SturdyPlan MakeSturdyPlan(const Trace& predicted, const PlanOptions& options,
                          const SturdyOptions& sturdy) {
  const Bytes memory = options.memory > 0 ? options.memory : predicted.device_bytes;
  auto room = [&](Bytes part) {
    return std::max(kLeastHeadRoom, std::min(memory / part, sturdy.most_head_room));
  };
  PlanOptions used = options;
  used.duration_spread = 0;
  used.head_room = memory > 2 * kLeastHeadRoom ? kLeastHeadRoom : 0;
  const Trace trace = WithoutExcess(predicted, memory - used.head_room);
  SturdyPlan best{MakePlan(trace, used), used.head_room};
  if (!best.plan.feasible || used.head_room == 0) return best;
  const double most = best.plan.period_seconds * (1 + sturdy.head_room_cost);
  for (Bytes part : kParts) {
    if (room(part) <= best.head_room) break;
    used.head_room = room(part);
    Plan plan = MakePlan(trace, used);
    if (!plan.feasible || plan.period_seconds > most) continue;
    best = {std::move(plan), used.head_room};
    break;
  }
  used.head_room = best.head_room;
  used.duration_spread = sturdy.duration_spread;
  best.plan = MakePlan(trace, used);
  return best;
}

}  // namespace atp::policy
