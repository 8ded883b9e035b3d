// SPDX-License-Identifier: Apache-2.0
#include "policy/service_trial.h"

#include <gtest/gtest.h>

namespace atp::policy {
namespace {

// A program that launches `kinds` kinds in turns; each takes `alone` seconds, or `served`.
struct Program {
  ServiceTrial trial;
  uint64_t kinds = 100, launches = 0, were_served = 0;
  double alone = 1e-3, served = 0.5e-3;

  void Run(uint64_t count) {
    for (const uint64_t end = launches + count; launches < end; ++launches) {
      const uint64_t kind = launches % kinds;
      const bool serve = trial.Decide(kind);
      were_served += serve ? 1 : 0;
      trial.Took(kind, serve ? served : alone, serve);
    }
  }
};

TEST(ServiceTrial, TwoPeriodsOfAPeriodicProgramAreLeftAlone) {
  Program program;
  program.Run(200);
  EXPECT_EQ(program.were_served, 0u);
}

TEST(ServiceTrial, WhatComesAgainAndAgainIsServedForAsLongAsItPays) {
  Program program;
  program.Run(300);
  EXPECT_GT(program.were_served, 0u);
  program.were_served = 0;
  program.Run(50'000);
  EXPECT_GE(program.were_served, 48'000u);
  EXPECT_NEAR(program.trial.verdict().ratio, 0.5, 0.01);
  EXPECT_EQ(program.trial.verdict().given_up, 0u);
}

TEST(ServiceTrial, WhatDoesNotPayCostsTheProgramLessThanTwoPerCent) {
  Program program;
  program.served = 1.5 * program.alone;
  program.Run(100'000);
  EXPECT_GT(program.trial.verdict().given_up, 1u);
  // A half more for one launch in twenty-five would be two per cent.
  EXPECT_LE(program.were_served, 4'000u);
}

TEST(ServiceTrial, TimesToCompareWithAreTakenAgainWhereTheGainIsSmall) {
  Program program;
  program.served = 0.95 * program.alone;
  program.Run(20'000);
  EXPECT_GT(program.launches - program.were_served, 300u);
  // What the launches take when left alone has fallen since: it is noticed.
  program.alone = 0.5e-3;
  program.Run(20'000);
  EXPECT_GT(program.trial.verdict().given_up, 0u);
}

TEST(ServiceTrial, LaunchesThatNeverComeAgainAreLeftAlone) {
  Program program;
  program.kinds = UINT64_MAX;
  program.Run(100'000);
  EXPECT_EQ(program.were_served, 0u);
}

}  // namespace
}  // namespace atp::policy
