// SPDX-License-Identifier: Apache-2.0
#include "shim/plain_clock.h"

#include <gtest/gtest.h>

#include "fake_world.h"

namespace atp::shim {
namespace {

class PlainClockTest : public testing::Test {
 protected:
  PlainClockTest() : world_(25.0, 8 * kGranule), clock_(&world_) {}
  // Each launch leaves its event in front of itself, as in the loop.
  void Launch(uint64_t ns) {
    clock_.Launch({});
    world_.Launch(ns, {});
  }
  void Period(uint64_t ns) {
    for (int i = 0; i < 2; ++i) Launch(ns / 2);
  }
  FakeWorld world_;
  PlainClock clock_;
  PlainClock::Seconds seconds_{};
};

TEST_F(PlainClockTest, ThePeriodsBeforeAPlanAreTimedTheNewestFirst) {
  Launch(1'000'000);  // the program's beginning
  Period(400'000);
  Period(200'000);
  clock_.Launch({});
  EXPECT_EQ(clock_.Planned(2, 2), 2u);
  EXPECT_EQ(clock_.Collect(&seconds_), 0u);  // the device is not there yet
  world_.Synchronize();
  ASSERT_EQ(clock_.Collect(&seconds_), 2u);
  EXPECT_NEAR(seconds_[0], 200e-6, 1e-8);
  EXPECT_NEAR(seconds_[1], 400e-6, 1e-8);
  EXPECT_EQ(clock_.Collect(&seconds_), 0u);
}

TEST_F(PlainClockTest, APeriodOfWhichABoundaryWasMissedIsNotClaimed) {
  Period(400'000);
  clock_.Miss();  // the beginning of the second period
  Launch(200'000);
  Launch(100'000);
  clock_.Miss();  // in the middle of the third one
  clock_.Launch({});
  EXPECT_EQ(clock_.Planned(2, 3), 1u);
  world_.Synchronize();
  ASSERT_EQ(clock_.Collect(&seconds_), 1u);
}

TEST_F(PlainClockTest, OnlyWholePeriodsThatWereSeenAreClaimed) {
  EXPECT_EQ(clock_.Planned(2, 5), 0u);
  Period(200'000);
  clock_.Launch({});
  EXPECT_EQ(clock_.Planned(2, 5), 1u);
  clock_.Forget();
  EXPECT_EQ(clock_.Planned(2, 5), 0u);
  EXPECT_EQ(clock_.Planned(100'000, 5), 0u);
}

}  // namespace
}  // namespace atp::shim
