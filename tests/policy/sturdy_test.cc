// SPDX-License-Identifier: Apache-2.0
#include "policy/sturdy.h"

#include <gtest/gtest.h>

#include "policy/lifetimes.h"
#include "tests/policy/test_trace.h"

namespace atp::policy {
namespace {

TEST(WithoutExcess, LeavesWhatFitsAlone) {
  TraceBuilder b;
  const uint32_t x = b.Global(4), y = b.Global(2);
  b.Run(1, {x}, {y});
  const Trace trace = WithoutExcess(b.trace(), 6 * kMiB);
  EXPECT_EQ(trace.launches[0].reads, std::vector<uint32_t>{x});
  EXPECT_EQ(trace.launches[0].writes, std::vector<uint32_t>{y});
}

TEST(WithoutExcess, TakesTheSmallestTouchThatIsEnough) {
  TraceBuilder b;
  const uint32_t small = b.Global(1), middle = b.Global(4), large = b.Global(8);
  b.Run(1, {small, middle, large}, {middle});
  const Trace trace = WithoutExcess(b.trace(), 10 * kMiB);
  EXPECT_EQ(trace.launches[0].reads, (std::vector<uint32_t>{small, large}));
  EXPECT_TRUE(trace.launches[0].writes.empty());
}

TEST(WithoutExcess, TakesTheLargestFirstWhereOneIsNotEnough) {
  TraceBuilder b;
  const uint32_t small = b.Global(2), middle = b.Global(4), large = b.Global(8);
  b.Run(1, {small, middle, large}, {});
  EXPECT_EQ(WithoutExcess(b.trace(), 4 * kMiB).launches[0].reads, std::vector<uint32_t>{middle});
}

// Eight weights one after another, of which memory holds not quite four: launches hide all that has
// to move, whether little of it moves or as much as the link can carry.
Trace Sweep() {
  TraceBuilder b;
  b.trace().device_bytes = 200 * kMiB;
  for (uint32_t i = 0; i < 8; ++i) b.Global(50);
  for (uint32_t i = 0; i < 8; ++i) b.Run(0.05, {i}, {});
  return b.trace();
}

Trace Hurried(Trace trace, double by) {
  for (Launch& launch : trace.launches) launch.seconds *= 1 - by;
  return trace;
}

TEST(SturdyPlan, IsAsFastAndMovesNoMoreThanLaunchesInAHurryWouldAllow) {
  const Trace trace = Sweep();
  PlanOptions options;
  options.head_room = 4 * kMiB;
  const Plan plain = MakePlan(trace, options);
  const Plan hurried = MakePlan(Hurried(trace, 0.2), options);
  SturdyOptions sturdy;
  sturdy.most_head_room = 4 * kMiB;
  const Plan plan = MakeSturdyPlan(trace, options, sturdy).plan;
  ASSERT_TRUE(plan.feasible) << plan.why;
  EXPECT_NEAR(plan.period_seconds, plain.period_seconds, 1e-3 * plain.period_seconds);
  EXPECT_EQ(plan.moved_h2d, hurried.moved_h2d);
  EXPECT_LT(plan.moved_h2d, plain.moved_h2d);
}

TEST(SturdyPlan, KeepsAsMuchRoomAsCostsLittle) {
  TraceBuilder b;  // one launch that is long beside what has to move
  b.trace().device_bytes = 1024 * kMiB;
  const uint32_t x = b.Global(600), y = b.Global(600);
  b.Run(100, {x}, {x}).Run(100, {y}, {y});
  const SturdyPlan roomy = MakeSturdyPlan(b.trace(), {}, {});
  ASSERT_TRUE(roomy.plan.feasible) << roomy.plan.why;
  EXPECT_EQ(roomy.head_room, 16 * kMiB);  // a 64th
  TraceBuilder bound;                     // the link is all there is
  bound.trace().device_bytes = 1024 * kMiB;
  const uint32_t p = bound.Global(514), q = bound.Global(514);
  bound.Run(1e-6, {p}, {p}).Run(1e-6, {q}, {q});
  const SturdyPlan tight = MakeSturdyPlan(bound.trace(), {}, {});
  ASSERT_TRUE(tight.plan.feasible) << tight.plan.why;
  EXPECT_EQ(tight.head_room, 4 * kMiB);
}

TEST(SturdyPlan, APredictionThatCannotBeTrueStillGetsAPlan) {
  TraceBuilder b;
  b.trace().device_bytes = 64 * kMiB;
  const uint32_t x = b.Global(40), y = b.Global(30);
  b.Run(0.1, {x, y}, {}).Run(0.1, {y}, {y});
  ASSERT_FALSE(MakePlan(b.trace(), {}).feasible);
  const SturdyPlan sturdy = MakeSturdyPlan(b.trace(), {}, {});
  EXPECT_TRUE(sturdy.plan.feasible) << sturdy.plan.why;
}

}  // namespace
}  // namespace atp::policy
