// SPDX-License-Identifier: Apache-2.0
#include "policy/baselines/whole_plan.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/policy/test_trace.h"

namespace atp::policy {
namespace {

TraceBuilder FourLaunches() {
  TraceBuilder b;
  for (int i = 0; i < 4; ++i) b.Global(10);
  for (uint32_t i = 0; i < 4; ++i) b.Run(1, {i});
  return b;
}

TEST(WholePlan, LaunchesRunOneAfterAnother) {
  const Plan plan = LaunchesOnly(FourLaunches().trace());
  EXPECT_EQ(plan.launch_start, (std::vector<double>{0, 1, 2, 3}));
  EXPECT_DOUBLE_EQ(plan.period_seconds, 4);
}

TEST(WholePlan, AnOutingLeavesAfterItsUseAndComesBackFromItsLead) {
  const Plan plan = PlanFromOutings(FourLaunches().trace(), {{0, 0, 10 * kMiB, 0, 3, 2}});
  ASSERT_EQ(plan.evictions.size(), 1u);
  EXPECT_DOUBLE_EQ(plan.evictions[0].start, 1);
  EXPECT_DOUBLE_EQ(plan.fetches[0].start, 1);
  EXPECT_DOUBLE_EQ(plan.fetches[0].end, 3);
  EXPECT_EQ(plan.moved_d2h, 10 * kMiB);
}

TEST(WholePlan, AnOutingThatWrapsComesBackForTheNextPeriod) {
  const Plan plan = PlanFromOutings(FourLaunches().trace(), {{2, 0, 10 * kMiB, 2, 1, 2}});
  EXPECT_DOUBLE_EQ(plan.fetches[0].start, 3);
  EXPECT_GT(plan.fetches[0].end, plan.period_seconds);
}

TEST(WholePlan, NothingComesBackBeforeItHasLeft) {
  const Plan plan = PlanFromOutings(FourLaunches().trace(), {{0, 0, 10 * kMiB, 0, 2, 100}});
  EXPECT_GE(plan.fetches[0].start, plan.evictions[0].start);
}

}  // namespace
}  // namespace atp::policy
