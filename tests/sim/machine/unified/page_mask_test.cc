// SPDX-License-Identifier: Apache-2.0
#include "sim/machine/unified/page_mask.h"

#include <gtest/gtest.h>

#include <bitset>
#include <random>

namespace atp::sim {
namespace {

using Bits = std::bitset<PageMask::kPages>;

int Runs(const Bits& bits) {
  int runs = 0;
  for (size_t i = 0; i < bits.size(); ++i) runs += bits[i] && (i == 0 || !bits[i - 1]);
  return runs;
}

TEST(PageMask, BehavesLikeASetOfBits) {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    PageMask a, b;
    Bits x, y;
    for (int i = 0; i < 6; ++i) {
      int first = static_cast<int>(random() % 512),
          count = static_cast<int>(random() % (513 - first));
      PageMask& mask = i % 2 == 0 ? a : b;
      Bits& bits = i % 2 == 0 ? x : y;
      mask.SetRange(first, count);
      for (int p = first; p < first + count; ++p) bits.set(static_cast<size_t>(p));
      int cleared = static_cast<int>(random() % 512);
      mask.Clear(cleared);
      bits.reset(static_cast<size_t>(cleared));
    }
    auto same = [](const PageMask& mask, const Bits& bits) {
      for (int p = 0; p < 512; ++p) {
        if (mask.Test(p) != bits[static_cast<size_t>(p)]) return false;
      }
      return mask.Count() == static_cast<int>(bits.count()) && mask.Any() == bits.any() &&
             mask.Runs() == Runs(bits);
    };
    ASSERT_TRUE(same(a, x));
    ASSERT_TRUE(same(a & b, x & y));
    ASSERT_TRUE(same(a | b, x | y));
    ASSERT_TRUE(same(a - b, x & ~y));
    int from = static_cast<int>(random() % 512);
    int next = from;
    while (next < 512 && !x[static_cast<size_t>(next)]) ++next;
    ASSERT_EQ(a.Next(from), next);
  }
}

}  // namespace
}  // namespace atp::sim
