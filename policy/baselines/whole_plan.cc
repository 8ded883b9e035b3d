// SPDX-License-Identifier: Apache-2.0
#include "policy/baselines/whole_plan.h"

#include <algorithm>

namespace atp::policy {

Plan LaunchesOnly(const Trace& trace) {
  Plan plan;
  double now = 0;
  for (const Launch& launch : trace.launches) {
    plan.launch_start.push_back(now);
    now += launch.seconds;
    plan.launch_end.push_back(now);
  }
  plan.period_seconds = plan.compute_seconds = now;
  return plan;
}

Plan PlanFromOutings(const Trace& trace, const std::vector<Outing>& outings) {
  Plan plan = LaunchesOnly(trace);
  const uint32_t n = static_cast<uint32_t>(trace.launches.size());
  for (const Outing& out : outings) {
    const double leaves = plan.launch_end[out.after];
    plan.evictions.push_back({Move::Kind::kEvict, out.tensor, out.offset, out.bytes, out.after,
                              out.before, leaves, leaves + double(out.bytes) / trace.link.d2h});
    // Not before its last user has finished, or it would be found resident.
    const uint32_t gap = (out.before + n - out.after - 1) % n;
    const uint32_t ahead = std::min(out.lead, gap);
    const uint32_t from = (out.before + n - ahead) % n;
    const double starts = plan.launch_start[from];
    const bool wraps = from > out.before;
    const double ends =
        wraps ? plan.period_seconds + plan.launch_start[out.before] : plan.launch_start[out.before];
    plan.fetches.push_back({Move::Kind::kFetch, out.tensor, out.offset, out.bytes, out.after,
                            out.before, starts, ends});
  }
  FinishPlan(&plan);
  return plan;
}

void FinishPlan(Plan* plan) {
  auto by_start = [](const Move& a, const Move& b) { return a.start < b.start; };
  std::stable_sort(plan->evictions.begin(), plan->evictions.end(), by_start);
  std::stable_sort(plan->fetches.begin(), plan->fetches.end(), by_start);
  for (const Move& move : plan->evictions) plan->moved_d2h += move.copies ? move.bytes : 0;
  for (const Move& move : plan->fetches) plan->moved_h2d += move.bytes;
}

}  // namespace atp::policy
