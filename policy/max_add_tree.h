// SPDX-License-Identifier: Apache-2.0
// A row of numbers with "add to a range" and "greatest in a range", both O(log n). Used by the
// bounds, whose two-sided windows would otherwise cost O(n^2). One thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <vector>

namespace atp::policy {

class MaxAddTree {
 public:
  static constexpr double kNone = -std::numeric_limits<double>::infinity();

  explicit MaxAddTree(const std::vector<double>& values) : size_(values.size()) {
    while (leaves_ < std::max<size_t>(size_, 1)) leaves_ *= 2;
    best_.assign(2 * leaves_, kNone);
    pending_.assign(2 * leaves_, 0.0);
    for (size_t i = 0; i < size_; ++i) best_[leaves_ + i] = values[i];
    for (size_t node = leaves_ - 1; node >= 1; --node) Pull(node);
  }

  // Adds to the values of [first, last].
  void Add(size_t first, size_t last, double amount) {
    if (first <= last && first < size_) AddIn(1, 0, leaves_ - 1, first, last, amount);
  }
  // The greatest of [first, last], or kNone.
  double Max(size_t first, size_t last) const {
    return first <= last ? MaxIn(1, 0, leaves_ - 1, first, last) : kNone;
  }

 private:
  void Pull(size_t node) {
    best_[node] = std::max(best_[2 * node], best_[2 * node + 1]) + pending_[node];
  }
  void AddIn(size_t node, size_t low, size_t high, size_t first, size_t last, double amount) {
    if (last < low || high < first) return;
    if (first <= low && high <= last) {
      best_[node] += amount;
      pending_[node] += amount;
      return;
    }
    const size_t middle = low + (high - low) / 2;
    AddIn(2 * node, low, middle, first, last, amount);
    AddIn(2 * node + 1, middle + 1, high, first, last, amount);
    Pull(node);
  }
  double MaxIn(size_t node, size_t low, size_t high, size_t first, size_t last) const {
    if (last < low || high < first) return kNone;
    if (first <= low && high <= last) return best_[node];
    const size_t middle = low + (high - low) / 2;
    return pending_[node] + std::max(MaxIn(2 * node, low, middle, first, last),
                                     MaxIn(2 * node + 1, middle + 1, high, first, last));
  }

  size_t size_;
  size_t leaves_ = 1;
  std::vector<double> best_, pending_;
};

}  // namespace atp::policy
