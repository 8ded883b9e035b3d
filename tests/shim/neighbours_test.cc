// SPDX-License-Identifier: Apache-2.0
#include "shim/neighbours.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace atp::shim {
namespace {

constexpr uint64_t kGiB = 1u << 30;

TEST(NeighbourMemory, MoreCountsAtOnceAndLessWhenItHasLasted) {
  NeighbourMemory memory(32 * kGiB);
  EXPECT_EQ(memory.Look(0), 0u);
  EXPECT_EQ(memory.Look(10 * kGiB), 10 * kGiB);
  EXPECT_EQ(memory.Look(12 * kGiB), 12 * kGiB);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(memory.Look(4 * kGiB), 12 * kGiB) << i;
  EXPECT_EQ(memory.Look(4 * kGiB), 4 * kGiB);
}

TEST(NeighbourMemory, OneThatComesAndGoesCountsByTheMostOfIt) {
  NeighbourMemory memory(32 * kGiB);
  memory.Look(0);
  memory.Look(10 * kGiB);
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(memory.Look(2 * kGiB), 10 * kGiB);
    EXPECT_EQ(memory.Look(10 * kGiB), 10 * kGiB);
  }
  for (const uint64_t gib : {2, 5, 3}) memory.Look(gib * kGiB);
  EXPECT_EQ(memory.Look(2 * kGiB), 5 * kGiB);
}

TEST(NeighbourMemory, SmallChangesCountForNothingAndWhatItWasComesBackWhole) {
  NeighbourMemory memory(32 * kGiB);
  EXPECT_EQ(memory.Look(3 * kGiB), 3 * kGiB);
  EXPECT_EQ(memory.at_start(), 3 * kGiB);
  EXPECT_EQ(memory.Look(3 * kGiB + kGiB / 2), 3 * kGiB);
  EXPECT_EQ(memory.Look(9 * kGiB), 9 * kGiB);
  EXPECT_EQ(memory.Look(9 * kGiB + kGiB / 2), 9 * kGiB);
  for (int i = 0; i < 4; ++i) memory.Look(3 * kGiB + kGiB / 8);
  EXPECT_EQ(memory.Look(3 * kGiB), 3 * kGiB);
}

TEST(WithoutShim, CountsThoseThatAreNeitherThisProcessNorUnderTheShim) {
  EXPECT_EQ(WithoutShim({{7, getpid(), 0}}), 0u);
  EXPECT_EQ(WithoutShim({{7, getpid(), 0}, {5, getppid(), 0}, {3, 1 << 29, 0}}), 8u);
}

}  // namespace
}  // namespace atp::shim
