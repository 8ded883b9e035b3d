// SPDX-License-Identifier: Apache-2.0
#include "policy/model/throughput.h"

#include <gtest/gtest.h>

#include "policy/replay/uses.h"
#include "tests/policy/test_trace.h"

namespace atp::policy {
namespace {

Trace Training() {
  TraceBuilder b(400);
  std::vector<uint32_t> kept{b.Global(64)};
  for (int i = 0; i < 12; ++i) {
    kept.push_back(b.Local(64));
    b.Run(0.05, {kept[kept.size() - 2]}, {kept.back()});
  }
  for (size_t i = 12; i-- > 0;) b.Run(0.1, {kept[i], kept[i + 1]});
  return b.trace();
}

TEST(Throughput, TheCurveRunsFromTheLargestLaunchToTheFootprint) {
  const Trace trace = Training();
  const ThroughputCurve curve = ModelThroughput(trace, {.points = 8, .plan = {}});
  EXPECT_EQ(curve.points.front().memory, LargestLaunchBytes(trace));
  EXPECT_EQ(curve.points.back().memory, PeakLiveBytes(trace));
  EXPECT_NEAR(curve.points.back().plan_s, curve.compute_s, 1e-9);
}

TEST(Throughput, MoreMemoryIsNeverSlowerByMuch) {
  const ThroughputCurve curve = ModelThroughput(Training(), {.points = 12, .plan = {}});
  for (size_t i = 1; i < curve.points.size(); ++i) {
    EXPECT_LE(curve.points[i].bound_safe_s, curve.points[i - 1].bound_safe_s * (1 + 1e-9));
    EXPECT_LE(curve.points[i].plan_s, curve.points[i - 1].plan_s * 1.02);
  }
}

TEST(Throughput, EachPlanLiesAboveItsBounds) {
  for (const ThroughputPoint& p : ModelThroughput(Training(), {.points = 8, .plan = {}}).points) {
    ASSERT_TRUE(p.feasible);
    EXPECT_LE(p.bound_any_s, p.bound_safe_s * (1 + 1e-9));
    EXPECT_LE(p.bound_safe_s, p.plan_s * (1 + 1e-9));
    EXPECT_LE(p.best_s, p.plan_s * (1 + 1e-9));
  }
}

TEST(Throughput, TheLosslessSizeIsTheLeastThatLosesNothing) {
  const Trace trace = Training();
  const ThroughputOptions options{.points = 8, .plan = {}};
  const ThroughputCurve curve = ModelThroughput(trace, options);
  const double limit = curve.compute_s * (1 + options.loss);
  EXPECT_LE(ModelAt(trace, curve.lossless, options).plan_s, limit);
  const Bytes less = curve.lossless - curve.footprint / 20;
  EXPECT_GT(ModelAt(trace, less, options).plan_s, limit);
}

}  // namespace
}  // namespace atp::policy
