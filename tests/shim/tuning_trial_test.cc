// SPDX-License-Identifier: Apache-2.0
#include "shim/tuning_trial.h"

#include <gtest/gtest.h>

#include "shim/schedule.h"

namespace atp::shim {
namespace {

using protocol::Learned;
using protocol::TrialState;
using Do = TuningTrial::Do;

constexpr uint64_t kMiB = 1u << 20, kBudget = 2048 * kMiB;

class TuningTrialTest : public testing::Test {
 protected:
  TuningTrialTest() { tried_.trial = true; }
  static Learned Offered() {
    Learned learned;
    learned.tuning.head_room_bytes = 8 * kMiB;
    learned.candidate = {4 * kMiB, 0.1, 1e-5, 1.5};
    learned.trial = TrialState::kOffered;
    return learned;
  }
  // Three periods.
  Do Took(const Schedule* schedule, double seconds) {
    trial_.Took(1, schedule, seconds);
    trial_.Took(1, schedule, seconds);
    return trial_.Took(1, schedule, seconds);
  }
  Learned Told() const {
    Learned learned;
    trial_.Tell(&learned);
    return learned;
  }

  TuningTrial trial_{kBudget};
  Schedule plain_, tried_;
};

TEST_F(TuningTrialTest, WithoutAStoreTheShimChooses) {
  EXPECT_EQ(trial_.HeadRoom(), 8 * kMiB);  // 1/256
  EXPECT_EQ(Took(&plain_, 1), Do::kNothing);
  EXPECT_EQ(Told().trial, TrialState::kNone);
  EXPECT_EQ(Told().tuning.head_room_bytes, 8 * kMiB);
  EXPECT_EQ(Told().budget_bytes, kBudget);
}

TEST_F(TuningTrialTest, WhatIsFasterStays) {
  trial_.Take(Offered());
  EXPECT_EQ(trial_.HeadRoom(), 8 * kMiB);
  EXPECT_EQ(Took(&plain_, 1.0), Do::kStart);
  EXPECT_EQ(trial_.HeadRoom(), 4 * kMiB);
  EXPECT_DOUBLE_EQ(trial_.duration_spread(), 0.1);
  EXPECT_DOUBLE_EQ(trial_.link_scale(), 1.5);
  EXPECT_EQ(Took(&plain_, 1.0), Do::kNothing);  // its plan does not run yet
  EXPECT_EQ(Took(&tried_, 0.9), Do::kKeep);
  EXPECT_EQ(trial_.HeadRoom(), 4 * kMiB);
  EXPECT_EQ(Told().trial, TrialState::kWon);
  EXPECT_EQ(Told().tuning, Offered().candidate);
  EXPECT_DOUBLE_EQ(Told().before_seconds, 1.0);
  EXPECT_DOUBLE_EQ(Told().trial_seconds, 0.9);
}

TEST_F(TuningTrialTest, WhatIsNoFasterThanPeriodsDifferIsGone) {
  trial_.Take(Offered());
  trial_.Took(1, &plain_, 1.0);
  trial_.Took(1, &plain_, 1.1);
  EXPECT_EQ(trial_.Took(1, &plain_, 0.9), Do::kStart);
  EXPECT_EQ(Took(&tried_, 0.95), Do::kRollBack);
  EXPECT_EQ(trial_.HeadRoom(), 8 * kMiB);
  EXPECT_EQ(Told().trial, TrialState::kLost);
  EXPECT_EQ(Told().tuning.head_room_bytes, 8 * kMiB);
}

TEST_F(TuningTrialTest, AnotherPlanOrPhaseInBetweenBeginsAnew) {
  trial_.Take(Offered());
  Schedule other;
  trial_.Took(1, &plain_, 1);
  trial_.Took(1, &plain_, 1);
  trial_.Took(1, &other, 1);
  trial_.Took(2, &other, 1);
  EXPECT_FALSE(trial_.trying());
  trial_.Took(2, &other, 1);
  EXPECT_EQ(trial_.Took(2, &other, 1), Do::kStart);
}

TEST_F(TuningTrialTest, WhenTheLoopGoesBackByItselfTheTrialIsLost) {
  trial_.Take(Offered());
  Took(&plain_, 1);
  trial_.GivenUp(2);
  EXPECT_EQ(Told().trial, TrialState::kLost);
  EXPECT_DOUBLE_EQ(Told().trial_seconds, 2);
  EXPECT_EQ(trial_.HeadRoom(), 8 * kMiB);
}

TEST_F(TuningTrialTest, WhateverAStoreSaysIsBroughtIntoBounds) {
  Learned learned = Offered();
  learned.tuning = {UINT64_MAX, 1e300, 1e300, 1e300};
  learned.candidate = {protocol::kNoHeadRoom};
  trial_.Take(learned);
  EXPECT_LE(trial_.HeadRoom(), 32 * kMiB);
  EXPECT_LE(trial_.duration_spread(), 1);
  EXPECT_LE(trial_.call_seconds(), 1e-3);
  EXPECT_LE(trial_.link_scale(), 4);
  Took(&plain_, 1);
  EXPECT_EQ(trial_.HeadRoom(), 0u);
  EXPECT_EQ(trial_.link_scale(), 1);
  TuningTrial tiny(1 * kMiB);
  EXPECT_LE(tiny.HeadRoom(), 1 * kMiB);
}

}  // namespace
}  // namespace atp::shim
