// SPDX-License-Identifier: Apache-2.0
#include "policy/mapped.h"

#include <algorithm>
#include <numeric>

#include "policy/overflow_row.h"

namespace atp::policy {
namespace {

struct Life {
  int64_t first = -1, last = -1;  // launches over which the tensor takes room on the device
  int64_t touches = 0;            // launches
  double link_seconds = 0;        // of all its accesses, if it is mapped
};

std::vector<Life> FindLives(const Trace& trace) {
  std::vector<Life> lives(trace.tensors.size());
  const int64_t n = static_cast<int64_t>(trace.launches.size());
  for (int64_t k = 0; k < n; ++k) {
    const Launch& launch = trace.launches[static_cast<size_t>(k)];
    const auto touch = [&](uint32_t t, double rate) {
      if (t >= lives.size()) return;
      Life& life = lives[t];
      if (life.last != k) ++life.touches;
      if (life.first < 0) life.first = k;
      life.last = k;
      life.link_seconds += static_cast<double>(trace.tensors[t].bytes) / rate;
    };
    for (uint32_t t : launch.reads) touch(t, trace.link.h2d);
    for (uint32_t t : launch.writes) touch(t, trace.link.d2h);
  }
  for (size_t t = 0; t < lives.size(); ++t) {
    if (trace.tensors[t].global && lives[t].first >= 0) lives[t].first = 0, lives[t].last = n - 1;
  }
  return lives;
}

// What stays on the device: in order of falling worth, while there is room in every launch of its
// life; what must not be mapped comes first. Empty when that does not fit.
std::vector<bool> Keep(const Trace& trace, const std::vector<Life>& lives, Bytes memory,
                       const std::vector<double>& worth, const std::vector<bool>& must) {
  std::vector<int64_t> taken;
  for (const Launch& launch : trace.launches)
    taken.push_back(static_cast<int64_t>(launch.workspace));
  OverflowRow row(taken);
  std::vector<uint32_t> order(lives.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return must[a] != must[b] ? must[a] : worth[a] > worth[b];
  });
  std::vector<bool> kept(lives.size(), false);
  for (uint32_t t : order) {
    if (lives[t].first < 0) continue;
    const int64_t bytes = static_cast<int64_t>(trace.tensors[t].bytes);
    if (row.Greatest(lives[t].first, lives[t].last) + bytes > static_cast<int64_t>(memory)) {
      if (must[t]) return {};
      continue;
    }
    row.Add(lives[t].first, lives[t].last, bytes);
    kept[t] = true;
  }
  return kept;
}

double LinkSeconds(const Trace& trace, const Launch& launch, const std::vector<bool>& kept,
                   Plan* plan) {
  Bytes in = 0, out = 0;
  for (uint32_t t : launch.reads) in += t < kept.size() && !kept[t] ? trace.tensors[t].bytes : 0;
  for (uint32_t t : launch.writes) out += t < kept.size() && !kept[t] ? trace.tensors[t].bytes : 0;
  plan->mapped_h2d += in, plan->mapped_d2h += out;
  return std::max(static_cast<double>(in) / trace.link.h2d,
                  static_cast<double>(out) / trace.link.d2h);
}

Plan ToMappedPlan(const Trace& trace, const std::vector<Life>& lives,
                  const std::vector<bool>& kept) {
  Plan plan;
  for (const Launch& launch : trace.launches) {
    plan.launch_start.push_back(plan.period_seconds);
    plan.period_seconds += launch.seconds + LinkSeconds(trace, launch, kept, &plan);
    plan.launch_end.push_back(plan.period_seconds);
    plan.compute_seconds += launch.seconds;
  }
  plan.stall_seconds = plan.period_seconds - plan.compute_seconds;
  for (uint32_t t = 0; t < kept.size(); ++t) {
    if (lives[t].first < 0) continue;
    if (!kept[t]) {
      plan.mapped.push_back(t);
      plan.host_bytes += trace.tensors[t].bytes;
    } else if (trace.tensors[t].global) {
      plan.initially_resident.push_back({t, 0, trace.tensors[t].bytes});
    }
  }
  return plan;
}

}  // namespace

Plan MappedPlan(const Trace& trace, Bytes memory, const PlanOptions& options) {
  Plan best;
  best.feasible = false;
  best.why = "what may not be mapped does not fit";
  if (!(trace.link.h2d > 0 && trace.link.d2h > 0)) return best;
  const std::vector<Life> lives = FindLives(trace);
  std::vector<bool> must(lives.size(), false);
  for (uint32_t t : options.never_advised) {
    if (t < must.size()) must[t] = true;
  }
  std::vector<double> by_touches, by_seconds;  // SUV's heat; link time saved for the room taken
  for (size_t t = 0; t < lives.size(); ++t) {
    const double length = static_cast<double>(lives[t].last - lives[t].first + 1);
    const double bytes = static_cast<double>(std::max<Bytes>(trace.tensors[t].bytes, 1));
    by_touches.push_back(static_cast<double>(lives[t].touches) / length);
    by_seconds.push_back(lives[t].link_seconds / (bytes * length));
  }
  for (const auto& worth : {by_touches, by_seconds}) {
    const std::vector<bool> kept = Keep(trace, lives, memory, worth, must);
    if (kept.empty()) continue;
    Plan plan = ToMappedPlan(trace, lives, kept);
    if (!best.feasible || plan.period_seconds < best.period_seconds) best = std::move(plan);
  }
  return best;
}

}  // namespace atp::policy
