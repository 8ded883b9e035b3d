// SPDX-License-Identifier: Apache-2.0
#include "policy/lp/lp_bound.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "policy/bounds.h"
#include "policy/planner.h"
#include "policy/recompute_plan.h"
#include "policy/replay/uses.h"
#include "tests/policy/exhaustive.h"
#include "tests/policy/random_trace.h"
#include "tests/policy/test_trace.h"

namespace atp::policy {
namespace {

TEST(LpBound, WhatFitsTakesTheTimeOfItsLaunches) {
  TraceBuilder b;
  const uint32_t t = b.Global(8);
  b.Run(1, {t}).Run(2, {});
  const LpBound bound = BoundSafeLp(b.trace(), 8 * kMiB);
  EXPECT_TRUE(bound.converged);
  EXPECT_NEAR(bound.seconds, 3, 1e-9);
}

TEST(LpBound, ASweepIsBoundByWhatMustComeIn) {
  TraceBuilder b(100);  // MiB a second
  for (int i = 0; i < 10; ++i) b.Global(100);
  for (uint32_t i = 0; i < 10; ++i) b.Run(0.1, {i});
  // Besides the one in use, the other nine share 200 MiB: each is at home by 2/9, and 7/9 of it
  // come in.
  const LpBound bound = BoundSafeLp(b.trace(), 300 * kMiB);
  EXPECT_TRUE(bound.converged);
  EXPECT_NEAR(bound.seconds, 10 * 7.0 / 9, 1e-6);
}

TEST(LpBound, WrittenDataCostsTheWayOutToo) {
  TraceBuilder b(100);
  for (int i = 0; i < 4; ++i) b.Global(100);
  for (uint32_t i = 0; i < 4; ++i) b.Run(0.1, {i}, {i});
  b.trace().link.d2h /= 10;
  const double written = BoundSafeLp(b.trace(), 200 * kMiB).seconds;
  for (Launch& l : b.trace().launches) l.writes.clear();
  const double clean = BoundSafeLp(b.trace(), 200 * kMiB).seconds;
  EXPECT_GT(written, 2 * clean);
  LpOptions options;
  options.clean_leaves_free = false;
  EXPECT_NEAR(BoundSafeLp(b.trace(), 200 * kMiB, options).seconds, written, 1e-6 * written);
}

TEST(LpBound, CoupledLinksRaiseIt) {
  TraceBuilder b(100);
  for (int i = 0; i < 6; ++i) b.Global(100);
  for (uint32_t i = 0; i < 6; ++i) b.Run(0.1, {i}, {i});
  const double independent = BoundSafeLp(b.trace(), 200 * kMiB).seconds;
  b.trace().link.duplex_h2d = b.trace().link.h2d / 2;
  b.trace().link.duplex_d2h = b.trace().link.d2h / 2;
  EXPECT_GT(BoundSafeLp(b.trace(), 200 * kMiB).seconds, 1.5 * independent);
}

TEST(LpBound, OnRandomTracesItLiesBetweenTheLaunchesAndThePlan) {
  RandomTraceOptions shape;
  shape.launches = 14;
  shape.tensors = 10;
  shape.unit = 2 * kMiB;
  shape.most_units = 4;
  shape.second_step = 0.004;
  shape.units_per_second = 300;
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    const Trace trace = RandomTrace(seed, shape);
    const Bytes least = LargestLaunchBytes(trace);
    const Bytes memory = least + (PeakLiveBytes(trace) - least) / 3;
    PlanOptions options;
    options.memory = memory;
    options.clean_leaves_free = true;
    const Plan plan = MakePlan(trace, options);
    if (!plan.feasible) continue;
    const LpBound bound = BoundSafeLp(trace, memory);
    ASSERT_TRUE(bound.error.empty()) << "seed " << seed << ": " << bound.error;
    EXPECT_GE(bound.seconds, ComputeSeconds(trace) * (1 - 1e-9)) << "seed " << seed;
    EXPECT_LE(bound.seconds, plan.period_seconds * (1 + 1e-6)) << "seed " << seed;
  }
}

TEST(LpBound, OnAPublicTraceItEqualsTheClosedForm) {
  const Trace trace = ReadTestTrace("BERT-512.jsonl");
  const LpBound bound = BoundSafeLp(trace, trace.device_bytes);
  const double closed = BoundSafe(trace, trace.device_bytes);
  EXPECT_NEAR(bound.seconds, closed, 1e-4 * closed);
}

TEST(LpBound, ATraceWithoutLaunchesOrRatesIsAnError) {
  EXPECT_FALSE(BoundSafeLp(Trace(), kMiB).error.empty());
}

TEST(LpBound, ALaunchThatCannotFitIsAnError) {
  TraceBuilder b;
  const uint32_t t = b.Global(8);
  b.Run(1, {t});
  EXPECT_FALSE(BoundSafeLp(b.trace(), 4 * kMiB).error.empty());
}

// Every choice of what to drop, each with the best of all its schedules.
int BestOfAllChoices(const Trace& trace, uint32_t blocks, int none, int* choices) {
  int best = none;
  const size_t candidates = std::min<size_t>(RecomputeSet(trace).candidates().size(), 5);
  for (uint32_t chosen = 1; chosen < 1u << candidates; ++chosen) {
    RecomputeSet set(trace);
    bool legal = true;
    for (size_t i = 0; i < candidates; ++i) {
      if (chosen >> i & 1) legal = legal && set.Add(set.candidates()[i]);
    }
    if (!legal) continue;
    ++*choices;
    const auto seconds = ShortestPeriod(set.Apply().trace, blocks, true);
    if (seconds) best = std::min(best, *seconds);
  }
  return best;
}

// A few blocks are made one from the other and used again backwards.
Trace SmallTraining(uint64_t seed) {
  std::mt19937_64 random(seed);
  auto below = [&](uint64_t n) { return random() % n; };
  TraceBuilder b(1);  // a block a second
  const uint32_t forward = 3 + uint32_t(below(2)), weight = b.Global(1);
  std::vector<uint32_t> made;
  for (uint32_t i = 0; i < forward; ++i) {
    made.push_back(below(4) == 0 ? b.Global(1) : b.Local(1));
    const uint32_t from = i == 0 || below(3) == 0 ? weight : made[i - 1];
    b.Run(1, {from}, {made[i]});
  }
  for (uint32_t i = forward; i-- > 0;) {
    b.Run(double(1 + below(2)), {made[i]}, {}, below(3) == 0 ? 1 : 0);
  }
  b.trace().name = std::to_string(seed);
  return b.trace();
}

TEST(LpBound, TheBestOfAllSchedulesThatRecomputeLiesBetweenItsBoundAndThePlan) {
  int choices = 0, gains = 0, raised = 0;
  for (uint64_t seed = 0; seed < 600; ++seed) {
    const Trace trace = SmallTraining(seed);
    const uint32_t blocks = 2 + uint32_t(seed % 3);
    const auto moved = ShortestPeriod(trace, blocks, true);
    if (!moved) continue;
    PlanOptions options;
    options.memory = blocks * kMiB;
    options.granule = options.largest_move = kMiB;
    options.clean_leaves_free = true;
    const LpBound bound = BoundRecomputeLp(trace, options.memory);
    ASSERT_EQ(bound.error, "") << trace.name;
    const int best = BestOfAllChoices(trace, blocks, *moved, &choices);
    EXPECT_LE(bound.seconds, best + 1e-6) << trace.name << " blocks " << blocks;
    const RecomputePlan plan = BestRecompute(trace, options);
    EXPECT_LE(best, plan.plan.period_seconds + 1e-6) << trace.name << " blocks " << blocks;
    gains += best < *moved;
    raised += bound.seconds > ComputeSeconds(trace) + 1e-6;
  }
  EXPECT_GT(choices, 300);
  EXPECT_GT(gains, 5);
  EXPECT_GT(raised, 50);
}

TEST(LpBound, WithNothingToRunAgainItIsTheBoundWithout) {
  TraceBuilder b(10);
  const uint32_t waits = b.Global(100), busy = b.Global(50);
  b.Run(1, {waits}).Run(1, {busy}).Run(1, {waits});
  RecomputeOptions none;
  none.may_run_again = {false, false, false};
  EXPECT_NEAR(BoundRecomputeLp(b.trace(), 110 * kMiB, none).seconds,
              BoundSafeLp(b.trace(), 110 * kMiB).seconds, 1e-9);
}

TEST(LpBound, WhatMayRunAgainLowersItByTheMoveLessTheRun) {
  TraceBuilder b(10);
  const uint32_t waits = b.Local(100), busy = b.Local(50);
  b.Run(1, {}, {waits}).Run(1, {}, {busy}).Run(1, {waits});
  // 40 MiB have to leave and come back, 4 s each way, 1 s of it while the launch between runs. A
  // second of running again saves 100 MiB: less than 0.4 of the first launch will do.
  EXPECT_NEAR(BoundSafeLp(b.trace(), 110 * kMiB).seconds, 3 + 7, 1e-6);
  const double recomputed = BoundRecomputeLp(b.trace(), 110 * kMiB).seconds;
  EXPECT_GT(recomputed, 3.3);
  EXPECT_LE(recomputed, 3.4);
}

}  // namespace
}  // namespace atp::policy
