// SPDX-License-Identifier: Apache-2.0
// Sees when the program has just launched the same kernels in the same order as a phase that is
// known, whatever memory they were given: the phase with other data. After one such lap it can be
// planned, where the detector waits for a second. One thread. Method: Knuth, Morris and Pratt, so
// that a launch costs a few comparisons.
#pragma once

#include <cstdint>
#include <vector>

namespace atp::shim {

class ShapeFollower {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  // `identities`: of the launches of a phase, not empty. Numbered from 0 in the order of Add.
  void Add(std::vector<uint64_t> identities);
  // Gives the phase of which the last launches, this one included, were a lap; the longest one.
  uint32_t Feed(uint64_t identity);
  bool empty() const { return shapes_.empty(); }

 private:
  struct Shape {
    std::vector<uint64_t> identities;
    // How many launches of the beginning are also the end of the first i + 1 ones.
    std::vector<uint32_t> border;
    uint32_t matched = 0;
  };
  std::vector<Shape> shapes_;
};

}  // namespace atp::shim
