// SPDX-License-Identifier: Apache-2.0
#include "shim/period_timer.h"

#include <gtest/gtest.h>

#include "fake_world.h"

namespace atp::shim {
namespace {

class PeriodTimerTest : public testing::Test {
 protected:
  PeriodTimerTest() : world_(25.0, 8 * kGranule), timer_(&world_) { timer_.Start(2); }
  void RunPeriod() {
    for (uint32_t position = 0; position < 2; ++position) {
      timer_.Begin(position, nullptr, false);
      world_.Launch((position + 1) * 100'000, {});
      timer_.End(position, nullptr, false);
    }
    timer_.Finish();
  }
  FakeWorld world_;
  PeriodTimer timer_;
  std::vector<double> seconds_;
};

TEST_F(PeriodTimerTest, EachLaunchGetsItsTimeOnce) {
  RunPeriod();
  world_.Synchronize();
  ASSERT_TRUE(timer_.Collect(&seconds_));
  ASSERT_EQ(seconds_.size(), 2u);
  EXPECT_NEAR(seconds_[1], 200e-6, 1e-9);
  EXPECT_FALSE(timer_.Collect(&seconds_));
}

// A period may begin anywhere in an iteration, so its last launches may still run when the next one
// starts, or when that one ends.
TEST_F(PeriodTimerTest, ThePeriodsThatFollowDoNotLoseIt) {
  RunPeriod();
  EXPECT_FALSE(timer_.Collect(&seconds_));
  RunPeriod();
  world_.Synchronize();
  ASSERT_TRUE(timer_.Collect(&seconds_));
  EXPECT_NEAR(seconds_[1], 200e-6, 1e-9);
}

TEST_F(PeriodTimerTest, OnlyWhatWasAskedForIsMeasured) {
  RunPeriod();
  world_.Synchronize();
  ASSERT_TRUE(timer_.Collect(&seconds_));
  RunPeriod();
  world_.Synchronize();
  EXPECT_FALSE(timer_.Collect(&seconds_));
}

}  // namespace
}  // namespace atp::shim
