// SPDX-License-Identifier: Apache-2.0
#include "shim/plan_job.h"

#include <gtest/gtest.h>

namespace atp::shim {
namespace {

// One allocation of 16 blocks: launches go through it quarter by quarter, each by its own pointer.
class PlanJobTest : public testing::Test {
 protected:
  static constexpr uint64_t kQuarter = 4 * kGranule;
  PlanJobTest() {
    allocation_.id = 1;
    allocation_.bytes = allocation_.mapped_bytes = 4 * kQuarter;
    input_.period.Add(&allocation_);
    for (uint32_t i = 0; i < 4; ++i) {
      policy::SeenLaunch launch;
      launch.kernel = i;
      launch.seconds = 1e-3;
      launch.first_touch = i;
      launch.touch_count = 1;
      input_.period.seen.launches.push_back(launch);
      input_.period.seen.touches.push_back({0, i * kQuarter, 0, true, true});
      input_.period.signatures.push_back(i);
    }
    input_.link.h2d = input_.link.d2h = 25e9;
    input_.durations_known = true;
    input_.piece_bytes = kGranule;
    input_.capacity = 2 * kQuarter;
  }
  Allocation allocation_;
  PlanInput input_;
};

TEST_F(PlanJobTest, APlanThatDoesNotPromiseLessLeavesTheOneThatRuns) {
  const PlanOutput first = MakeSchedule(input_);
  ASSERT_NE(first.schedule, nullptr) << first.why;
  input_.below_seconds = first.schedule->promise_seconds * 0.98;
  const PlanOutput second = MakeSchedule(input_);
  EXPECT_TRUE(second.same);
  EXPECT_EQ(second.schedule, nullptr);
  input_.below_seconds = first.schedule->promise_seconds * 1.02;
  EXPECT_NE(MakeSchedule(input_).schedule, nullptr);
}

TEST_F(PlanJobTest, WithoutSightAllocationsArePlannedWholeOrNotAtAll) {
  input_.sight = false;
  const PlanOutput output = MakeSchedule(input_);
  EXPECT_EQ(output.schedule, nullptr);
  EXPECT_FALSE(output.why.empty());
}

TEST_F(PlanJobTest, AnAllocationThatIsTooLargeAsAWholeIsPlannedByParts) {
  input_.whole = true;
  const PlanOutput output = MakeSchedule(input_);
  ASSERT_NE(output.schedule, nullptr) << output.why;
  EXPECT_TRUE(output.schedule->by_parts);
  ASSERT_EQ(output.schedule->tensors.size(), 4u);
  EXPECT_EQ(output.schedule->tensors[1].offset, kQuarter);
  EXPECT_EQ(output.schedule->tensors[1].bytes, kQuarter);
  EXPECT_EQ(output.schedule->tensors[1].first_touch, 1u);
}

TEST_F(PlanJobTest, PartsThatDoNotPromiseMoreThanTheWholeTakesAreNotTried) {
  Allocation other = allocation_;
  other.id = 2;
  input_.period.Add(&other);
  policy::SeenLaunch launch = input_.period.seen.launches.back();
  launch.first_touch = 4;
  input_.period.seen.launches.push_back(launch);
  input_.period.seen.touches.push_back({1, 0, 0, true, true});
  input_.period.signatures.push_back(4);
  input_.capacity = 6 * kQuarter;
  const double promise = MakeSchedule(input_).schedule->promise_seconds;
  input_.whole_seconds = promise * 1.2;
  EXPECT_TRUE(MakeSchedule(input_).schedule->by_parts);
  input_.whole_seconds = promise * 1.01;
  EXPECT_FALSE(MakeSchedule(input_).schedule->by_parts);
}

// Else a plan for the same ranges would be made again, as "whole", when this one turns out slower.
TEST_F(PlanJobTest, GuessesThatCutNothingMakeNoPlanByParts) {
  Allocation quarters[4];
  for (uint32_t i = 0; i < 4; ++i) {
    quarters[i].id = i + 2;
    quarters[i].bytes = quarters[i].mapped_bytes = kQuarter;
    input_.period.Add(&quarters[i]);
    input_.period.seen.touches[i] = {i + 1, 0, 0, true, true};
  }
  const PlanOutput output = MakeSchedule(input_);
  ASSERT_NE(output.schedule, nullptr) << output.why;
  EXPECT_FALSE(output.schedule->by_parts);
}

TEST_F(PlanJobTest, PartsThatPromiseLittleAreBetterThanNoPlan) {
  input_.whole_seconds = 1e-9;
  const PlanOutput output = MakeSchedule(input_);
  ASSERT_NE(output.schedule, nullptr) << output.why;
  EXPECT_TRUE(output.schedule->by_parts);
}

// Beside the quarters, tensors of one, two and three blocks that launches of one kind are given: no
// two show the same reach.
class PlanJobUnsure : public PlanJobTest {
 protected:
  PlanJobUnsure() {
    unsure_.id = 2;
    unsure_.bytes = unsure_.mapped_bytes = 6 * kGranule;
    input_.period.Add(&unsure_);
    for (const uint64_t block : {0, 1, 3}) {
      policy::SeenLaunch launch = input_.period.seen.launches.back();
      launch.kernel = 9;
      launch.first_touch = static_cast<uint32_t>(input_.period.seen.touches.size());
      input_.period.seen.launches.push_back(launch);
      input_.period.seen.touches.push_back({1, block * kGranule, 0, true, true});
      input_.period.signatures.push_back(10 + block);
    }
  }
  uint64_t MovedOfUnsure(const Schedule& schedule) const {
    uint64_t bytes = 0;
    for (const Action& action : schedule.evicts) {
      if (action.allocation == &unsure_) bytes += action.bytes;
    }
    return bytes;
  }
  Allocation unsure_;
};

TEST_F(PlanJobUnsure, WhatIsNotSureEnoughKeepsItsRoomAndIsLeftToFaults) {
  input_.capacity = unsure_.bytes + kQuarter + 2 * kGranule;
  const PlanOutput output = MakeSchedule(input_);
  ASSERT_NE(output.schedule, nullptr) << output.why;
  EXPECT_GT(output.schedule->moved_in_bytes, 0u);
  EXPECT_EQ(MovedOfUnsure(*output.schedule), 0u);
}

TEST_F(PlanJobUnsure, WhatCannotKeepItsRoomMovesByTheGuess) {
  input_.capacity = kQuarter + 2 * kGranule;
  const PlanOutput output = MakeSchedule(input_);
  ASSERT_NE(output.schedule, nullptr) << output.why;
  EXPECT_GT(MovedOfUnsure(*output.schedule), 0u);
}

TEST_F(PlanJobTest, WhatFitsIsNotPlanned) {
  input_.capacity = 4 * kQuarter;
  const PlanOutput output = MakeSchedule(input_);
  EXPECT_TRUE(output.fits);
  EXPECT_EQ(output.schedule, nullptr);
}

}  // namespace
}  // namespace atp::shim
