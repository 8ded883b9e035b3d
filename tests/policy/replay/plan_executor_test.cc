// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "policy/bounds.h"
#include "policy/planner.h"
#include "policy/replay/replay.h"
#include "policy/replay/uses.h"
#include "tests/policy/random_trace.h"
#include "tests/policy/test_trace.h"

namespace atp::policy {
namespace {

// The machine that planner and bounds speak of: nothing costs but the link.
ReplayOptions Ideal(Bytes memory) {
  ReplayOptions options;
  options.memory = memory;
  options.costs = {0, 0, 0, 0, 0, 256, 32, 512};
  return options;
}

Plan PlanFor(const Trace& trace, Bytes memory) {
  PlanOptions options;
  options.memory = memory;
  return MakePlan(trace, options);
}

Trace Training(int layers) {
  TraceBuilder b;
  std::vector<uint32_t> kept{b.Global(64)};
  for (int i = 0; i < layers; ++i) {
    kept.push_back(b.Local(64));
    b.Run(0.05, {kept[kept.size() - 2]}, {kept.back()});
  }
  for (int i = layers; i-- > 0;) b.Run(0.1, {kept[size_t(i)], kept[size_t(i) + 1]});
  return b.trace();
}

TEST(PlanReplay, WhatFitsTakesTheTimeOfItsLaunches) {
  const Trace trace = Training(4);
  const Bytes memory = PeakLiveBytes(trace);
  const ReplayResult result = ReplayPlan(trace, PlanFor(trace, memory), Ideal(memory));
  ASSERT_TRUE(result.completed) << result.why;
  EXPECT_NEAR(result.period_seconds, ComputeSeconds(trace), 1e-9);
  EXPECT_EQ(result.h2d + result.d2h, 0u);
}

TEST(PlanReplay, APlanTakesNoMoreThanTheTimeThatThePlannerSays) {
  const Trace trace = Training(16);
  for (Bytes share : {3, 5, 8}) {
    const Bytes memory = PeakLiveBytes(trace) * share / 10;
    const Plan plan = PlanFor(trace, memory);
    const ReplayResult result = ReplayPlan(trace, plan, Ideal(memory));
    ASSERT_TRUE(result.completed) << result.why;
    // Never later; a little earlier where the plan reserves room in steps larger than blocks.
    EXPECT_LE(result.period_seconds, plan.period_seconds * (1 + 1e-4));
    EXPECT_GE(result.period_seconds, plan.period_seconds * 0.99);
    EXPECT_EQ(result.fault_blocks, 0u);
    EXPECT_EQ(result.forced_evictions, 0u);
    EXPECT_LE(result.peak, memory);
  }
}

Move MoveOf(Move::Kind kind, uint32_t tensor, uint32_t after, uint32_t before, double start,
            double end) {
  return {kind, tensor, 0, 64 * kMiB, after, before, start, end};
}

TEST(PlanReplay, AFetchDoesNotWaitForItsPlannedTimeWhereTheRoomIsFree) {
  TraceBuilder b;
  const uint32_t x = b.Global(64);
  b.Run(0.1, {x}).Run(0.2, {}).Run(0.1, {x});
  Plan plan;
  plan.period_seconds = 0.4;
  plan.launch_start = {0, 0.1, 0.3}, plan.launch_end = {0.1, 0.3, 0.4};
  plan.evictions = {MoveOf(Move::Kind::kEvict, x, 0, 2, 0.1, 0.164)};
  plan.fetches = {MoveOf(Move::Kind::kFetch, x, 0, 2, 0.236, 0.3)};
  plan.initially_resident = {{x, 0, 64 * kMiB}};
  b.trace().launches[1].seconds = 0.13;  // shorter than planned
  const ReplayResult result = ReplayPlan(b.trace(), plan, Ideal(128 * kMiB));
  ASSERT_TRUE(result.completed) << result.why;
  EXPECT_EQ(result.h2d, 64 * kMiB);
  EXPECT_NEAR(result.period_seconds, 0.33, 1e-9);  // 0.136 into launch 1 it would have ended late
}

TEST(PlanReplay, AnEarlyFetchLeavesRoomForWhatIsBornBeforeItsPlannedTime) {
  TraceBuilder b;
  const uint32_t x = b.Global(64), y = b.Local(96);
  b.Run(0.1, {x}).Run(0.2, {}).Run(0.1, {}, {y}).Run(0.1, {x});
  Plan plan;
  plan.period_seconds = 0.564;
  plan.launch_start = {0, 0.1, 0.3, 0.464}, plan.launch_end = {0.1, 0.3, 0.4, 0.564};
  plan.evictions = {MoveOf(Move::Kind::kEvict, x, 0, 3, 0.1, 0.164)};
  plan.fetches = {MoveOf(Move::Kind::kFetch, x, 0, 3, 0.4, 0.464)};
  plan.initially_resident = {{x, 0, 64 * kMiB}};
  const ReplayResult result = ReplayPlan(b.trace(), plan, Ideal(128 * kMiB));
  ASSERT_TRUE(result.completed) << result.why;
  EXPECT_EQ(result.forced_evictions, 0u);
  EXPECT_NEAR(result.period_seconds, 0.564 - 0.032, 1e-9);  // what fits beside y comes early
}

TEST(PlanReplay, AnEvictionThatIsDueWhileALaunchUsesItsTensorFollowsThatLaunch) {
  TraceBuilder b;
  const uint32_t x = b.Global(64), y = b.Local(96);
  b.Run(0.1, {x})
      .Run(0.2, {x})
      .Run(0.2, {}, {y})
      .Run(0.1, {x});  // the use by launch 1 is a surprise
  Plan plan;
  plan.period_seconds = 0.664;
  plan.launch_start = {0, 0.1, 0.3, 0.564}, plan.launch_end = {0.1, 0.3, 0.5, 0.664};
  plan.evictions = {MoveOf(Move::Kind::kEvict, x, 0, 3, 0.1, 0.164)};
  plan.fetches = {MoveOf(Move::Kind::kFetch, x, 0, 3, 0.5, 0.564)};
  plan.initially_resident = {{x, 0, 64 * kMiB}};
  const ReplayResult result = ReplayPlan(b.trace(), plan, Ideal(128 * kMiB));
  ASSERT_TRUE(result.completed) << result.why;
  EXPECT_EQ(result.forced_evictions, 0u);
  EXPECT_EQ(result.d2h, 64 * kMiB);
}

TEST(PlanReplay, WhatALaunchAheadWillLackLeavesBeforeThatLaunchWaits) {
  TraceBuilder b;
  const uint32_t x = b.Global(64), y = b.Local(96);
  b.Run(0.1, {x}).Run(0.2, {}).Run(0.2, {}, {y});
  Plan plan;  // which does not know of y
  plan.period_seconds = 0.5;
  plan.launch_start = {0, 0.1, 0.3}, plan.launch_end = {0.1, 0.3, 0.5};
  plan.initially_resident = {{x, 0, 64 * kMiB}};
  const ReplayResult result = ReplayPlan(b.trace(), plan, Ideal(128 * kMiB));
  ASSERT_TRUE(result.completed) << result.why;
  EXPECT_EQ(result.d2h, 32 * kMiB);
  EXPECT_NEAR(result.launch_start[2], result.launch_end[1], 1e-9);
}

TEST(PlanReplay, RoomIsMadeAtOnceThoughAFetchIsPlannedForLater) {
  TraceBuilder b;
  const uint32_t x = b.Global(64), y = b.Local(96), z = b.Global(64);
  b.Run(0.1, {x}).Run(0.1, {}, {y}).Run(0.1, {z});
  Plan plan;
  plan.period_seconds = 10.1;
  plan.launch_start = {0, 6, 10}, plan.launch_end = {0.1, 6.1, 10.1};
  plan.fetches = {MoveOf(Move::Kind::kFetch, z, 2, 2, 5, 5.064)};
  plan.initially_resident = {{x, 0, 64 * kMiB}};
  const ReplayResult result = ReplayPlan(b.trace(), plan, Ideal(128 * kMiB));
  ASSERT_TRUE(result.completed) << result.why;
  EXPECT_LT(result.launch_start[1], 0.5);
}

TEST(PlanReplay, FetchesOfALaunchTakeRoomBeforeWhatIsBornInIt) {
  // A growing cache: each launch has data brought, and bears some, and nothing is long enough to
  // hide it. Each birth that came first would delay its launch by a block.
  TraceBuilder b;
  std::vector<uint32_t> weights, caches;
  for (int layer = 0; layer < 8; ++layer) weights.push_back(b.Global(16));
  for (int step = 0; step < 3; ++step) {
    for (size_t layer = 0; layer < 8; ++layer) {
      caches.push_back(b.Local(16));
      b.Run(0.0001, {weights[layer]}, {caches.back()});
      auto& reads = b.trace().launches.back().reads;
      for (size_t i = layer; i + 1 < caches.size(); i += 8) reads.push_back(caches[i]);
    }
  }
  const Bytes memory = 121 * kMiB;
  const Plan plan = PlanFor(b.trace(), memory);
  const ReplayResult result = ReplayPlan(b.trace(), plan, Ideal(memory));
  ASSERT_TRUE(result.completed) << result.why;
  EXPECT_LE(result.period_seconds, plan.period_seconds * (1 + 1e-4));
}

TEST(PlanReplay, WhatIsMappedTakesNoRoomAndTheTimeThatThePlannerSays) {
  TraceBuilder b(100);
  std::vector<uint32_t> caches;
  for (int i = 0; i < 8; ++i) caches.push_back(b.Global(20));
  for (int i = 0; i < 8; ++i) b.Run(0.001, {caches[size_t(i)]}, {caches[size_t(i + 1) % 8]});
  PlanOptions options;
  options.memory = 42 * kMiB;
  options.may_map = true;
  const Plan plan = MakePlan(b.trace(), options);
  ASSERT_FALSE(plan.mapped.empty()) << plan.period_seconds;
  const ReplayResult result = ReplayPlan(b.trace(), plan, Ideal(options.memory));
  ASSERT_TRUE(result.completed) << result.why;
  EXPECT_NEAR(result.period_seconds, plan.period_seconds, 1e-9);
  EXPECT_EQ(result.remote_h2d, plan.mapped_h2d);
  EXPECT_EQ(result.remote_d2h, plan.mapped_d2h);
  EXPECT_EQ(result.h2d + result.d2h, 0u);
  EXPECT_LE(result.peak, options.memory);
}

TEST(PlanReplay, NoReplayIsFasterThanBoundSafe) {
  RandomTraceOptions shape;
  shape.launches = 12;
  shape.tensors = 10;
  shape.unit = 2 * kMiB;
  shape.most_units = 6;
  shape.second_step = 0.004;
  shape.units_per_second = 500;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    const Trace trace = RandomTrace(seed, shape);
    const Bytes most = PeakLiveBytes(trace), least = LargestLaunchBytes(trace);
    const Bytes memory = least + (most - least) / 3;
    const Plan plan = PlanFor(trace, memory);
    if (!plan.feasible) continue;
    ReplayOptions options = Ideal(memory);
    options.periods = 6;
    const ReplayResult result = ReplayPlan(trace, plan, options);
    ASSERT_TRUE(result.completed) << "seed " << seed << ": " << result.why;
    EXPECT_GE(result.period_seconds, BoundSafe(trace, memory) * (1 - 1e-9)) << "seed " << seed;
    EXPECT_LE(result.peak, memory) << "seed " << seed;
  }
}

TEST(PlanReplay, WhatThePlanDoesNotBringComesByFaults) {
  const Trace trace = Training(8);
  const Bytes memory = PeakLiveBytes(trace) / 2;
  Plan plan = PlanFor(trace, memory);
  ASSERT_FALSE(plan.fetches.empty());
  plan.fetches.clear();
  const ReplayResult result = ReplayPlan(trace, plan, Ideal(memory));
  ASSERT_TRUE(result.completed) << result.why;
  EXPECT_GT(result.fault_blocks, 0u);
}

TEST(PlanReplay, WithoutEvictionsRoomIsMadeByForce) {
  const Trace trace = Training(8);
  const Bytes memory = PeakLiveBytes(trace) / 2;
  Plan plan = PlanFor(trace, memory);
  plan.evictions.clear();
  const ReplayResult result = ReplayPlan(trace, plan, Ideal(memory));
  ASSERT_TRUE(result.completed) << result.why;
  EXPECT_GT(result.forced_evictions, 0u);
  EXPECT_LE(result.peak, memory);
}

TEST(PlanReplay, ALaunchThatCannotFitIsNamed) {
  const Trace trace = Training(2);
  const Plan plan = PlanFor(trace, PeakLiveBytes(trace));
  const ReplayResult result = ReplayPlan(trace, plan, Ideal(100 * kMiB));
  EXPECT_FALSE(result.completed);
  EXPECT_NE(result.why.find("launch 0"), std::string::npos) << result.why;
}

TEST(PlanReplay, APlanForAnotherTraceIsRefused) {
  const ReplayResult result =
      ReplayPlan(Training(2), PlanFor(Training(3), 1 << 30), Ideal(1 << 30));
  EXPECT_FALSE(result.completed);
}

TEST(PlanReplay, ATraceWithoutLaunchesIsRefused) {
  EXPECT_FALSE(ReplayPlan(Trace(), Plan(), Ideal(1 << 30)).completed);
}

TEST(PlanReplay, CleanDataLeavesFreeUnderReadMostly) {
  TraceBuilder b;
  const uint32_t first = b.Global(64), second = b.Global(64);
  b.Run(1, {first}).Run(1, {second});
  PlanOptions plan_options;
  plan_options.memory = 100 * kMiB;
  plan_options.clean_leaves_free = true;
  const Plan plan = MakePlan(b.trace(), plan_options);
  ASSERT_TRUE(plan.feasible);
  ReplayOptions options = Ideal(100 * kMiB);
  options.clean_leaves_free = true;
  const ReplayResult result = ReplayPlan(b.trace(), plan, options);
  ASSERT_TRUE(result.completed) << result.why;
  EXPECT_EQ(result.d2h, 0u);
  EXPECT_GT(result.h2d, 0u);
}

TEST(PlanReplay, ALaunchThatOverlapsItsTransfersIsNeverSlower) {
  const Trace trace = Training(16);
  const Bytes memory = PeakLiveBytes(trace) * 3 / 10;
  const Plan plan = PlanFor(trace, memory);
  ReplayOptions options = Ideal(memory);
  const double strict = ReplayPlan(trace, plan, options).period_seconds;
  options.rule = LaunchRule::kOverlapOwn;
  EXPECT_LE(ReplayPlan(trace, plan, options).period_seconds, strict * (1 + 1e-9));
}

TEST(PlanReplay, TheTimelineAddsUpToWhatMoved) {
  const Trace trace = Training(16);
  const Bytes memory = PeakLiveBytes(trace) / 2;
  ReplayOptions options = Ideal(memory);
  options.timeline = true;
  const ReplayResult result = ReplayPlan(trace, PlanFor(trace, memory), options);
  Bytes moved = 0;
  for (const TransferRun& run : result.transfers) moved += run.bytes;
  EXPECT_EQ(moved, result.h2d + result.d2h);
  EXPECT_FALSE(result.residency.empty());
  for (const ResidencySample& sample : result.residency) EXPECT_LE(sample.bytes, memory);
}

TEST(PlanReplay, APublicTraceRunsAsPlanned) {
  const Trace trace = ReadTestTrace("BERT-512.jsonl");
  const Plan plan = PlanFor(trace, trace.device_bytes);
  const ReplayResult result = ReplayPlan(trace, plan, Ideal(trace.device_bytes));
  ASSERT_TRUE(result.completed) << result.why;
  EXPECT_NEAR(result.period_seconds, plan.period_seconds, 1e-4 * plan.period_seconds);
  EXPECT_EQ(result.fault_blocks, 0u);
}

}  // namespace
}  // namespace atp::policy
