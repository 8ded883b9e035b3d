// SPDX-License-Identifier: Apache-2.0
#include "policy/chase.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "policy/bounds.h"
#include "policy/layout_plan.h"
#include "policy/schedule.h"
#include "policy/validate.h"
#include "tests/policy/random_trace.h"
#include "tests/policy/test_trace.h"

namespace atp::policy {
namespace {

TEST(Chase, RepeatsWithAValidPlanOrNamesAmounts) {
  int repeated = 0, named = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    RandomTraceOptions shape;
    shape.launches = 3 + seed * 7 % 60, shape.tensors = 3 + seed * 5 % 40, shape.touches = 4;
    shape.unit = 700 * 1024, shape.most_units = 1 + seed % 30, shape.most_workspace = seed % 5;
    shape.second_step = seed % 3 == 0 ? 1e-5 : 1e-3, shape.units_per_second = 2000;
    Trace trace = RandomTrace(seed, shape);
    if (seed % 2 == 1) {
      trace.link.duplex_h2d = trace.link.h2d * 0.6, trace.link.duplex_d2h = trace.link.d2h * 0.9;
    }
    const Lifetimes life = FindLifetimes(trace);
    std::vector<bool> copied;
    for (const auto& i : life.intervals) copied.push_back(seed % 3 != 0 || life.written[i.tensor]);
    const Bytes least = *std::max_element(life.touched.begin(), life.touched.end());
    const Bytes most = *std::max_element(life.live.begin(), life.live.end());
    const Bytes memory = least + (most - least) * (seed % 4) / 4 + kMiB;
    const ChaseResult chase = ChaseUses(trace, life, trace.link, copied,
                                        {static_cast<int64_t>(memory), 1 << 20, 0, 0, 1});
    if (!chase.repeats) {
      named += !chase.left.empty() && chase.left[0].size() == life.intervals.size();
      continue;
    }
    ++repeated;
    const Plan plan = ToPlan(trace, life, copied, chase.layout);
    EXPECT_GE(plan.period_seconds, BoundSafe(trace, memory) * (1 - 1e-9));
    ValidateOptions options;
    options.memory = memory;
    for (const auto& problem : Validate(trace, ToSchedule(plan), options)) {
      ADD_FAILURE() << "seed " << seed << ": " << problem;
    }
  }
  EXPECT_GT(repeated, 100);
  EXPECT_GT(named, 5);
}

TEST(Chase, KeepsBothDirectionsBusyWhereDataIsUsedInTurn) {
  TraceBuilder builder(100);  // MiB per second
  std::vector<uint32_t> tensors;
  for (int i = 0; i < 20; ++i) tensors.push_back(builder.Global(50));
  for (int pass = 0; pass < 4; ++pass) {
    for (uint32_t t : tensors) builder.Run(0.01, {t}, {t});
  }
  const Trace& trace = builder.trace();
  const Lifetimes life = FindLifetimes(trace);
  const int64_t memory = 600 * int64_t{kMiB};
  const std::vector<bool> copied(life.intervals.size(), true);
  const ChaseResult chase = ChaseUses(trace, life, trace.link, copied, {memory, kMiB, 0, 0, 1});
  ASSERT_TRUE(chase.repeats);
  // 400 MiB are fetched in each pass at least; one direction at a time would take twice as long.
  EXPECT_LE(chase.layout.period, 1.4 * 4 * 4.0);
}

}  // namespace
}  // namespace atp::policy
