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

struct Turn {
  double seconds = 0;
  size_t k = 0, a = 0;  // positions of the sweep
};

// The window that begins at which a is worst for k.
size_t WorstBegin(const Sweep& sweep, size_t k) {
  std::vector<double> older(2 * sweep.excess.size() + 1, 0);  // step at a: begins before it
  for (const Span& span : sweep.spans) {
    if (span.first <= k && k <= span.last) older[span.first + 1] += span.seconds;
  }
  double sum = 0, worst = MaxAddTree::kNone;
  size_t begin = k;
  for (size_t a = 0; a <= k; ++a) {
    sum += older[a];
    if (a < k + 1 - sweep.windows || sweep.begin[a] - sum <= worst) continue;
    worst = sweep.begin[a] - sum, begin = a;
  }
  return begin;
}

Turn WorstTurn(const Sweep& sweep) {
  const size_t n = sweep.excess.size();
  MaxAddTree tree(sweep.begin);
  std::vector<std::vector<uint32_t>> begins(2 * n), ends(2 * n + 1);
  for (uint32_t i = 0; i < sweep.spans.size(); ++i) {
    begins[sweep.spans[i].first].push_back(i);
    ends[std::min(sweep.spans[i].last, 2 * n - 1) + 1].push_back(i);
  }
  Turn worst;
  double free = 0;
  auto apply = [&](const Span& span, double sign) {
    free += sign * span.free;
    tree.Add(span.first + 1, 2 * n - 1, -sign * span.seconds);
  };
  for (size_t k = 0; k < 2 * n; ++k) {
    for (uint32_t i : ends[k]) apply(sweep.spans[i], -1.0);
    for (uint32_t i : begins[k]) apply(sweep.spans[i], 1.0);
    if (k < n) continue;
    const double window = tree.Max(k + 1 - sweep.windows, k);
    const double seconds = sweep.excess[k - n] - free - sweep.at[k] + window;
    if (seconds > worst.seconds) worst.seconds = seconds, worst.k = k;
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
struct Sweeps {
  Sweep out, in;
};

Sweeps MakeSweeps(const Trace& trace, const Lifetimes& life, Bytes memory, bool clean_leaves_free) {
  const size_t n = trace.launches.size();
  Sweeps s;
  s.out.excess.resize(n);
  s.in.excess.resize(n);
  for (size_t k = 0; k < n; ++k) {
    const double excess = static_cast<double>(life.live[k]) - static_cast<double>(memory);
    s.out.excess[k] = excess / trace.link.d2h;
    s.in.excess[n - 1 - k] = excess / trace.link.h2d;
  }
  for (const InactiveInterval& interval : life.intervals) {
    const double bytes = static_cast<double>(interval.bytes);
    const bool clean = clean_leaves_free && !life.written[interval.tensor];
    const size_t first = interval.last_use + 1, last = interval.next_use - 1;
    const double leave = bytes / trace.link.d2h;
    AddSpan(s.out.spans, n, first, last, clean ? 0 : leave, clean ? leave : 0);
    AddSpan(s.in.spans, n, 2 * n - 1 - last, 2 * n - 1 - first, bytes / trace.link.h2d, 0);
  }
  const std::vector<double> starts = StartTimes(trace, false), back = StartTimes(trace, true);
  s.out.begin.assign(starts.begin(), starts.end() - 1);
  s.out.at = s.out.begin;
  s.out.windows = n;
  s.in.begin.assign(back.begin(), back.end() - 1);
  s.in.at.assign(back.begin() + 1, back.end());
  s.in.windows = n - 1;
  return s;
}

double ClosedForm(const Trace& trace, Bytes memory, bool clean_leaves_free) {
  const double compute = ComputeSeconds(trace);
  const Lifetimes life = FindLifetimes(trace);
  if (life.intervals.empty()) return compute;
  const Sweeps sweeps = MakeSweeps(trace, life, memory, clean_leaves_free);
  const double turn = std::max(WorstTurn(sweeps.out).seconds, WorstTurn(sweeps.in).seconds);
  if (!LinkRegion(trace.link).coupled) return compute + turn;
  double windows = WindowStall(trace, life, memory, true);  // valid for both rules
  if (!clean_leaves_free) windows = std::max(windows, WindowStall(trace, life, memory, false));
  return compute + std::max(turn, windows);
}

struct Touch {
  uint32_t launch;
  bool reads, writes;
};

// Per tensor, ascending.
std::vector<std::vector<Touch>> CollectTouches(const Trace& trace) {
  std::vector<std::vector<Touch>> all(trace.tensors.size());
  auto add = [&](uint32_t t, uint32_t k) -> Touch& {
    if (all[t].empty() || all[t].back().launch != k) all[t].push_back({k, false, false});
    return all[t].back();
  };
  for (uint32_t k = 0; k < trace.launches.size(); ++k) {
    for (uint32_t t : trace.launches[k].reads) {
      if (t < all.size()) add(t, k).reads = true;
    }
    for (uint32_t t : trace.launches[k].writes) {
      if (t < all.size()) add(t, k).writes = true;
    }
  }
  return all;
}

// Largest U_ab * in + P_ab * out - M (in + out) - C_ab over windows [a, b]: U_ab = bytes whose
// first touch in the window reads them and that were alive before it, P_ab = bytes written in the
// window whose next touch after it reads them. `in`, `out`: seconds per byte.
class AnyWindows {
 public:
  AnyWindows(const Trace& trace, const std::vector<double>& starts)
      : trace_(trace), starts_(starts), touches_(CollectTouches(trace)) {
    at_.resize(trace.launches.size());
    for (uint32_t t = 0; t < touches_.size(); ++t) {
      for (const Touch& touch : touches_[t]) at_[touch.launch].push_back(t);
    }
  }

  double Worst(double in, double out, double memory) const {
    const size_t n = at_.size();
    MaxAddTree tree(std::vector<double>(starts_.begin(), starts_.begin() + static_cast<long>(n)));
    std::vector<Seen> seen(touches_.size());
    double worst = 0;
    for (size_t b = 0; b < n; ++b) {
      for (uint32_t t : at_[b]) Step(t, b, in, out, &seen[t], &tree);
      worst = std::max(worst, tree.Max(0, b) - starts_[b + 1] - memory * (in + out));
    }
    return worst;
  }

 private:
  struct Seen {
    size_t touches = 0;
    int64_t last_touch = -1, last_write = -1;
    int64_t counts_to = -1;  // P_ab counts the tensor for windows that begin here or before
  };

  void Step(uint32_t t, size_t b, double in, double out, Seen* seen, MaxAddTree* tree) const {
    const std::vector<Touch>& touches = touches_[t];
    const Touch& now = touches[seen->touches++];
    const double bytes = static_cast<double>(trace_.tensors[t].bytes);
    const bool global = trace_.tensors[t].global;
    if (now.reads && (seen->last_touch >= 0 || global)) {
      tree->Add(static_cast<size_t>(seen->last_touch + 1), b, bytes * in);
    }
    seen->last_touch = static_cast<int64_t>(b);
    if (now.writes) seen->last_write = static_cast<int64_t>(b);
    const bool last = seen->touches == touches.size();
    const bool needed = last ? global && touches.front().reads : touches[seen->touches].reads;
    if (seen->counts_to >= 0) tree->Add(0, static_cast<size_t>(seen->counts_to), -bytes * out);
    seen->counts_to = needed ? seen->last_write : -1;
    if (seen->counts_to >= 0) tree->Add(0, static_cast<size_t>(seen->counts_to), bytes * out);
  }

  const Trace& trace_;
  const std::vector<double>& starts_;
  const std::vector<std::vector<Touch>> touches_;
  std::vector<std::vector<uint32_t>> at_;  // tensors that a launch touches
};

}  // namespace

double ComputeSeconds(const Trace& trace) {
  double sum = 0;
  for (const Launch& launch : trace.launches) sum += launch.seconds;
  return sum;
}

double BoundClosed(const Trace& trace, Bytes memory) { return ClosedForm(trace, memory, false); }
double BoundSafe(const Trace& trace, Bytes memory) { return ClosedForm(trace, memory, true); }

TurnPoint FindTurnPoint(const Trace& trace, Bytes memory, bool clean_leaves_free) {
  const Lifetimes life = FindLifetimes(trace);
  if (life.intervals.empty()) return {};
  const Sweeps sweeps = MakeSweeps(trace, life, memory, clean_leaves_free);
  const Turn out = WorstTurn(sweeps.out), in = WorstTurn(sweeps.in);
  const auto n = static_cast<int64_t>(trace.launches.size());
  if (out.seconds <= 0 && in.seconds <= 0) return {};
  // A place of the sweeps from n on is one of this period.
  if (out.seconds >= in.seconds) {
    const auto k = static_cast<int64_t>(out.k) - n;
    const auto a = static_cast<int64_t>(WorstBegin(sweeps.out, out.k)) - n;
    return {out.seconds, true, k, a, k};
  }
  const auto k = 2 * n - 1 - static_cast<int64_t>(in.k);
  const auto b = 2 * n - 1 - static_cast<int64_t>(WorstBegin(sweeps.in, in.k));
  return {in.seconds, false, k, k, b};
}

double BoundAny(const Trace& trace, Bytes memory) {
  const double compute = ComputeSeconds(trace);
  if (trace.launches.empty()) return compute;
  const std::vector<double> starts = StartTimes(trace, false);
  const double bytes = static_cast<double>(memory);
  const AnyWindows windows(trace, starts);
  const LinkRegion link(trace.link);
  double worst = std::max(windows.Worst(link.a1, 0, bytes), windows.Worst(0, link.a2, bytes));
  if (link.coupled) {
    worst = std::max(worst, windows.Worst(link.a1, link.b1, bytes));
    worst = std::max(worst, windows.Worst(link.b2, link.a2, bytes));
  }
  return compute + worst;
}

}  // namespace atp::policy
