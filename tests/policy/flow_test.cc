// SPDX-License-Identifier: Apache-2.0
#include "policy/flow.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "policy/bounds.h"
#include "policy/cover.h"
#include "policy/layout_plan.h"
#include "policy/schedule.h"
#include "policy/validate.h"
#include "tests/policy/random_trace.h"
#include "tests/policy/test_trace.h"

namespace atp::policy {
namespace {

struct Laid {
  bool repeats = false;
  Plan plan;
};

Laid LayOut(const Trace& trace, Bytes memory, int64_t granule, bool clean_leaves_free,
            bool put_off = false) {
  const Lifetimes life = FindLifetimes(trace);
  std::vector<bool> copied;
  for (const auto& i : life.intervals) {
    copied.push_back(!clean_leaves_free || life.written[i.tensor]);
  }
  const int64_t bytes = static_cast<int64_t>(memory);
  const auto amounts = CoverAmounts(life, {bytes, granule, 1, 1});
  Layout layout;
  Laid laid;
  laid.repeats =
      FlowLayout(trace, life, trace.link, amounts, copied, {bytes, granule, 0, put_off}, &layout);
  if (laid.repeats) laid.plan = ToPlan(trace, life, copied, layout);
  return laid;
}

TEST(FlowLayout, OfASweepKeepsTheLinkBusyAllTheTime) {
  TraceBuilder builder(100);  // MiB per second
  for (int i = 0; i < 20; ++i) builder.Run(0.01, {builder.Global(100)});
  Trace& trace = builder.trace();
  trace.link.duplex_h2d = trace.link.h2d * 0.5, trace.link.duplex_d2h = trace.link.d2h;
  const Bytes memory = 1200 * kMiB;
  const Laid laid = LayOut(trace, memory, kMiB, false);
  ASSERT_TRUE(laid.repeats);
  // Two of the twenty tensors are on their way at any time: 20/18 of the traffic of the bound.
  EXPECT_LE(laid.plan.period_seconds, 1.2 * BoundClosed(trace, memory));
  const Laid free = LayOut(trace, memory, kMiB, true);
  ASSERT_TRUE(free.repeats);
  EXPECT_EQ(free.plan.moved_d2h, 0u);
  EXPECT_LE(free.plan.period_seconds, 1.2 * BoundSafe(trace, memory));
}

// Much is dirty when the last launches begin, which wait for what they use.
TEST(FlowLayout, PutsOffCopiesOutThatWouldSlowThoseThatLaunchesWaitFor) {
  TraceBuilder builder(1000);  // MiB per second
  std::vector<uint32_t> tensors;
  for (int i = 0; i < 40; ++i) tensors.push_back(builder.Global(100));
  for (int i = 0; i < 40; ++i) builder.Run(0.1, {tensors[i]}, {tensors[i]});
  for (int i = 0; i < 40; ++i) builder.Run(0.001, {tensors[i]}, {tensors[i]});
  Trace& trace = builder.trace();
  trace.link.duplex_h2d = trace.link.h2d * 0.5, trace.link.duplex_d2h = trace.link.d2h;
  const Bytes memory = 2500 * kMiB;
  const Laid at_once = LayOut(trace, memory, 4 * kMiB, false);
  const Laid put_off = LayOut(trace, memory, 4 * kMiB, false, /*put_off=*/true);
  ASSERT_TRUE(at_once.repeats && put_off.repeats);
  EXPECT_LT(put_off.plan.period_seconds, 0.99 * at_once.plan.period_seconds);
}

TEST(FlowLayout, IsValidForRandomTraces) {
  int laid_out = 0;
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
    const Bytes least = *std::max_element(life.touched.begin(), life.touched.end());
    const Bytes most = *std::max_element(life.live.begin(), life.live.end());
    const Bytes memory = least + (most - least) * (seed % 4) / 4 + kMiB;
    const Laid laid = LayOut(trace, memory, 1 << 20, seed % 3 == 0, seed % 4 == 1);
    laid_out += laid.repeats;
    if (!laid.repeats) continue;
    ValidateOptions options;
    options.memory = memory;
    for (const auto& problem : Validate(trace, ToSchedule(laid.plan), options)) {
      ADD_FAILURE() << "seed " << seed << ": " << problem;
    }
  }
  EXPECT_GT(laid_out, 190);
}

}  // namespace
}  // namespace atp::policy
