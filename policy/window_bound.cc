// SPDX-License-Identifier: Apache-2.0
#include "policy/window_bound.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "policy/bounds.h"
#include "policy/link_region.h"
#include "policy/max_add_tree.h"

namespace atp::policy {
namespace {

struct Weights {  // seconds of link time per byte
  double in, out;
};

// The period twice in a row: launches in [0, 2n).
struct Unrolled {
  size_t n;
  std::vector<double> excess;  // bytes: live at a launch, above memory
  std::vector<double> held;    // bytes: touched by a launch, above memory
  std::vector<double> start;   // seconds of computing before a launch; one more at the end
  struct Wait {
    size_t first, back;  // first launch that it waits over, launch that needs it again
    double bytes;
    bool copied;
  };
  std::vector<Wait> waits;
};

Unrolled Unroll(const Trace& trace, const Lifetimes& life, Bytes memory, bool clean_leaves_free) {
  Unrolled all;
  const size_t n = all.n = trace.launches.size();
  all.start.push_back(0);
  for (size_t k = 0; k < 2 * n; ++k) {
    all.excess.push_back(static_cast<double>(life.live[k % n]) - static_cast<double>(memory));
    all.held.push_back(static_cast<double>(life.touched[k % n]) - static_cast<double>(memory));
    all.start.push_back(all.start.back() + trace.launches[k % n].seconds);
  }
  for (const InactiveInterval& interval : life.intervals) {
    const bool copied = !clean_leaves_free || life.written[interval.tensor];
    const size_t first = interval.last_use + 1, back = interval.next_use;
    for (size_t shift : {size_t{0}, n, 2 * n}) {  // by -n, 0, +n
      if (back + shift <= n || first + shift >= 3 * n) continue;
      all.waits.push_back({first + shift < n ? 0 : first + shift - n, back + shift - n,
                           static_cast<double>(interval.bytes), copied});
    }
  }
  return all;
}

// For one pair of weights: the worst window that ends with the start of a launch, over all launches
// after whose end it may begin. Launches are visited in order.
class Sweep {
 public:
  Sweep(const Unrolled& all, Weights weights)
      : all_(all), weights_(weights), tree_(Begin(all, weights)) {
    begins_.resize(2 * all.n);
    ends_.resize(2 * all.n);
    for (uint32_t i = 0; i < all.waits.size(); ++i) {
      begins_[all.waits[i].first].push_back(i);
      if (all.waits[i].back < 2 * all.n) ends_[all.waits[i].back].push_back(i);
    }
  }
  // Launch q is next to start.
  void Advance(size_t q) {
    for (uint32_t i : ends_[q]) {
      const Unrolled::Wait& wait = all_.waits[i];
      Leave(wait, +1);
      if (weights_.in > 0) tree_.Add(wait.first, wait.back - 1, weights_.in * wait.bytes);
    }
    for (uint32_t i : begins_[q]) Leave(all_.waits[i], -1);
  }
  // Seconds that the windows from the end of a launch of [from, q) to the start of q lack at most.
  double Worst(size_t from, size_t q) const {
    return tree_.Max(from, q - 1) + weights_.out * (all_.excess[q] - clean_) - all_.start[q];
  }
  // Windows that begin after launch p follow others that lack `seconds`.
  void Credit(size_t p, double seconds) { tree_.Add(p, p, seconds); }

 private:
  static std::vector<double> Begin(const Unrolled& all, Weights weights) {
    std::vector<double> values(2 * all.n);
    for (size_t p = 0; p < values.size(); ++p) {
      values[p] = weights.in * all.held[p] + all.start[p + 1];
    }
    return values;
  }
  // What waits since before the window had time to leave before it.
  void Leave(const Unrolled::Wait& wait, double sign) {
    if (!wait.copied) {
      clean_ -= sign * wait.bytes;
    } else if (weights_.out > 0) {
      tree_.Add(wait.first, 2 * all_.n - 1, sign * weights_.out * wait.bytes);
    }
  }

  const Unrolled& all_;
  Weights weights_;
  MaxAddTree tree_;
  std::vector<std::vector<uint32_t>> begins_, ends_;
  double clean_ = 0;  // bytes that wait over the launch and leave without a copy
};

}  // namespace

double WindowStall(const Trace& trace, const Lifetimes& life, Bytes memory,
                   bool clean_leaves_free) {
  const size_t n = trace.launches.size();
  if (n == 0 || life.intervals.empty()) return 0;
  const LinkRegion link(trace.link);
  const Unrolled all = Unroll(trace, life, memory, clean_leaves_free);
  std::vector<Weights> weights = {{link.a1, 0}, {0, link.a2}};
  if (link.b1 > 0) weights.push_back({link.a1, link.b1});
  if (link.b2 > 0) weights.push_back({link.b2, link.a2});
  // The worst window alone; the circle of launches is then cut where it ends.
  double worst = 0;
  size_t cut = 0;
  for (const Weights& w : weights) {
    Sweep sweep(all, w);
    for (size_t q = 0; q < 2 * n; ++q) {
      sweep.Advance(q);
      if (q < n) continue;
      const double stall = sweep.Worst(q - n, q);
      if (stall > worst) worst = stall, cut = q - n;
    }
  }
  if (worst <= 0) return 0;
  std::vector<Sweep> sweeps;
  for (const Weights& w : weights) sweeps.emplace_back(all, w);
  double sum = 0;  // the best disjoint windows from the cut to launch q
  for (size_t q = 0; q <= cut + n; ++q) {
    for (Sweep& sweep : sweeps) {
      sweep.Advance(q);
      if (q > cut) sum = std::max(sum, sweep.Worst(cut, q));
    }
    for (Sweep& sweep : sweeps) sweep.Credit(q, sum);
  }
  return sum;
}

double BoundWithWindows(const Trace& trace, Bytes memory, bool clean_leaves_free) {
  const double turn = clean_leaves_free ? BoundSafe(trace, memory) : BoundClosed(trace, memory);
  const double stall = WindowStall(trace, FindLifetimes(trace), memory, clean_leaves_free);
  return std::max(turn, ComputeSeconds(trace) + stall);
}

}  // namespace atp::policy
