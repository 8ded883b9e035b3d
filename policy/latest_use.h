// SPDX-License-Identifier: Apache-2.0
// Among intervals sorted by their last use: which of the first `count` is needed again latest. This
// is furthest-next-use (Belady) with the side condition "has waited long enough". O(log n). One
// thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace atp::policy {

class LatestUse {
 public:
  static constexpr int64_t kGone = INT64_MIN;

  explicit LatestUse(const std::vector<int64_t>& next_uses) : size_(next_uses.size()) {
    while (leaves_ < size_ + 1) leaves_ *= 2;
    best_.assign(2 * leaves_, kGone);
    for (size_t i = 0; i < size_; ++i) best_[leaves_ + i] = next_uses[i];
    for (size_t node = leaves_ - 1; node >= 1; --node) Pull(node);
  }

  void Remove(size_t i) {
    best_[leaves_ + i] = kGone;
    for (size_t node = (leaves_ + i) / 2; node >= 1; node /= 2) Pull(node);
  }
  int64_t operator[](size_t i) const { return best_[leaves_ + i]; }

  // Index of the latest among the first `count`, the first of equals; size() when all are gone.
  size_t Find(size_t count) const {
    size_t node = 0;
    int64_t best = kGone;
    // Prefix [0, count) is the union of the left siblings on the way to leaf `count`.
    for (size_t at = leaves_ + (count < size_ ? count : size_); at > 1; at /= 2) {
      if ((at & 1) != 0 && best_[at - 1] != kGone && best_[at - 1] >= best) {
        best = best_[at - 1];
        node = at - 1;
      }
    }
    if (node == 0) return size_;
    while (node < leaves_) node = best_[2 * node] == best_[node] ? 2 * node : 2 * node + 1;
    return node - leaves_;
  }
  // Appends all of the first `count` whose next use is later than `after`.
  void Collect(size_t count, int64_t after, std::vector<size_t>& found) const {
    CollectIn(1, 0, leaves_ - 1, count, after, found);
  }
  size_t size() const { return size_; }

 private:
  void Pull(size_t node) {
    const int64_t left = best_[2 * node], right = best_[2 * node + 1];
    best_[node] = left > right ? left : right;
  }
  void CollectIn(size_t node, size_t low, size_t high, size_t count, int64_t after,
                 std::vector<size_t>& found) const {
    if (low >= count || best_[node] <= after) return;
    if (low == high) return found.push_back(low);
    const size_t middle = low + (high - low) / 2;
    CollectIn(2 * node, low, middle, count, after, found);
    CollectIn(2 * node + 1, middle + 1, high, count, after, found);
  }

  size_t size_;
  size_t leaves_ = 1;
  std::vector<int64_t> best_;
};

}  // namespace atp::policy
