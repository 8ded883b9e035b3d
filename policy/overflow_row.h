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
    if (first <= last) AddIn(1, 0, static_cast<int64_t>(leaves_) - 1, first, last, amount);
  }
  int64_t operator[](int64_t i) const {
    size_t node = leaves_ + static_cast<size_t>(i);
    int64_t value = most_[node];
    while ((node /= 2) >= 1) value += added_[node];
    return value;
  }
  // The greatest of [first, last], which is not empty.
  int64_t Greatest(int64_t first, int64_t last) const {
    return GreatestIn(1, 0, static_cast<int64_t>(leaves_) - 1, first, last);
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
  void AddIn(size_t node, int64_t low, int64_t high, int64_t first, int64_t last, int64_t amount) {
    if (last < low || high < first) return;
    if (first <= low && high <= last) {
      most_[node] += amount;
      added_[node] += amount;
      return;
    }
    const int64_t middle = low + (high - low) / 2;
    AddIn(2 * node, low, middle, first, last, amount);
    AddIn(2 * node + 1, middle + 1, high, first, last, amount);
    Pull(node);
  }
  int64_t GreatestIn(size_t node, int64_t low, int64_t high, int64_t first, int64_t last) const {
    if (last < low || high < first) return INT64_MIN / 4;
    if (first <= low && high <= last) return most_[node];
    const int64_t middle = low + (high - low) / 2;
    return added_[node] + std::max(GreatestIn(2 * node, low, middle, first, last),
                                   GreatestIn(2 * node + 1, middle + 1, high, first, last));
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
