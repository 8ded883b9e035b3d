// SPDX-License-Identifier: Apache-2.0
#include "daemon/likeness.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/protocol/sample_learned.h"

namespace atp::daemon {
namespace {

using protocol::Learned;
using protocol::SampleLearned;

TEST(Likeness, IsFullForTheSameProgram) {
  EXPECT_DOUBLE_EQ(Likeness(SampleLearned().fingerprint, SampleLearned().fingerprint), 1);
}

TEST(Likeness, AnotherBatchIsLikeEnoughAndAnotherProgramIsNot) {
  const protocol::Fingerprint one = SampleLearned().fingerprint;
  const double batch = Likeness(one, SampleLearned(/*scale=*/5).fingerprint);
  EXPECT_LT(batch, 1);
  EXPECT_GE(batch, kLeastLikeness);
  EXPECT_LT(Likeness(one, SampleLearned(1, /*seed=*/100).fingerprint), kLeastLikeness);
}

TEST(Likeness, WorkloadsAreToldApartByWhatTheyTouchAndLaunchNotByOrderOrTimes) {
  Learned learned = SampleLearned();
  learned.phases.push_back(SampleLearned(2, 3).phases[0]);
  const uint64_t key = KeyOf(learned);
  std::swap(learned.phases[0], learned.phases[1]);
  learned.phases[0].best_seconds = 5;
  learned.command = "another";
  EXPECT_EQ(KeyOf(learned), key);
  learned.phases[0].tensors[0].bytes += 1;
  EXPECT_NE(KeyOf(learned), key);
  learned = SampleLearned();
  learned.fingerprint.code[0] = 1;
  EXPECT_NE(KeyOf(learned), KeyOf(SampleLearned()));
}

}  // namespace
}  // namespace atp::daemon
