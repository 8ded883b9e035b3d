// SPDX-License-Identifier: Apache-2.0
#include "policy/lp/lp_bound.h"

#include <gtest/gtest.h>

#include "policy/bounds.h"
#include "policy/planner.h"
#include "policy/replay/uses.h"
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

}  // namespace
}  // namespace atp::policy
