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
    last = std::min(last, size_ - 1);
    if (first > last || size_ == 0) return;
    const size_t a = leaves_ + first, b = leaves_ + last;
    for (size_t left = a, right = b + 1; left < right; left /= 2, right /= 2) {
      if (left % 2 == 1) AddTo(left++, amount);
      if (right % 2 == 1) AddTo(--right, amount);
    }
    for (size_t node = a / 2; node >= 1; node /= 2) Pull(node);
    for (size_t node = b / 2; node >= 1; node /= 2) Pull(node);
  }
  // The greatest of [first, last], which lie in the row, or kNone.
  double Max(size_t first, size_t last) const {
    if (first > last) return kNone;
    size_t a = leaves_ + first, b = leaves_ + last;
    double left = best_[a], right = best_[b];
    for (; a / 2 != b / 2; left += pending_[a], right += pending_[b]) {
      if (a % 2 == 0) left = std::max(left, best_[a + 1]);
      if (b % 2 == 1) right = std::max(right, best_[b - 1]);
      a /= 2, b /= 2;
    }
    double most = std::max(left, right);
    while ((a /= 2) >= 1) most += pending_[a];
    return most;
  }

 private:
  void AddTo(size_t node, double amount) {
    best_[node] += amount;
    pending_[node] += amount;
  }
  void Pull(size_t node) {
    best_[node] = std::max(best_[2 * node], best_[2 * node + 1]) + pending_[node];
  }

  size_t size_;
  size_t leaves_ = 1;
  std::vector<double> best_, pending_;
};

}  // namespace atp::policy
