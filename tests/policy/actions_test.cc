// SPDX-License-Identifier: Apache-2.0
#include "policy/actions.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "tests/policy/test_trace.h"

namespace atp::policy {
namespace {

using Kind = Action::Kind;

// Weights that are read in turn, more than memory, and a local result in each launch.
Trace Sweep() {
  TraceBuilder b(100);
  std::vector<uint32_t> weights;
  for (int i = 0; i < 10; ++i) weights.push_back(b.Global(20));
  for (uint32_t w : weights) {
    const uint32_t result = b.Local(2);
    b.Run(0.1, {w}, {result});
    b.Run(0.1, {result});
  }
  return b.trace();
}

Plan PlanFor(const Trace& trace, Bytes memory, bool clean_leaves_free = true) {
  PlanOptions options;
  options.memory = memory;
  options.clean_leaves_free = clean_leaves_free;
  return MakePlan(trace, options);
}

TEST(Actions, EachMoveBecomesACallAtALaunchBeforeItsDeadline) {
  const Trace trace = Sweep();
  const Plan plan = PlanFor(trace, 120 * kMiB, false);
  ASSERT_TRUE(plan.feasible);
  ASSERT_FALSE(plan.fetches.empty());
  size_t evictions = 0, fetches = 0;
  for (const Action& a : ToActions(trace, plan)) {
    evictions += a.kind == Kind::kEvict;
    fetches += a.kind == Kind::kPrefetch;
    EXPECT_LE(a.start, a.deadline + 1e-9);
    if (a.kind == Kind::kPrefetch) {
      const double use = plan.launch_start[a.launch];
      EXPECT_TRUE(a.deadline == use || a.deadline == use + plan.period_seconds);
    }
  }
  EXPECT_EQ(evictions, plan.evictions.size());
  EXPECT_EQ(fetches, plan.fetches.size());
}

TEST(Actions, WhatLeavesForFreeIsAdvisedFirst) {
  const Trace trace = Sweep();
  const Plan plan = PlanFor(trace, 120 * kMiB);
  const auto actions = ToActions(trace, plan);
  ASSERT_FALSE(plan.advised.empty());
  for (size_t i = 0; i < plan.advised.size(); ++i) {
    EXPECT_EQ(actions[i].kind, Kind::kAdviseReadMostly);
    EXPECT_EQ(actions[i].tensor, plan.advised[i]);
  }
}

TEST(Actions, WhatMovesOrIsTouchedIsTheWholeOfEachTensorThatIsUsed) {
  const Trace trace = Sweep();
  const Plan plan = PlanFor(trace, 120 * kMiB);
  std::map<uint32_t, Bytes> fetched, touched;
  for (const Action& a : ToActions(trace, plan)) {
    if (a.kind == Kind::kPrefetch) fetched[a.tensor] += a.bytes;
    if (a.kind == Kind::kTouch) touched[a.tensor] += a.bytes;
  }
  ASSERT_FALSE(fetched.empty());
  ASSERT_FALSE(touched.empty());
  for (uint32_t t = 0; t < trace.tensors.size(); ++t) {
    EXPECT_EQ(fetched[t] + touched[t], trace.tensors[t].bytes) << t;
  }
}

TEST(Actions, DeadDataIsDiscardedAfterItsLastUse) {
  TraceBuilder b;
  const uint32_t again = b.Local(4), once = b.Local(4), kept = b.Global(4);
  b.Run(0.1, {}, {again})
      .Run(0.1, {again}, {kept})
      .Run(0.1, {}, {again})
      .Run(0.1, {again, kept}, {once});
  const Plan plan = PlanFor(b.trace(), 64 * kMiB);
  std::multimap<uint32_t, uint32_t> discards;
  for (const Action& a : ToActions(b.trace(), plan)) {
    EXPECT_EQ(a.kind, Kind::kDiscard);  // all fits: nothing moves, nothing needs a touch
    discards.insert({a.tensor, a.launch});
  }
  const std::multimap<uint32_t, uint32_t> expected{{again, 1}, {again, 3}, {once, 3}};
  EXPECT_EQ(discards, expected);
}

TEST(Actions, WhatIsMappedIsAdvisedToStayOnTheHost) {
  const Trace trace = Sweep();
  Plan plan = PlanFor(trace, 400 * kMiB);
  plan.mapped = {3};
  const auto actions = ToActions(trace, plan);
  EXPECT_EQ(actions.front().kind, Kind::kAdviseHost);
  EXPECT_EQ(actions.front().tensor, 3u);
}

}  // namespace
}  // namespace atp::policy
