// SPDX-License-Identifier: Apache-2.0
#include "policy/lifetimes.h"

#include <algorithm>

namespace atp::policy {
namespace {

struct Use {
  uint32_t launch;
  bool reads, writes, restores;
};

// The uses of every tensor in launch order, one entry a launch.
std::vector<std::vector<Use>> CollectUses(const Trace& trace) {
  std::vector<std::vector<Use>> uses(trace.tensors.size());
  auto use_of = [&](uint32_t tensor, uint32_t launch) -> Use* {
    if (tensor >= uses.size()) return nullptr;
    auto& list = uses[tensor];
    if (list.empty() || list.back().launch != launch) list.push_back({launch, false, false, false});
    return &list.back();
  };
  for (uint32_t k = 0; k < trace.launches.size(); ++k) {
    for (uint32_t t : trace.launches[k].reads) {
      if (Use* use = use_of(t, k)) use->reads = true;
    }
    for (uint32_t t : trace.launches[k].writes) {
      if (Use* use = use_of(t, k)) use->writes = true;
    }
    for (uint32_t t : trace.launches[k].restores) {
      if (Use* use = use_of(t, k)) use->restores = true;
    }
  }
  return uses;
}

// Adds a size to a cyclic range of positions; turned into sums at the end.
class Ranges {
 public:
  explicit Ranges(size_t n) : n_(n), step_(n + 1, 0) {}
  void Add(size_t first, size_t last, Bytes bytes) {  // first <= last < first + n
    if (first > last) return;
    if (first >= n_) first -= n_, last -= n_;
    if (last < n_) return AddStraight(first, last, bytes);
    AddStraight(first, n_ - 1, bytes);
    AddStraight(0, last - n_, bytes);
  }
  std::vector<Bytes> Sums() const {
    std::vector<Bytes> sums(n_);
    int64_t sum = 0;
    for (size_t k = 0; k < n_; ++k) sums[k] = static_cast<Bytes>(sum += step_[k]);
    return sums;
  }

 private:
  void AddStraight(size_t first, size_t last, Bytes bytes) {
    step_[first] += static_cast<int64_t>(bytes);
    step_[last + 1] -= static_cast<int64_t>(bytes);
  }
  size_t n_;
  std::vector<int64_t> step_;
};

}  // namespace

void Hold(const std::vector<bool>& tensors, Lifetimes* life) {
  Ranges held(life->live.size());
  auto is_held = [&](const InactiveInterval& i) {
    return i.tensor < tensors.size() && tensors[i.tensor];
  };
  for (const InactiveInterval& i : life->intervals) {
    if (is_held(i)) held.Add(i.last_use + 1, i.next_use - 1, i.bytes);
  }
  std::erase_if(life->intervals, is_held);
  const std::vector<Bytes> sums = held.Sums();
  for (size_t k = 0; k < sums.size(); ++k) life->touched[k] += sums[k];
}

Lifetimes FindLifetimes(const Trace& trace) {
  const uint32_t n = static_cast<uint32_t>(trace.launches.size());
  Lifetimes result;
  result.written.assign(trace.tensors.size(), false);
  result.touched.assign(n, 0);
  if (n == 0) return result;
  Ranges waiting(n), between(n);
  const auto uses = CollectUses(trace);
  for (uint32_t t = 0; t < uses.size(); ++t) {
    const Tensor& tensor = trace.tensors[t];
    for (size_t i = 0; i < uses[t].size(); ++i) {
      const Use& use = uses[t][i];
      result.touched[use.launch] += tensor.bytes;
      if (use.writes) result.written[t] = true;
      const bool last = i + 1 == uses[t].size();
      if (last && !tensor.global) continue;
      const Use& next = last ? uses[t].front() : uses[t][i + 1];
      const uint32_t next_use = next.launch + (last ? n : 0);
      const bool dropped = next.restores && !last;
      if (dropped || (!tensor.global && next.writes && !next.reads)) continue;  // dead until then
      between.Add(use.launch, next_use - 1, tensor.bytes);
      if (next_use - use.launch <= 1) continue;
      waiting.Add(use.launch + 1, next_use - 1, tensor.bytes);
      result.intervals.push_back({t, use.launch, next_use, tensor.bytes});
    }
  }
  for (uint32_t k = 0; k < n; ++k) result.touched[k] += trace.launches[k].workspace;
  result.live = waiting.Sums();
  for (uint32_t k = 0; k < n; ++k) result.live[k] += result.touched[k];
  result.live_after = between.Sums();
  std::stable_sort(result.intervals.begin(), result.intervals.end(),
                   [](const auto& a, const auto& b) { return a.last_use < b.last_use; });
  return result;
}

}  // namespace atp::policy
