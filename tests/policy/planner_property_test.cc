// SPDX-License-Identifier: Apache-2.0
// What must hold for every trace: bounds <= the best of all schedules <= plan, and every plan is
// valid.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>

#include "policy/bounds.h"
#include "policy/lifetimes.h"
#include "policy/planner.h"
#include "policy/schedule.h"
#include "policy/validate.h"
#include "tests/policy/exhaustive.h"
#include "tests/policy/random_trace.h"

namespace atp::policy {
namespace {

constexpr double kRounding = 1e-6;

Plan PlanBlocks(const Trace& trace, Bytes memory, bool clean_leaves_free) {
  PlanOptions options;
  options.memory = memory;
  options.granule = options.largest_move = 1 << 20;
  options.clean_leaves_free = clean_leaves_free;
  return MakePlan(trace, options);
}

void ExpectValid(const Trace& trace, const Plan& plan, Bytes memory) {
  ValidateOptions options;
  options.memory = memory;
  for (const auto& problem : Validate(trace, ToSchedule(plan), options)) {
    ADD_FAILURE() << trace.name << " with " << memory << " bytes: " << problem;
  }
}

void CompareWithTheBest(uint64_t seeds, bool half_duplex) {
  RandomTraceOptions shape;
  shape.unit = 1 << 20;
  shape.most_workspace = 1;
  uint64_t searched = 0;
  double sum_of_ratios = 0, worst = 1;
  for (uint64_t seed = 0; seed < seeds; ++seed) {
    shape.launches = 2 + seed % 7;
    shape.tensors = 2 + seed % 5;
    Trace trace = RandomTrace(seed, shape);
    if (half_duplex) {
      trace.link.duplex_h2d = trace.link.h2d / 2, trace.link.duplex_d2h = trace.link.d2h / 2;
    }
    const uint32_t blocks = 2 + static_cast<uint32_t>(seed / 7 % 4);
    const Bytes memory = blocks * shape.unit;
    for (bool clean_leaves_free : {false, true}) {
      const auto best = ShortestPeriod(trace, blocks, clean_leaves_free);
      const Plan plan = PlanBlocks(trace, memory, clean_leaves_free);
      ASSERT_EQ(best.has_value(), plan.feasible) << trace.name << " " << plan.why;
      if (!best) continue;
      ExpectValid(trace, plan, memory);
      const double bound =
          clean_leaves_free ? BoundSafe(trace, memory) : BoundClosed(trace, memory);
      EXPECT_LE(bound, *best + kRounding) << trace.name << " blocks " << blocks;
      EXPECT_LE(BoundAny(trace, memory), *best + kRounding) << trace.name << " blocks " << blocks;
      EXPECT_LE(*best, plan.period_seconds + kRounding) << trace.name << " blocks " << blocks;
      ++searched;
      sum_of_ratios += plan.period_seconds / *best;
      worst = std::max(worst, plan.period_seconds / *best);
    }
  }
  EXPECT_GT(searched, seeds);
  std::printf("plan / best of all: mean %.3f, worst %.3f over %d\n",
              sum_of_ratios / static_cast<double>(searched), worst, static_cast<int>(searched));
}

TEST(PlannerProperty, TheBestOfAllSchedulesLiesBetweenTheBoundsAndThePlan) {
  CompareWithTheBest(150, false);
}

TEST(PlannerProperty, TheSameHoldsWhereTheLinkCarriesOneDirectionAtATime) {
  CompareWithTheBest(150, true);
}

TEST(PlannerProperty, EveryPlanIsValidAndNotBelowTheBounds) {
  int moved = 0;
  for (uint64_t seed = 0; seed < 120; ++seed) {
    RandomTraceOptions shape;
    shape.launches = 3 + seed * 7 % 90;
    shape.tensors = 3 + seed * 5 % 70;
    shape.touches = 4;
    shape.unit = 700 * 1024;  // no multiple of the granule
    shape.most_units = 1 + seed % 40;
    shape.most_workspace = seed % 9;
    shape.second_step = seed % 3 == 0 ? 1e-5 : 1e-3;
    shape.units_per_second = 2000;
    Trace trace = RandomTrace(seed, shape);
    if (seed % 4 == 1) trace.link.h2d *= 0.5;
    if (seed % 4 == 2)
      trace.link.duplex_h2d = trace.link.h2d * 0.6, trace.link.duplex_d2h = trace.link.d2h;
    const Lifetimes life = FindLifetimes(trace);
    const Bytes least = *std::max_element(life.touched.begin(), life.touched.end());
    const Bytes most = *std::max_element(life.live.begin(), life.live.end());
    for (int step = 0; step <= 4; ++step) {
      PlanOptions options;
      options.memory = least + (most - least) * static_cast<Bytes>(step) / 4;
      options.clean_leaves_free = seed % 2 == 1;
      const Plan plan = MakePlan(trace, options);
      ASSERT_TRUE(plan.feasible) << trace.name << " step " << step << ": " << plan.why;
      ExpectValid(trace, plan, options.memory);
      const double bound = options.clean_leaves_free ? BoundSafe(trace, options.memory)
                                                     : BoundClosed(trace, options.memory);
      EXPECT_GE(plan.period_seconds, bound * (1 - kRounding)) << trace.name << " step " << step;
      moved += plan.moved_h2d > 0;
      if (step == 4) {
        EXPECT_EQ(plan.moved_h2d, 0u);
      }
    }
  }
  EXPECT_GT(moved, 200);
}

TEST(PlannerProperty, TheSameInputGivesTheSamePlan) {
  RandomTraceOptions shape;
  shape.launches = 200, shape.tensors = 80, shape.touches = 4, shape.most_units = 30;
  shape.unit = 1 << 20, shape.units_per_second = 5000, shape.second_step = 1e-3;
  const Trace trace = RandomTrace(3, shape);
  PlanOptions options;
  const Lifetimes life = FindLifetimes(trace);
  options.memory = *std::max_element(life.touched.begin(), life.touched.end()) + (8u << 20);
  const Plan a = MakePlan(trace, options), b = MakePlan(trace, options);
  EXPECT_EQ(a.period_seconds, b.period_seconds);
  ASSERT_EQ(a.evictions.size(), b.evictions.size());
  ASSERT_GT(a.evictions.size(), 10u);
  for (size_t i = 0; i < a.evictions.size(); ++i) {
    EXPECT_EQ(a.evictions[i].tensor, b.evictions[i].tensor);
    EXPECT_EQ(a.evictions[i].offset, b.evictions[i].offset);
    EXPECT_EQ(a.evictions[i].start, b.evictions[i].start);
  }
}

}  // namespace
}  // namespace atp::policy
