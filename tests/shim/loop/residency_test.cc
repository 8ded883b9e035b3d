// SPDX-License-Identifier: Apache-2.0
#include "shim/residency.h"

#include <gtest/gtest.h>

#include "shim/mover.h"

namespace atp::shim {
namespace {

constexpr bool kClean = true;

class ResidencyTest : public testing::Test {
 protected:
  ResidencyTest() {
    a_.id = 1;
    a_.address = 8 * kGranule;
    a_.bytes = a_.mapped_bytes = 4 * kGranule;
    residency_.Add(&a_);
  }
  bool Duplicated(uint64_t granule) {
    return residency_.IsDuplicated(&a_, granule * kGranule, kGranule);
  }
  Allocation a_;
  Residency residency_;
};

TEST_F(ResidencyTest, AFetchAfterACleanEvictionLeavesTheHostsCopyValid) {
  EXPECT_FALSE(Duplicated(0));
  residency_.MovedToHost(&a_, 0, kGranule, kClean);
  EXPECT_TRUE(Duplicated(0));
  residency_.MovedToDevice(&a_, 0, kGranule);
  EXPECT_TRUE(Duplicated(0));
}

// Without the advice a fetch moves the only copy. And what is believed to be on the host may have
// been brought back by a fault: to give up the device's copy of it would leave it there for ever.
TEST_F(ResidencyTest, AnOrdinaryEvictionMakesNoDuplicate) {
  residency_.MovedToHost(&a_, 0, kGranule, !kClean);
  EXPECT_FALSE(Duplicated(0));
  residency_.MovedToDevice(&a_, 0, kGranule);
  EXPECT_FALSE(Duplicated(0));
}

TEST_F(ResidencyTest, ARangeIsDuplicatedWhenAllOfItIs) {
  residency_.MovedToHost(&a_, 0, 2 * kGranule, kClean);
  EXPECT_TRUE(residency_.IsDuplicated(&a_, 0, 2 * kGranule));
  EXPECT_FALSE(residency_.IsDuplicated(&a_, 0, 3 * kGranule));
}

TEST_F(ResidencyTest, WhenReadMostlyEndsNothingIsDuplicated) {
  residency_.MovedToHost(&a_, 0, 4 * kGranule, kClean);
  residency_.MovedToDevice(&a_, 0, 2 * kGranule);
  residency_.Collapse(&a_);
  for (uint64_t g = 0; g < 4; ++g) EXPECT_FALSE(Duplicated(g));
}

TEST_F(ResidencyTest, TheApproachToASchedulePutsEveryGranuleWhereThePeriodStartsWithIt) {
  residency_.MovedToDevice(&a_, 0, 4 * kGranule);
  residency_.MovedToHost(&a_, 0, kGranule, kClean);
  residency_.MovedToDevice(&a_, 0, kGranule);  // in both places
  Schedule schedule;
  schedule.tensors.push_back({&a_, 0, 4 * kGranule, 0, /*written=*/false});
  Action out;
  out.allocation = &a_;
  out.offset = 2 * kGranule;
  out.bytes = kGranule;
  schedule.out_at_start.push_back(out);
  const Residency::Approach approach = residency_.ToStartOf(schedule, kPieceBytes);
  ASSERT_EQ(approach.evict.size(), 1u);
  EXPECT_EQ(approach.evict[0].offset, 2 * kGranule);
  EXPECT_TRUE(approach.fetch.empty());
  EXPECT_EQ(approach.resident, 3 * kGranule);
}

// What is known to be away takes room when it comes; what may be there already is counted as there.
TEST_F(ResidencyTest, WhatMayBeInItsPlaceIsCountedBeforeItIsFetched) {
  residency_.MovedToHost(&a_, 0, kGranule, !kClean);
  residency_.MovedToDevice(&a_, kGranule, kGranule);  // of the other two nothing is known
  Schedule schedule;
  schedule.tensors.push_back({&a_, 0, 4 * kGranule, 5});
  const Residency::Approach approach = residency_.ToStartOf(schedule, kPieceBytes);
  ASSERT_EQ(approach.fetch.size(), 2u);
  EXPECT_EQ(approach.fetch[0].bytes, kGranule);
  EXPECT_FALSE(approach.fetch[0].in_place);
  EXPECT_EQ(approach.fetch[1].bytes, 2 * kGranule);
  EXPECT_TRUE(approach.fetch[1].in_place);
  EXPECT_EQ(approach.fetch[1].position, 5u);
  EXPECT_EQ(approach.resident, 3 * kGranule);
}

}  // namespace
}  // namespace atp::shim
