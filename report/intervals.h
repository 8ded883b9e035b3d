// SPDX-License-Identifier: Apache-2.0
// A set of times, as merged intervals. Pure; any thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace atp::report {

class Intervals {
 public:
  void Add(uint64_t begin, uint64_t end) {
    if (begin < end) spans_.push_back({begin, end});
  }
  // To be called once, after the last Add.
  void Merge() {
    std::sort(spans_.begin(), spans_.end());
    size_t kept = 0;
    for (const auto& span : spans_) {
      if (kept > 0 && span.first <= spans_[kept - 1].second) {
        spans_[kept - 1].second = std::max(spans_[kept - 1].second, span.second);
      } else {
        spans_[kept++] = span;
      }
    }
    spans_.resize(kept);
  }
  // How much of [begin, end) the set covers.
  uint64_t Within(uint64_t begin, uint64_t end) const {
    uint64_t covered = 0;
    auto it = std::lower_bound(spans_.begin(), spans_.end(), begin,
                               [](const auto& span, uint64_t at) { return span.second <= at; });
    for (; it != spans_.end() && it->first < end; ++it) {
      covered += std::min(end, it->second) - std::max(begin, it->first);
    }
    return covered;
  }

 private:
  std::vector<std::pair<uint64_t, uint64_t>> spans_;
};

}  // namespace atp::report
