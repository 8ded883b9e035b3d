// SPDX-License-Identifier: Apache-2.0
#include "policy/mapped.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "policy/bounds.h"
#include "tests/policy/random_trace.h"
#include "tests/policy/test_trace.h"

namespace atp::policy {
namespace {

// A growing cache: each launch reads all that those before it wrote, and memory holds little more
// than the largest.
Trace Decode() {
  TraceBuilder b(100);
  std::vector<uint32_t> caches;
  for (int step = 0; step < 4; ++step) {
    for (int layer = 0; layer < 6; ++layer) {
      caches.push_back(b.Local(10));
      const size_t now = caches.size() - 1;
      b.Run(0.001, {}, {caches[now]});
      auto& reads = b.trace().launches.back().reads;
      for (size_t before = now; before >= 6; before -= 6) reads.push_back(caches[before - 6]);
    }
  }
  return b.trace();
}

std::vector<bool> Mapped(const Trace& trace, const Plan& plan) {
  std::vector<bool> mapped(trace.tensors.size(), false);
  for (uint32_t t : plan.mapped) mapped[t] = true;
  return mapped;
}

TEST(Mapped, WhatStaysOnTheDeviceFitsAtEveryLaunch) {
  RandomTraceOptions shape;
  shape.launches = 20, shape.tensors = 12, shape.most_workspace = 2;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    Trace trace = RandomTrace(seed, shape);
    const Bytes memory = 12 * shape.unit;
    const Plan plan = MappedPlan(trace, memory, {});
    ASSERT_TRUE(plan.feasible);
    const std::vector<bool> mapped = Mapped(trace, plan);
    for (size_t k = 0; k < trace.launches.size(); ++k) {
      Bytes held = trace.launches[k].workspace;
      for (size_t t = 0; t < trace.tensors.size(); ++t) {
        size_t first = trace.launches.size(), last = 0;
        for (size_t j = 0; j < trace.launches.size(); ++j) {
          for (const auto* list : {&trace.launches[j].reads, &trace.launches[j].writes}) {
            if (std::find(list->begin(), list->end(), t) == list->end()) continue;
            first = std::min(first, j), last = j;
          }
        }
        if (first > last || mapped[t]) continue;
        if (trace.tensors[t].global || (first <= k && k <= last)) held += trace.tensors[t].bytes;
      }
      EXPECT_LE(held, memory) << trace.name << " launch " << k;
    }
    EXPECT_GE(plan.period_seconds, BoundAny(trace, memory) * (1 - 1e-9)) << trace.name;
  }
}

TEST(Mapped, ALaunchTakesLongerByWhatItAccessesOverTheLink) {
  TraceBuilder b(100);
  const uint32_t small = b.Global(10), large = b.Global(90), result = b.Global(50);
  b.Run(1, {small, large}, {result}).Run(1, {small});
  const Plan plan = MappedPlan(b.trace(), 20 * kMiB, {});
  EXPECT_EQ(plan.mapped, (std::vector<uint32_t>{large, result}));
  EXPECT_NEAR(plan.period_seconds, 2 + 0.9, 1e-9);  // in and out at once
  EXPECT_EQ(plan.mapped_h2d, 90 * kMiB);
  EXPECT_EQ(plan.mapped_d2h, 50 * kMiB);
  EXPECT_NEAR(plan.launch_end[0], 1.9, 1e-9);
}

TEST(Mapped, WhatTheCallerCannotAdviseStaysOnTheDevice) {
  TraceBuilder b(100);
  const uint32_t often = b.Global(60), seldom = b.Global(60);
  b.Run(1, {often, seldom}).Run(1, {often}).Run(1, {often});
  PlanOptions options;
  EXPECT_EQ(MappedPlan(b.trace(), 100 * kMiB, options).mapped, std::vector<uint32_t>{seldom});
  options.never_advised = {seldom};
  EXPECT_EQ(MappedPlan(b.trace(), 100 * kMiB, options).mapped, std::vector<uint32_t>{often});
  options.never_advised = {often, seldom};
  EXPECT_FALSE(MappedPlan(b.trace(), 100 * kMiB, options).feasible);
}

TEST(Mapped, ThePlannerTakesItOnlyWhenAskedAndWhereItIsFaster) {
  const Trace trace = Decode();
  PlanOptions options;
  options.memory = 50 * kMiB;
  options.granule = options.largest_move = kMiB;
  const Plan moving = MakePlan(trace, options);
  ASSERT_TRUE(moving.feasible);
  EXPECT_TRUE(moving.mapped.empty());
  options.may_map = true;
  const Plan plan = MakePlan(trace, options);
  EXPECT_FALSE(plan.mapped.empty());
  EXPECT_LT(plan.period_seconds, moving.period_seconds);
  EXPECT_TRUE(plan.fetches.empty() && plan.evictions.empty());
  options.memory = 100 * kMiB * 3;
  EXPECT_TRUE(MakePlan(trace, options).mapped.empty());  // all fits
}

}  // namespace
}  // namespace atp::policy
