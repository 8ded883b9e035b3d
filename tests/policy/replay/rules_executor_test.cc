// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <limits>

#include "policy/bounds.h"
#include "policy/replay/replay.h"
#include "policy/replay/uses.h"
#include "tests/policy/random_trace.h"
#include "tests/policy/test_trace.h"

namespace atp::policy {
namespace {

// Two tensors of 4 MiB that take turns in memory for one; 1000 MiB a second.
TraceBuilder TwoInTurn() {
  TraceBuilder b;
  const uint32_t first = b.Global(4), second = b.Global(4);
  b.Run(0.1, {first}).Run(0.1, {second});
  return b;
}

ReplayOptions With(Bytes memory) {
  ReplayOptions options;
  options.memory = memory;
  return options;
}

TEST(RulesReplay, TheStockDriverMissesEverythingOfACycleLargerThanMemory) {
  const ReplayResult result = ReplayRules(TwoInTurn().trace(), Rules(), With(4 * kMiB));
  ASSERT_TRUE(result.completed) << result.why;
  EXPECT_EQ(result.fault_blocks, 4u);
  EXPECT_EQ(result.forced_evictions, 4u);
  EXPECT_EQ(result.h2d, 8 * kMiB);
  EXPECT_EQ(result.d2h, 8 * kMiB);
}

TEST(RulesReplay, FaultsOfAPeriodTakeWhatTheFormulaSays) {
  const DriverCosts costs;
  const ReplayResult result = ReplayRules(TwoInTurn().trace(), Rules(), With(4 * kMiB));
  // For each tensor one batch, and for each block its service, an eviction and a copy each way, in
  // turn.
  const double blocks = 4, batches = 2, copy = 0.002;
  const double expected = 0.2 + batches * costs.batch_seconds +
                          blocks * (costs.fault_seconds + costs.evict_seconds + 2 * copy);
  EXPECT_NEAR(result.stall_seconds, expected - 0.2, 1e-9);
}

TEST(RulesReplay, WithoutDensityPrefetchEachPageFaults) {
  Rules rules;
  rules.density_prefetch = false;
  const ReplayResult with = ReplayRules(TwoInTurn().trace(), Rules(), With(4 * kMiB));
  const ReplayResult without = ReplayRules(TwoInTurn().trace(), rules, With(4 * kMiB));
  EXPECT_GT(without.fault_batches, with.fault_batches);
  EXPECT_GT(without.period_seconds, with.period_seconds);
}

TEST(RulesReplay, WhatFitsFaultsOnlyOnce) {
  const ReplayResult result = ReplayRules(TwoInTurn().trace(), Rules(), With(8 * kMiB));
  EXPECT_EQ(result.fault_blocks, 0u);
  EXPECT_NEAR(result.period_seconds, 0.2, 1e-9);
}

TEST(RulesReplay, AFirstTouchFaultsUnlessItIsPlacedAhead) {
  TraceBuilder b;
  const uint32_t local = b.Local(4);
  b.Run(0.1, {}, {local}).Run(0.1, {local});
  EXPECT_EQ(ReplayRules(b.trace(), Rules(), With(8 * kMiB)).fault_blocks, 2u);
  Rules ahead;
  ahead.prefetch_ahead = ahead.populate_ahead = 1;
  EXPECT_EQ(ReplayRules(b.trace(), ahead, With(8 * kMiB)).fault_blocks, 0u);
}

TEST(RulesReplay, PrefetchingAheadHidesCopiesBehindLaunches) {
  TraceBuilder b;
  for (int i = 0; i < 6; ++i) b.Global(4);
  for (uint32_t i = 0; i < 6; ++i) b.Run(0.1, {i});
  Rules ahead;
  ahead.prefetch_ahead = 2;
  ahead.keep_ahead = 2;
  ahead.populate_ahead = 1;
  const ReplayResult stock = ReplayRules(b.trace(), Rules(), With(16 * kMiB));
  const ReplayResult result = ReplayRules(b.trace(), ahead, With(16 * kMiB));
  EXPECT_EQ(result.fault_blocks, 0u);
  EXPECT_LT(result.stall_seconds, stock.stall_seconds / 2);
}

TEST(RulesReplay, TheFurthestUseMovesLessThanTheOldestArrivalOnACycle) {
  TraceBuilder b;
  for (int i = 0; i < 8; ++i) b.Global(4);
  for (uint32_t i = 0; i < 8; ++i) b.Run(0.1, {i});
  Rules furthest;
  furthest.victim = Rules::Victim::kFurthestUse;
  const ReplayResult lru = ReplayRules(b.trace(), Rules(), With(24 * kMiB));
  const ReplayResult belady = ReplayRules(b.trace(), furthest, With(24 * kMiB));
  EXPECT_EQ(lru.h2d, 32 * kMiB);  // all of it
  EXPECT_LT(belady.h2d, lru.h2d / 2);
}

TEST(RulesReplay, APolicyThatDoesNotRepeatItselfIsGivenTheMeanOfItsPeriods) {
  // Seven tensors in turn, room for six: by furthest use, what stays moves on from turn to turn.
  TraceBuilder b;
  for (int i = 0; i < 7; ++i) b.Global(4);
  for (uint32_t i = 0; i < 7; ++i) b.Run(0.001, {i});
  Rules furthest;
  furthest.prefetch_ahead = std::numeric_limits<uint32_t>::max();
  furthest.victim = Rules::Victim::kFurthestUse;
  ReplayOptions options = With(24 * kMiB);
  const ReplayResult few = ReplayRules(b.trace(), furthest, options);
  options.periods = 12;
  const ReplayResult many = ReplayRules(b.trace(), furthest, options);
  EXPECT_EQ(few.period_seconds, many.period_seconds);
  EXPECT_EQ(few.h2d, many.h2d);
  // With whole blocks one period moves another number of them than the next.
  EXPECT_NE(few.h2d % (2 * kMiB), 0u);
}

TEST(RulesReplay, RemoteDataIsReadOverTheLinkAndTakesNoRoom) {
  Rules rules;
  rules.remote = {true, false};
  rules.populate_ahead = 1;
  const ReplayResult result = ReplayRules(TwoInTurn().trace(), rules, With(4 * kMiB));
  ASSERT_TRUE(result.completed) << result.why;
  EXPECT_EQ(result.remote_h2d, 4 * kMiB);
  EXPECT_EQ(result.h2d, 0u);
  EXPECT_NEAR(result.period_seconds, 0.2 + 0.004, 1e-9);
}

TEST(RulesReplay, NoPolicyIsFasterThanBoundSafeAndEachCompletes) {
  RandomTraceOptions shape;
  shape.launches = 12;
  shape.tensors = 10;
  shape.unit = 2 * kMiB;
  shape.most_units = 6;
  shape.most_workspace = 2;
  shape.second_step = 0.004;
  shape.units_per_second = 500;
  Rules ahead;
  ahead.prefetch_ahead = std::numeric_limits<uint32_t>::max();
  ahead.populate_ahead = 4;
  ahead.victim = Rules::Victim::kFurthestUse;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    const Trace trace = RandomTrace(seed, shape);
    const Bytes least = LargestLaunchBytes(trace);
    const Bytes memory = least + (PeakLiveBytes(trace) - least) / 3;
    for (const Rules& rules : {Rules(), ahead}) {
      const ReplayResult result = ReplayRules(trace, rules, With(memory));
      ASSERT_TRUE(result.completed) << "seed " << seed << ": " << result.why;
      EXPECT_GE(result.period_seconds, ComputeSeconds(trace) * (1 - 1e-9)) << "seed " << seed;
      EXPECT_LE(result.peak, memory) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace atp::policy
