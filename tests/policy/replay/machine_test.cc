// SPDX-License-Identifier: Apache-2.0
#include "policy/replay/machine.h"

#include <gtest/gtest.h>

#include "tests/policy/test_trace.h"

namespace atp::policy {
namespace {

// One tensor of 5 MiB (blocks of 2, 2 and 1) and one of 2 MiB; 1000 MiB a second each way.
class MachineTest : public ::testing::Test {
 protected:
  MachineTest() {
    b_.Global(5);
    b_.Global(2);
    b_.Run(1, {0, 1});
    options_.memory = 100 * kMiB;
  }
  Machine Make() { return Machine(b_.trace(), uses_ = Uses(b_.trace()), options_); }

  static constexpr double kForever = 1e300;
  TraceBuilder b_;
  Uses uses_{b_.trace()};
  ReplayOptions options_;
};

TEST_F(MachineTest, ATailBlockCountsItsOwnBytes) {
  const Machine machine = Make();
  EXPECT_EQ(machine.EndBlock(0) - machine.FirstBlock(0), 3u);
  EXPECT_EQ(machine.BytesOf(1), 2 * kMiB);
  EXPECT_EQ(machine.BytesOf(2), kMiB);
}

TEST_F(MachineTest, AFetchTakesItsRoomAtOnceAndArrivesAtTheRateOfTheLink) {
  Machine machine = Make();
  machine.StartFetch(0, 0);
  EXPECT_EQ(machine.used(), 2 * kMiB);
  EXPECT_TRUE(machine.Advance(kForever));
  EXPECT_DOUBLE_EQ(machine.now(), 0.002);
  EXPECT_EQ(machine.StateOf(0), Machine::State::kIn);
}

TEST_F(MachineTest, AnEvictionGivesItsRoomAtItsEnd) {
  Machine machine = Make();
  machine.Populate(0);
  machine.StartEvict(0, 0);
  EXPECT_EQ(machine.used(), 2 * kMiB);
  EXPECT_TRUE(machine.Advance(kForever));
  EXPECT_EQ(machine.used(), 0u);
  EXPECT_EQ(machine.moved(CopyDirection::kD2h), 2 * kMiB);
}

TEST_F(MachineTest, AdvanceStopsAtTheGivenTimeInsideACopy) {
  Machine machine = Make();
  machine.StartFetch(0, 0);
  EXPECT_FALSE(machine.Advance(0.0005));
  EXPECT_DOUBLE_EQ(machine.now(), 0.0005);
  EXPECT_TRUE(machine.Advance(kForever));
  EXPECT_DOUBLE_EQ(machine.now(), 0.002);
}

TEST_F(MachineTest, BothDirectionsAtOnceRunAtTheDuplexRates) {
  b_.trace().link.duplex_h2d = 500 * double(kMiB);
  b_.trace().link.duplex_d2h = 1000 * double(kMiB);
  Machine machine = Make();
  machine.Populate(3);
  machine.StartFetch(0, 0);
  machine.StartEvict(3, 0);
  // The eviction ends after 2 ms; until then half of the fetch came, the rest comes at full rate.
  EXPECT_TRUE(machine.Advance(kForever));
  EXPECT_DOUBLE_EQ(machine.now(), 0.002);
  EXPECT_EQ(machine.StateOf(3), Machine::State::kOut);
  EXPECT_TRUE(machine.Advance(kForever));
  EXPECT_NEAR(machine.now(), 0.003, 1e-12);
}

TEST_F(MachineTest, TheDriversWorkHidesBehindTheCopyBefore) {
  Machine machine = Make();
  machine.StartFetch(0, 0.001);
  machine.Advance(kForever);
  EXPECT_DOUBLE_EQ(machine.now(), 0.003);  // the first one shows
  machine.StartFetch(1, 0.001);
  machine.Advance(kForever);
  EXPECT_DOUBLE_EQ(machine.now(), 0.005);
}

TEST_F(MachineTest, TheDriversWorkShowsWhereItIsSlowerThanTheLink) {
  Machine machine = Make();
  machine.StartFetch(0, 0.010);
  machine.Advance(kForever);
  machine.StartFetch(1, 0.010);
  machine.Advance(kForever);
  EXPECT_NEAR(machine.now(), 0.022, 1e-12);
}

TEST_F(MachineTest, TheOldestArrivalIsTheFirstVictimAndProtectedTensorsTheLast) {
  Machine machine = Make();
  machine.Protect(0);
  machine.Populate(0);
  machine.Populate(3);
  auto none = [](uint32_t) { return false; };
  EXPECT_EQ(machine.OldestArrival(none), 3u);
  EXPECT_EQ(machine.OldestArrival([](uint32_t t) { return t == 1; }), 0u);
}

TEST_F(MachineTest, TheFurthestUseIsTheLastBlockOfTheTensorNeededLast) {
  Machine machine = Make();
  for (Machine::Block block : {0u, 1u, 3u}) machine.Populate(block);
  machine.SetNextUse(0, 9);
  machine.SetNextUse(1, 5);
  auto none = [](uint32_t) { return false; };
  EXPECT_EQ(machine.FurthestUse(0, none), 1u);
  EXPECT_EQ(machine.FurthestUse(9, none), Machine::kNoBlock);
  machine.DropClean(1);
  EXPECT_EQ(machine.FurthestUse(0, none), 0u);
}

TEST_F(MachineTest, DataThatDiesOnTheLinkFreesItsRoomWhenTheCopyEnds) {
  Machine machine = Make();
  machine.Populate(3);
  machine.StartEvict(3, 0);
  machine.Kill(1);
  EXPECT_EQ(machine.used(), 2 * kMiB);
  machine.Advance(kForever);
  EXPECT_EQ(machine.used(), 0u);
  EXPECT_EQ(machine.StateOf(3), Machine::State::kUnborn);
}

}  // namespace
}  // namespace atp::policy
