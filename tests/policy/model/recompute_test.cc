// SPDX-License-Identifier: Apache-2.0
#include "policy/model/recompute.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "policy/bounds.h"
#include "policy/replay/uses.h"
#include "tests/policy/test_trace.h"

namespace atp::policy {
namespace {

// input -> cheap -> costly, then back: 0 cheap, 1 costly, 2 filler, 3 uses costly, 4 uses cheap and
// input.
struct Shape {
  TraceBuilder b;
  uint32_t input = b.Global(10), cheap = b.Local(10), costly = b.Local(10), filler = b.Local(10);
  Shape() {
    b.Run(0.01, {input}, {cheap})
        .Run(1, {cheap}, {costly})
        .Run(1, {}, {filler})
        .Run(1, {costly})
        .Run(1, {cheap, input});
  }
};

TEST(Recompute, TheMostBytesForASecondComeFirst) {
  const Shape s;
  const auto list = Recomputable(s.b.trace());
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(list[0].tensor, s.cheap);
  EXPECT_EQ(list[0].producer, 0u);
  EXPECT_DOUBLE_EQ(list[0].seconds, 0.01);
  EXPECT_EQ(list[1].tensor, s.costly);
}

TEST(Recompute, WhatWasMadeFromChangedDataIsNotLegal) {
  Shape s;
  s.b.trace().launches[2].writes.push_back(s.input);
  for (const Recomputation& r : Recomputable(s.b.trace())) EXPECT_NE(r.tensor, s.cheap);
}

TEST(Recompute, WhatIsUpdatedInPlaceIsNotLegal) {
  Shape s;
  s.b.trace().launches[0].reads.push_back(s.cheap);
  for (const Recomputation& r : Recomputable(s.b.trace())) EXPECT_NE(r.tensor, s.cheap);
}

TEST(Recompute, WhatNeedsDeadDataIsNotLegal) {
  Shape s;
  s.b.trace().launches[4].reads = {s.input};  // now `cheap` is dead when `costly` is needed
  for (const Recomputation& r : Recomputable(s.b.trace())) EXPECT_NE(r.tensor, s.costly);
}

TEST(Recompute, OneMayNotDropWhatAnotherReads) {
  const Shape s;
  const auto list = Recomputable(s.b.trace());
  RecomputeSet set(s.b.trace());
  EXPECT_TRUE(set.Add(list[1]));   // costly needs cheap at launch 3
  EXPECT_FALSE(set.Add(list[0]));  // which is then dropped
}

TEST(Recompute, TheProducerRunsAgainJustBeforeTheUse) {
  const Shape s;
  const auto list = Recomputable(s.b.trace());
  std::vector<uint32_t> position;
  const Trace again = ApplyRecompute(s.b.trace(), {list[0]}, &position);
  ASSERT_EQ(again.launches.size(), 6u);
  EXPECT_EQ(position, (std::vector<uint32_t>{0, 1, 2, 3, 5}));
  EXPECT_EQ(again.launches[4].reads, again.launches[0].reads);
  EXPECT_EQ(again.launches[4].writes, std::vector<uint32_t>{4});  // a tensor of its own
  EXPECT_EQ(again.launches[5].reads[0], 4u);
  EXPECT_NEAR(ComputeSeconds(again), ComputeSeconds(s.b.trace()) + 0.01, 1e-9);
  EXPECT_LT(PeakLiveBytes(again), PeakLiveBytes(s.b.trace()));
}

TEST(Recompute, TheBestPlanRecomputesWhatIsCheapAndBoundByTheLink) {
  Shape s;
  s.b.trace().link.h2d = s.b.trace().link.d2h = double(kMiB);  // 10 s for a tensor
  PlanOptions options;
  options.memory = 30 * kMiB;
  const RecomputePlan best = BestRecompute(s.b.trace(), options);
  ASSERT_TRUE(best.plan.feasible);
  EXPECT_EQ(best.launches, 1u);
  EXPECT_LT(best.plan.period_seconds, MakePlan(s.b.trace(), options).period_seconds);
}

TEST(Recompute, NothingIsRecomputedWhereTheLinkHidesAll) {
  const Shape s;
  PlanOptions options;
  options.memory = 30 * kMiB;
  const RecomputePlan best = BestRecompute(s.b.trace(), options);
  EXPECT_EQ(best.launches, 0u);
  EXPECT_EQ(best.bytes, 0u);
}

}  // namespace
}  // namespace atp::policy
