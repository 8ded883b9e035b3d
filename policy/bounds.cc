// SPDX-License-Identifier: Apache-2.0
#include "policy/bounds.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "policy/lifetimes.h"
#include "policy/link_region.h"
#include "policy/max_add_tree.h"
#include "policy/window_bound.h"

namespace atp::policy {
namespace {

// Seconds of computing before position k, for two periods, the launches in order or backwards.
std::vector<double> StartTimes(const Trace& trace, bool backwards) {
  const size_t n = trace.launches.size();
  std::vector<double> starts(2 * n + 1, 0.0);
  for (size_t k = 0; k < 2 * n; ++k) {
    const size_t launch = backwards ? n - 1 - k % n : k % n;
    starts[k + 1] = starts[k] + trace.launches[launch].seconds;
  }
  return starts;
}

// A waiting interval as the sweeps see it: first and last launch inside, unrolled over two periods.
struct Span {
  size_t first, last;
  double seconds;  // on the link
  double free;     // the same for what leaves without a copy
};

// One direction of the turn-point bound. Launch k of [n, 2n) cannot start before its excess over
// memory has crossed the link, less what had more time than the window [a, k):
//   max over k, a of  excess_k - free_k - older(a, k) - (at_k - begin_a),
// with older(a, k) = seconds of the spans over k that began before a. All terms are in seconds.
struct Sweep {
  std::vector<double> excess, at, begin;
  std::vector<Span> spans;
  size_t windows;  // how many begins a count for each k
};

double WorstTurn(const Sweep& sweep) {
  const size_t n = sweep.excess.size();
  MaxAddTree tree(sweep.begin);
  std::vector<std::vector<uint32_t>> begins(2 * n), ends(2 * n + 1);
  for (uint32_t i = 0; i < sweep.spans.size(); ++i) {
    begins[sweep.spans[i].first].push_back(i);
    ends[std::min(sweep.spans[i].last, 2 * n - 1) + 1].push_back(i);
  }
  double worst = 0, free = 0;
  auto apply = [&](const Span& span, double sign) {
    free += sign * span.free;
    tree.Add(span.first + 1, 2 * n - 1, -sign * span.seconds);
  };
  for (size_t k = 0; k < 2 * n; ++k) {
    for (uint32_t i : ends[k]) apply(sweep.spans[i], -1.0);
    for (uint32_t i : begins[k]) apply(sweep.spans[i], 1.0);
    if (k < n) continue;
    const double window = tree.Max(k + 1 - sweep.windows, k);
    worst = std::max(worst, sweep.excess[k - n] - free - sweep.at[k] + window);
  }
  return worst;
}

// Copies of a cyclic span that meet the two unrolled periods.
void AddSpan(std::vector<Span>& spans, size_t n, size_t first, size_t last, double seconds,
             double free) {
  for (size_t shift : {size_t{0}, n, 2 * n}) {  // by -n, 0, +n
    if (last + shift < n || first + shift >= 3 * n) continue;
    spans.push_back({first + shift < n ? 0 : first + shift - n, last + shift - n, seconds, free});
  }
}

// Forwards for what leaves, backwards in time for what returns: there position r stands for launch
// n-1-r, and the window also holds the launch itself, in which a first piece may already return.
double ClosedForm(const Trace& trace, Bytes memory, bool clean_leaves_free) {
  const size_t n = trace.launches.size();
  const double compute = ComputeSeconds(trace);
  if (n == 0) return compute;
  const Lifetimes life = FindLifetimes(trace);
  if (life.intervals.empty()) return compute;
  Sweep out, in;
  out.excess.resize(n);
  in.excess.resize(n);
  for (size_t k = 0; k < n; ++k) {
    const double excess = static_cast<double>(life.live[k]) - static_cast<double>(memory);
    out.excess[k] = excess / trace.link.d2h;
    in.excess[n - 1 - k] = excess / trace.link.h2d;
  }
  for (const InactiveInterval& interval : life.intervals) {
    const double bytes = static_cast<double>(interval.bytes);
    const bool clean = clean_leaves_free && !life.written[interval.tensor];
    const size_t first = interval.last_use + 1, last = interval.next_use - 1;
    const double leave = bytes / trace.link.d2h;
    AddSpan(out.spans, n, first, last, clean ? 0 : leave, clean ? leave : 0);
    AddSpan(in.spans, n, 2 * n - 1 - last, 2 * n - 1 - first, bytes / trace.link.h2d, 0);
  }
  const std::vector<double> starts = StartTimes(trace, false), back = StartTimes(trace, true);
  out.begin.assign(starts.begin(), starts.end() - 1);
  out.at = out.begin;
  out.windows = n;
  in.begin.assign(back.begin(), back.end() - 1);
  in.at.assign(back.begin() + 1, back.end());
  in.windows = n - 1;
  const double turn = std::max(WorstTurn(out), WorstTurn(in));
  if (!LinkRegion(trace.link).coupled) return compute + turn;
  double windows = WindowStall(trace, life, memory, true);  // valid for both rules
  if (!clean_leaves_free) windows = std::max(windows, WindowStall(trace, life, memory, false));
  return compute + std::max(turn, windows);
}

// The uses of one tensor: launches that read it, launches that write it, the first of both.
struct Accesses {
  std::vector<uint32_t> reads, writes;
  uint32_t first = 0;
  bool first_reads = false;
};

std::vector<Accesses> CollectAccesses(const Trace& trace) {
  std::vector<Accesses> all(trace.tensors.size());
  auto add = [&](uint32_t t, uint32_t k, std::vector<uint32_t> Accesses::*list) {
    if (t >= all.size()) return;
    if (all[t].reads.empty() && all[t].writes.empty()) all[t].first = k;
    auto& launches = all[t].*list;
    if (launches.empty() || launches.back() != k) launches.push_back(k);
  };
  for (uint32_t k = 0; k < trace.launches.size(); ++k) {
    for (uint32_t t : trace.launches[k].reads) add(t, k, &Accesses::reads);
    for (uint32_t t : trace.launches[k].writes) add(t, k, &Accesses::writes);
  }
  for (Accesses& a : all) a.first_reads = !a.reads.empty() && a.reads.front() == a.first;
  return all;
}

// Largest (U_ab - M) / b_H - C_ab over windows [a, b]: bytes that some launch of the window reads
// before any launch of the window touched them, and that were alive before it.
double WorstIn(const Trace& trace, const std::vector<double>& starts, double memory_seconds) {
  const size_t n = trace.launches.size();
  MaxAddTree tree(std::vector<double>(starts.begin(), starts.begin() + n));
  std::vector<int64_t> last_touch(trace.tensors.size(), -1);
  double worst = 0;
  std::vector<uint32_t> touched;
  for (size_t k = 0; k < n; ++k) {
    const Launch& launch = trace.launches[k];
    touched = launch.reads;
    std::sort(touched.begin(), touched.end());
    touched.erase(std::unique(touched.begin(), touched.end()), touched.end());
    for (uint32_t t : touched) {
      if (t >= last_touch.size()) continue;
      if (last_touch[t] < 0 && !trace.tensors[t].global) continue;  // not alive before this launch
      tree.Add(static_cast<size_t>(last_touch[t] + 1), k,
               static_cast<double>(trace.tensors[t].bytes) / trace.link.h2d);
    }
    touched.insert(touched.end(), launch.writes.begin(), launch.writes.end());
    for (uint32_t t : touched) {
      if (t < last_touch.size()) last_touch[t] = static_cast<int64_t>(k);
    }
    worst = std::max(worst, tree.Max(0, k) - starts[k + 1] - memory_seconds);
  }
  return worst;
}

// The mirror: bytes written in a window [a, b] and read after it must have left or stay in memory.
double WorstOut(const Trace& trace, const std::vector<double>& starts, double memory_seconds) {
  const size_t n = trace.launches.size();
  std::vector<double> ends(n);
  for (size_t b = 0; b < n; ++b) ends[b] = -starts[b + 1];
  MaxAddTree tree(ends);
  std::vector<std::vector<std::pair<uint32_t, uint32_t>>> writes_at(n);  // tensor, last b it counts
  const auto accesses = CollectAccesses(trace);
  for (uint32_t t = 0; t < accesses.size(); ++t) {
    const Accesses& a = accesses[t];
    if (a.reads.empty()) continue;
    const bool wraps = trace.tensors[t].global && a.first_reads;
    for (size_t i = 0; i < a.writes.size(); ++i) {
      uint32_t until = i + 1 < a.writes.size() ? a.writes[i + 1] : static_cast<uint32_t>(n);
      if (!wraps) until = std::min(until, a.reads.back());
      if (until > a.writes[i]) writes_at[a.writes[i]].push_back({t, until - 1});
    }
  }
  double worst = 0;
  for (size_t a = n; a-- > 0;) {
    for (const auto& [t, until] : writes_at[a]) {
      tree.Add(a, until, static_cast<double>(trace.tensors[t].bytes) / trace.link.d2h);
    }
    worst = std::max(worst, tree.Max(a, n - 1) + starts[a] - memory_seconds);
  }
  return worst;
}

}  // namespace

double ComputeSeconds(const Trace& trace) {
  double sum = 0;
  for (const Launch& launch : trace.launches) sum += launch.seconds;
  return sum;
}

double BoundClosed(const Trace& trace, Bytes memory) { return ClosedForm(trace, memory, false); }
double BoundSafe(const Trace& trace, Bytes memory) { return ClosedForm(trace, memory, true); }

double BoundAny(const Trace& trace, Bytes memory) {
  const double compute = ComputeSeconds(trace);
  if (trace.launches.empty()) return compute;
  const std::vector<double> starts = StartTimes(trace, false);
  const double bytes = static_cast<double>(memory);
  return compute + std::max(WorstIn(trace, starts, bytes / trace.link.h2d),
                            WorstOut(trace, starts, bytes / trace.link.d2h));
}

}  // namespace atp::policy
