// SPDX-License-Identifier: Apache-2.0
#include "policy/durations.h"

#include <gtest/gtest.h>

#include <cmath>

namespace atp::policy {
namespace {

TEST(Durations, OneDisturbedMeasurementChangesNothing) {
  Durations durations;
  durations.Reset(2);
  for (double s : {1.0, 1.0, 50.0, 1.0, 1.0}) durations.Add(0, s);
  EXPECT_DOUBLE_EQ(durations.Estimate(0), 1.0);
  EXPECT_DOUBLE_EQ(durations.Spread(0), 0.0);
  EXPECT_DOUBLE_EQ(durations.Estimate(1), 0.0);
}

TEST(Durations, FollowARealChangeAfterThreeMeasurements) {
  Durations durations;
  durations.Reset(1);
  for (int i = 0; i < 5; ++i) durations.Add(0, 1.0);
  const double before = durations.Sum();
  for (int i = 0; i < 2; ++i) durations.Add(0, 2.0);
  EXPECT_DOUBLE_EQ(durations.Drift(before), 0.0);
  durations.Add(0, 2.0);
  EXPECT_DOUBLE_EQ(durations.Drift(before), 1.0);
}

TEST(Durations, ConfidenceGrowsWithSamplesAndFallsWithSpread) {
  Durations steady, noisy;
  steady.Reset(1), noisy.Reset(1);
  double last = 0;
  for (int i = 0; i < 5; ++i) {
    steady.Add(0, 1.0);
    noisy.Add(0, 1.0 + i);
    EXPECT_GT(steady.Confidence(0), last);
    last = steady.Confidence(0);
  }
  EXPECT_LT(noisy.Confidence(0), steady.Confidence(0));
}

TEST(Durations, IgnoreNonsense) {
  Durations durations;
  durations.Reset(1);
  durations.Add(0, -1);
  durations.Add(0, std::nan(""));
  durations.Add(7, 1);
  EXPECT_EQ(durations.Estimate(0), 0);
  EXPECT_EQ(durations.Confidence(0), 0);
  EXPECT_EQ(durations.Estimate(7), 0);
  EXPECT_EQ(durations.Drift(0), 0);
}

}  // namespace
}  // namespace atp::policy
