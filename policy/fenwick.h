// SPDX-License-Identifier: Apache-2.0
// Prefix sums over a row of integers that change, O(log n) each; finds where a sum is reached. One
// thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace atp::policy {

class Fenwick {
 public:
  explicit Fenwick(size_t n) : sum_(n + 1, 0) {
    while (top_ * 2 <= n) top_ *= 2;
  }
  size_t size() const { return sum_.size() - 1; }
  void Add(size_t i, int64_t amount) {
    for (++i; i < sum_.size(); i += i & (~i + 1)) sum_[i] += amount;
  }
  // Sum of the first `count` entries.
  int64_t Prefix(size_t count) const {
    int64_t sum = 0;
    for (; count > 0; count &= count - 1) sum += sum_[count];
    return sum;
  }
  // The least index i with Prefix(i + 1) >= target, or size(). Entries must not be negative.
  size_t Reach(int64_t target) const {
    size_t i = 0;
    for (size_t step = top_; step > 0; step /= 2) {
      if (i + step < sum_.size() && sum_[i + step] < target) {
        i += step;
        target -= sum_[i];
      }
    }
    return i;
  }

 private:
  std::vector<int64_t> sum_;
  size_t top_ = 1;
};

}  // namespace atp::policy
