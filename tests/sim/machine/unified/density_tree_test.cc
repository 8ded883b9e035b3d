// SPDX-License-Identifier: Apache-2.0
#include "sim/machine/unified/density_tree.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace atp::sim {
namespace {

// The rule written out page by page: a fault fills its 64 KiB; then the largest aligned
// power-of-two region around it of which more than the threshold is occupied comes along.
std::vector<bool> Literal(const std::vector<bool>& faulted, const std::vector<bool>& resident,
                          const std::vector<bool>& valid, int threshold) {
  std::vector<bool> occupied(512), result(512);
  for (int p = 0; p < 512; ++p) occupied[p] = resident[p] && valid[p];
  for (int p = 0; p < 512; ++p) {
    if (!faulted[p]) continue;
    for (int q = p / 16 * 16; q < p / 16 * 16 + 16; ++q) occupied[q] = occupied[q] || valid[q];
  }
  for (int p = 0; p < 512; ++p) {
    if (!faulted[p]) continue;
    for (int size = 512; size >= 16; size /= 2) {
      int begin = p / size * size, count = 0, pages = 0;
      for (int q = begin; q < begin + size; ++q) {
        pages += valid[q];
        count += occupied[q];
      }
      if (size > 16 && count * 100 <= pages * threshold) continue;
      for (int q = begin; q < begin + size; ++q) result[q] = result[q] || valid[q];
      break;
    }
  }
  return result;
}

PageMask Mask(const std::vector<bool>& bits) {
  PageMask mask;
  for (int p = 0; p < 512; ++p) {
    if (bits[p]) mask.Set(p);
  }
  return mask;
}

TEST(DensityTree, EqualsTheRuleWrittenOutPageByPage) {
  std::mt19937 random(7);
  for (int round = 0; round < 500; ++round) {
    std::vector<bool> faulted(512), resident(512), valid(512);
    int first = round % 3 == 0 ? static_cast<int>(random() % 300) : 0;
    int last = round % 3 == 1 ? 512 - static_cast<int>(random() % 200) : 512;
    for (int p = first; p < last; ++p) valid[p] = true;
    unsigned density = random() % 60;
    for (int region = 0; region < 32; ++region) {
      if (random() % 100 >= density) continue;
      for (int p = region * 16; p < region * 16 + 16; ++p) resident[p] = valid[p];
    }
    for (unsigned i = 0; i < 1 + random() % 8; ++i) {
      int p = first + static_cast<int>(random() % static_cast<unsigned>(last - first));
      faulted[p] = !resident[p];
    }
    ASSERT_EQ(ExpandFaults(Mask(faulted), Mask(resident), Mask(valid), 51),
              Mask(Literal(faulted, resident, valid, 51)));
  }
}

TEST(DensityTree, OneFaultAfterTheOtherClimbsFrom64KiBToTheWholeBlock) {
  PageMask resident;
  std::vector<int> sizes;
  while (resident.Count() < 512) {
    int page = (PageMask::All() - resident).Next(0);
    PageMask more = ExpandFaults(PageMask::Range(page, 1), resident, PageMask::All(), 51);
    resident |= more;
    sizes.push_back(resident.Count() / 16);
  }
  EXPECT_EQ(sizes, (std::vector<int>{1, 2, 4, 8, 16, 32}));
}

}  // namespace
}  // namespace atp::sim
