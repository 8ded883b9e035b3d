// SPDX-License-Identifier: Apache-2.0
#include "policy/model/atp_aggregate.h"

#include <gtest/gtest.h>

#include "policy/replay/uses.h"
#include "tests/policy/test_trace.h"

namespace atp::policy {
namespace {

// Four layers forward, four back, a second each; 100 MiB kept for each.
Trace Training(double mib_per_second) {
  TraceBuilder b(mib_per_second);
  std::vector<uint32_t> kept{b.Global(100)};
  for (int i = 0; i < 4; ++i) {
    kept.push_back(b.Local(100));
    b.Run(1, {kept[kept.size() - 2]}, {kept.back()});
  }
  for (size_t i = 4; i-- > 0;) b.Run(1, {kept[i], kept[i + 1]});
  return b.trace();
}

TEST(AtpAggregate, WhatFitsSwapsNothing) {
  const Trace trace = Training(100);
  const AtpPrediction p = PredictAtp(trace, PeakLiveBytes(trace));
  EXPECT_TRUE(p.feasible);
  EXPECT_EQ(p.swap + p.recompute, 0u);
  EXPECT_NEAR(p.seconds, 8, 1e-9);
}

TEST(AtpAggregate, WhatForwardHidesIsSwappedFree) {
  const Trace trace = Training(100);
  const AtpPrediction p = PredictAtp(trace, PeakLiveBytes(trace) - 100 * kMiB);
  EXPECT_EQ(p.swap, 100 * kMiB);
  EXPECT_EQ(p.recompute, 0u);
  EXPECT_NEAR(p.seconds, 8, 1e-9);
}

TEST(AtpAggregate, TheTimeIsThatOfTheFormula) {
  const Trace trace = Training(10);  // forward hides 10 MiB a second
  const AtpPrediction p = PredictAtp(trace, PeakLiveBytes(trace) - 200 * kMiB);
  ASSERT_TRUE(p.feasible);
  const double link = double(p.swap) / trace.link.d2h;
  EXPECT_NEAR(p.seconds,
              std::max(link, p.forward) + std::max(link, p.backward + p.recompute_seconds), 1e-9);
  EXPECT_EQ(p.swap + std::min(p.excess, p.recompute), p.excess);
}

TEST(AtpAggregate, MoreThanCanLeaveIsNotFeasible) {
  const Trace trace = Training(100);
  EXPECT_FALSE(PredictAtp(trace, 50 * kMiB).feasible);
}

}  // namespace
}  // namespace atp::policy
