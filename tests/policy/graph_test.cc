// SPDX-License-Identifier: Apache-2.0
#include "policy/graph.h"

#include <gtest/gtest.h>

#include "tests/policy/test_trace.h"

namespace atp::policy {
namespace {

TEST(LayeredGraph, CutsTensorsIntoSegments) {
  TraceBuilder builder;
  const uint32_t a = builder.Global(5), b = builder.Global(2);
  const LayeredGraph graph(builder.Run(1, {a, b}).trace());
  EXPECT_EQ(graph.segments(), 4u);
  EXPECT_EQ(graph.SegmentsOf(a).count, 3u);
  EXPECT_EQ(graph.SegmentsOf(b).first, 3u);
  EXPECT_EQ(graph.layers(), 1u);
}

TEST(LayeredGraph, ClassifiesEveryGap) {
  TraceBuilder builder;
  const uint32_t weight = builder.Global(2), input = builder.Global(2), out = builder.Global(2),
                 temporary = builder.Local(2);
  builder.Run(1, {input, weight}, {temporary});
  builder.Run(1, {temporary}, {out});
  builder.Run(1, {out, weight}, {weight});
  const LayeredGraph graph(builder.trace());
  ASSERT_EQ(graph.GapsOf(weight).size(), 2u);
  EXPECT_EQ(graph.GapsOf(weight)[0].gap_class, GapClass::kDirty);
  EXPECT_EQ(graph.GapsOf(weight)[0].launches_inside(), 1u);
  EXPECT_EQ(graph.GapsOf(weight)[1].to, 3u);  // wraps to launch 0 of the next period
  EXPECT_EQ(graph.GapsOf(input)[0].gap_class, GapClass::kReadOnly);
  EXPECT_EQ(graph.GapsOf(out)[1].gap_class, GapClass::kWrittenFirst);
  EXPECT_EQ(graph.GapsOf(temporary)[0].gap_class, GapClass::kDirty);
  EXPECT_EQ(graph.GapsOf(temporary)[1].gap_class, GapClass::kFreed);
}

TEST(LayeredGraph, KnowsWhenATensorIsNeededNext) {
  TraceBuilder builder;
  const uint32_t a = builder.Global(2), local = builder.Local(2), unused = builder.Global(2);
  builder.Run(1, {a}).Run(1, {}, {local}).Run(1, {local}).Run(1, {a}).Run(1, {});
  const LayeredGraph graph(builder.trace());
  EXPECT_EQ(graph.LaunchesUntilUse(a, 0), 3u);
  EXPECT_EQ(graph.LaunchesUntilUse(a, 1), 2u);
  EXPECT_EQ(graph.LaunchesUntilUse(a, 3), 2u);  // launch 0 of the next period
  EXPECT_EQ(graph.LaunchesUntilUse(local, 1), 1u);
  EXPECT_EQ(graph.LaunchesUntilUse(local, 2), 0u);  // freed
  EXPECT_EQ(graph.LaunchesUntilUse(unused, 2), 0u);
}

}  // namespace
}  // namespace atp::policy
