// SPDX-License-Identifier: Apache-2.0
// By how much each launch of a period exceeds memory, while victims are being chosen: adds to
// ranges, and finds the last launch of a range that still exceeds. O(log n) each. One thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace atp::policy {

class OverflowRow {
 public:
  explicit OverflowRow(const std::vector<int64_t>& values) {
    while (leaves_ < values.size()) leaves_ *= 2;
    most_.assign(2 * leaves_, INT64_MIN / 4);
    added_.assign(2 * leaves_, 0);
    for (size_t i = 0; i < values.size(); ++i) most_[leaves_ + i] = values[i];
    for (size_t node = leaves_ - 1; node >= 1; --node) Pull(node);
  }
  void Add(int64_t first, int64_t last, int64_t amount) {
    if (first > last) return;
    const size_t a = leaves_ + static_cast<size_t>(first), b = leaves_ + static_cast<size_t>(last);
    for (size_t left = a, right = b + 1; left < right; left /= 2, right /= 2) {
      if (left % 2 == 1) AddTo(left++, amount);
      if (right % 2 == 1) AddTo(--right, amount);
    }
    for (size_t node = a / 2; node >= 1; node /= 2) Pull(node);
    for (size_t node = b / 2; node >= 1; node /= 2) Pull(node);
  }
  int64_t operator[](int64_t i) const {
    size_t node = leaves_ + static_cast<size_t>(i);
    int64_t value = most_[node];
    while ((node /= 2) >= 1) value += added_[node];
    return value;
  }
  // The greatest of [first, last], which is not empty.
  int64_t Greatest(int64_t first, int64_t last) const {
    size_t a = leaves_ + static_cast<size_t>(first), b = leaves_ + static_cast<size_t>(last);
    int64_t left = most_[a], right = most_[b];
    for (; a / 2 != b / 2; left += added_[a], right += added_[b]) {
      if (a % 2 == 0) left = std::max(left, most_[a + 1]);
      if (b % 2 == 1) right = std::max(right, most_[b - 1]);
      a /= 2, b /= 2;
    }
    int64_t most = std::max(left, right);
    while ((a /= 2) >= 1) most += added_[a];
    return most;
  }
  // The last launch of [first, last] that exceeds memory, or -1.
  int64_t LastAbove(int64_t first, int64_t last) const {
    if (first > last) return -1;
    return LastIn(1, 0, static_cast<int64_t>(leaves_) - 1, first, last, 0);
  }

 private:
  void Pull(size_t node) {
    most_[node] = std::max(most_[2 * node], most_[2 * node + 1]) + added_[node];
  }
  void AddTo(size_t node, int64_t amount) {
    most_[node] += amount;
    added_[node] += amount;
  }
  int64_t LastIn(size_t node, int64_t low, int64_t high, int64_t first, int64_t last,
                 int64_t above) const {
    if (last < low || high < first || most_[node] + above <= 0) return -1;
    if (low == high) return low;
    const int64_t middle = low + (high - low) / 2;
    const int64_t right = LastIn(2 * node + 1, middle + 1, high, first, last, above + added_[node]);
    return right >= 0 ? right : LastIn(2 * node, low, middle, first, last, above + added_[node]);
  }

  size_t leaves_ = 1;
  std::vector<int64_t> most_, added_;
};

}  // namespace atp::policy
