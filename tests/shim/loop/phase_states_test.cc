// SPDX-License-Identifier: Apache-2.0
#include "shim/phase_states.h"

#include <gtest/gtest.h>

namespace atp::shim {
namespace {

std::shared_ptr<const Schedule> Using(Allocation* allocation) {
  auto schedule = std::make_shared<Schedule>();
  schedule->tensors.push_back({allocation, 0, kGranule, 0});
  return schedule;
}

TEST(PhaseStates, APhaseThatComesBackFindsItsPlan) {
  PhaseStates states;
  Allocation a;
  states.Enter(1, 10, nullptr)->schedule = Using(&a);
  EXPECT_EQ(states.Enter(2, 10, nullptr)->schedule, nullptr);
  EXPECT_EQ(states.Enter(1, 11, nullptr)->schedule, nullptr);  // another length is another period
  EXPECT_NE(states.Enter(1, 10, nullptr)->schedule, nullptr);
}

TEST(PhaseStates, NoPlanNamesMemoryThatIsGone) {
  PhaseStates states;
  Allocation freed, kept;
  PhaseState* now = states.Enter(1, 10, nullptr);
  now->schedule = Using(&kept);
  now->best = Using(&freed);
  states.Enter(2, 10, nullptr)->schedule = Using(&kept);
  states.Forget(&freed);
  EXPECT_EQ(now->schedule, nullptr);
  EXPECT_EQ(now->best, nullptr);
  EXPECT_TRUE(now->Is(1, 10));
  EXPECT_NE(states.Enter(2, 10, nullptr)->schedule, nullptr);
}

// The first period under a plan took 9 and the other plan promised 10; then periods take 12.
TEST(PhaseStates, APlanThatWasRefusedIsAskedForAgainWhenPeriodsTakeLonger) {
  Allocation a;
  PhaseState state;
  state.schedule = state.best = Using(&a);
  state.best_seconds = 9;
  state.refused_seconds = 10;
  EXPECT_FALSE(state.Missed(12));
  EXPECT_FALSE(state.Missed(10.1)) << "not worth it";
  EXPECT_FALSE(state.Missed(12)) << "once may be chance";
  EXPECT_TRUE(state.Missed(12));
  EXPECT_EQ(state.best_seconds, 12) << "it is what the other plan has to be better than";
  state.refused_seconds = 0;
  for (int period = 0; period < 4; ++period) EXPECT_FALSE(state.Missed(12)) << "none was refused";
}

TEST(PhaseStates, WhatWasLeftTheLongestTimeAgoIsForgotten) {
  PhaseStates states;
  Allocation a;
  for (uint32_t phase = 0; phase < PhaseStates::kMost; ++phase) {
    states.Enter(phase, 10, nullptr)->schedule = Using(&a);
  }
  states.Enter(0, 10, nullptr);
  states.Enter(99, 10, nullptr);
  EXPECT_NE(states.Enter(0, 10, nullptr)->schedule, nullptr);
  EXPECT_EQ(states.Enter(1, 10, nullptr)->schedule, nullptr);
}

TEST(PhaseStates, ThePhaseThatRunsIsNotForgotten) {
  PhaseStates states;
  PhaseState* runs = states.Enter(0, 10, nullptr);
  for (uint32_t phase = 1; phase < 3 * PhaseStates::kMost; ++phase) states.Enter(phase, 10, runs);
  EXPECT_EQ(states.Enter(0, 10, nullptr), runs);
}

std::shared_ptr<const Schedule> Of(std::vector<uint64_t> signatures) {
  auto schedule = std::make_shared<Schedule>();
  schedule->signatures = std::move(signatures);
  return schedule;
}

TEST(PhaseStates, APhaseBeginsAgainWhereItHasJustEnded) {
  PhaseStates states;
  PhaseState* two = states.Enter(1, 2, nullptr);
  two->schedule = Of({7, 8});
  PhaseState* five = states.Enter(2, 5, nullptr);
  five->schedule = Of({7, 1, 2, 3, 4});
  PhaseState* six = states.Enter(3, 6, nullptr);
  six->schedule = Of({7, 9, 1, 2, 3, 4});
  EXPECT_EQ(states.BeginsWith(7, {7, 8, 7, 8}), two);
  EXPECT_EQ(states.BeginsWith(7, {1, 2, 3, 4}), six);  // the longer one of both
  six->schedule = nullptr;
  EXPECT_EQ(states.BeginsWith(7, {1, 2, 3, 4}), five);
  EXPECT_EQ(states.BeginsWith(1, {1, 2, 3, 4}), nullptr);
  EXPECT_EQ(states.BeginsWith(7, {0, 2, 3, 4}), nullptr);
}

TEST(PhaseStates, ARememberedPhaseBeginsWhereItBeganInTheEarlierRun) {
  PhaseStates states;
  PhaseState* phase = states.Enter(1, 3, nullptr);
  phase->schedule = Of({7, 8, 9});
  phase->beginning.before = {0, 0, 5, 6};
  EXPECT_EQ(states.BeginsWith(7, {0, 0, 5, 6}), nullptr);
  phase->remembered = 1;
  EXPECT_EQ(states.BeginsWith(7, {0, 0, 5, 6}), phase);
  EXPECT_EQ(states.BeginsWith(7, {1, 2, 5, 6}), phase);  // the earlier run did not see so far back
  EXPECT_EQ(states.BeginsWith(7, {0, 0, 0, 6}), phase);  // nor this one
  EXPECT_EQ(states.BeginsWith(7, {0, 0, 6, 6}), nullptr);
  EXPECT_EQ(states.BeginsWith(8, {0, 0, 5, 6}), nullptr);
  EXPECT_EQ(states.BeginsWith(7, {9, 7, 8, 9}), phase);  // as any other
}

TEST(PhaseStates, WhatFitsIsAskedAgainWhenMoreIsInUse) {
  PhaseStates states;
  states.Enter(1, 10, nullptr)->fits = true;
  states.ForgetWhatFits();
  EXPECT_FALSE(states.Enter(1, 10, nullptr)->fits);
}

}  // namespace
}  // namespace atp::shim
