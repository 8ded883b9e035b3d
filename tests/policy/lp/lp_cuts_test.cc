// SPDX-License-Identifier: Apache-2.0
#include "policy/lp/lp_cuts.h"

#include <gtest/gtest.h>

#include "tests/policy/test_trace.h"

namespace atp::policy {
namespace {

// 100 MiB wait during one launch of a second; 10 MiB a second.
LpModel Tight(Bytes memory_mib) {
  TraceBuilder b(10);
  const uint32_t waits = b.Global(100), busy = b.Global(50);
  b.Run(1, {waits}).Run(1, {busy}).Run(1, {waits});
  return LpModel(b.trace(), memory_mib * kMiB, false);
}

TEST(LpCuts, ASolutionThatMovesNothingViolatesNoLinkRow) {
  const LpModel model = Tight(1000);
  const std::vector<double> nothing(size_t(model.columns()), 0);
  EXPECT_TRUE(LpCuts(model, nothing.data()).Violated(1e-9).empty());
}

TEST(LpCuts, MoreAwayThanTheLinkCarriesIsViolated) {
  const LpModel model = Tight(1000);
  std::vector<double> all(size_t(model.columns()), 0);
  for (size_t i = 0; i < model.intervals().size(); ++i) all[size_t(model.IntervalColumn(i))] = 1;
  const std::vector<LpRow> rows = LpCuts(model, all.data()).Violated(1e-9);
  ASSERT_FALSE(rows.empty());
  for (const LpRow& row : rows) {
    double left = 0;
    for (size_t i = 0; i < row.columns.size(); ++i) {
      left += row.values[i] * all[size_t(row.columns[i])];
    }
    EXPECT_LT(left, row.at_least);
  }
}

}  // namespace
}  // namespace atp::policy
