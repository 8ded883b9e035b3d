// SPDX-License-Identifier: Apache-2.0
#include "policy/replay/noise.h"

#include <gtest/gtest.h>

#include <cmath>

#include "policy/replay/replay.h"
#include "policy/replay/uses.h"
#include "tests/policy/test_trace.h"

namespace atp::policy {
namespace {

Trace Many() {
  TraceBuilder b;
  for (int i = 0; i < 200; ++i) b.Global(2);
  for (uint32_t k = 0; k < 1000; ++k) b.Run(0.01, {k % 200, (k + 1) % 200}, {(k + 2) % 200});
  return b.trace();
}

size_t Touches(const Trace& trace) {
  size_t touches = 0;
  for (const Launch& l : trace.launches) touches += l.reads.size() + l.writes.size();
  return touches;
}

TEST(Noise, TheSameSeedGivesTheSameTrace) {
  const Noise noise{0.2, 0.1, 0.02, 0.05, 7, 8};
  const Trace a = Happens(Many(), noise), b = Happens(Many(), noise);
  EXPECT_EQ(a.launches[17].seconds, b.launches[17].seconds);
  EXPECT_EQ(a.link.h2d, b.link.h2d);
  EXPECT_EQ(Predicted(Many(), noise).launches[5].reads, Predicted(Many(), noise).launches[5].reads);
}

TEST(Noise, NoNoiseChangesNothing) {
  const Trace trace = Many();
  const Trace happens = Happens(trace, Noise{});
  EXPECT_EQ(happens.launches[3].seconds, trace.launches[3].seconds);
  EXPECT_EQ(Touches(Predicted(trace, Noise{})), Touches(trace));
}

TEST(Noise, TouchesAreMissedAndAddedInTheAskedShares) {
  const double all = double(Touches(Many()));
  Noise noise;
  noise.missed = 0.1;
  EXPECT_NEAR(double(Touches(Predicted(Many(), noise))) / all, 0.9, 0.02);
  noise.missed = 0;
  noise.false_touches = 0.1;
  const double added = double(Touches(Predicted(Many(), noise))) / all - 1;
  EXPECT_GT(added, 0.04);  // some of them are true by chance
  EXPECT_LT(added, 0.12);
}

TEST(Noise, AFalseTouchIsOfWhatIsAllocatedAtThatMoment) {
  TraceBuilder b;
  for (int i = 0; i < 100; ++i) b.Local(2);
  const uint32_t weight = b.Global(2);
  for (uint32_t k = 0; k < 99; ++k) b.Run(0.01, {k}, {k + 1});  // each lives for two launches
  b.Run(0.01, {weight});
  Noise noise;
  noise.false_touches = 0.5;
  const Trace predicted = Predicted(b.trace(), noise);
  EXPECT_GT(Touches(predicted), Touches(b.trace()));
  for (uint32_t k = 0; k < 99; ++k) {
    for (uint32_t t : predicted.launches[k].reads) EXPECT_TRUE(t == k || t == k + 1 || t == weight);
  }
}

TEST(Noise, DurationsScatterAroundTheTrueOnes) {
  Noise noise;
  noise.durations = 0.2;
  double sum = 0, squares = 0;
  const Trace happens = Happens(Many(), noise);
  for (const Launch& l : happens.launches) {
    const double off = l.seconds / 0.01 - 1;
    sum += off;
    squares += off * off;
  }
  EXPECT_NEAR(sum / 1000, 0, 0.03);
  EXPECT_NEAR(std::sqrt(squares / 1000), 0.18, 0.03);  // cut at two standard deviations
}

TEST(Noise, APlanFromAWrongPredictionStillCompletesWithinMemory) {
  const Trace trace = ReadTestTrace("BERT-512.jsonl");
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    const Noise noise{0.2, 0.1, 0.02, 0.05, seed, 8};
    PlanOptions plan_options;
    plan_options.head_room = 256 * kMiB;
    const Plan plan = MakePlan(Predicted(trace, noise), plan_options);
    ASSERT_TRUE(plan.feasible);
    ReplayOptions options;
    options.head_room = 256 * kMiB;
    const ReplayResult result = ReplayPlan(Happens(trace, noise), plan, options);
    ASSERT_TRUE(result.completed) << result.why;
    EXPECT_LE(result.peak, trace.device_bytes);
  }
}

}  // namespace
}  // namespace atp::policy
