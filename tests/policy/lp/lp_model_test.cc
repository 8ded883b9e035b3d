// SPDX-License-Identifier: Apache-2.0
#include "policy/lp/lp_model.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/policy/test_trace.h"

namespace atp::policy {
namespace {

// Launches 0..3; two tensors of 10 MiB wait between 0 and 3, one is written.
TraceBuilder Waiting() {
  TraceBuilder b;
  const uint32_t clean = b.Global(10), dirty = b.Global(10);
  b.Run(1, {clean, dirty}, {dirty}).Run(1, {}).Run(1, {}).Run(1, {clean, dirty});
  return b;
}

double ValueOf(const LpRow& row, int column) {
  for (size_t i = 0; i < row.columns.size(); ++i) {
    if (row.columns[i] == column) return row.values[i];
  }
  return 0;
}

TEST(LpModel, CleanAndWrittenIntervalsAreColumnsOfTheirOwn) {
  EXPECT_EQ(LpModel(Waiting().trace(), 100 * kMiB, true).intervals().size(), 2u);
  EXPECT_EQ(LpModel(Waiting().trace(), 100 * kMiB, false).intervals().size(), 1u);
}

TEST(LpModel, ALinkRowCountsWhatLiesInsideItsWindow) {
  const LpModel model(Waiting().trace(), 100 * kMiB, true);
  for (size_t i = 0; i < model.intervals().size(); ++i) {
    EXPECT_LT(ValueOf(model.LinkRow(0, 1, 2), model.IntervalColumn(i)), 0);
    EXPECT_EQ(ValueOf(model.LinkRow(0, 1, 1), model.IntervalColumn(i)), 0);
  }
  EXPECT_DOUBLE_EQ(model.LinkRow(0, 1, 2).at_least, -2);  // seconds of the two launches
}

TEST(LpModel, OnlyWrittenDataUsesTheLinkOut) {
  const LpModel model(Waiting().trace(), 100 * kMiB, true);
  const LpRow out = model.LinkRow(1, 1, 2);
  int used = 0;
  for (size_t i = 0; i < 2; ++i) used += ValueOf(out, model.IntervalColumn(i)) < 0 ? 1 : 0;
  EXPECT_EQ(used, 1);
}

TEST(LpModel, AwayBytesFollowTheIntervals) {
  const LpModel model(Waiting().trace(), 100 * kMiB, false);
  const std::vector<LpRow> rows = model.AwayRows();
  const double gb = 20 * double(kMiB) / 1e9;
  EXPECT_NEAR(ValueOf(rows[1], model.IntervalColumn(0)), -gb, 1e-12);
  EXPECT_NEAR(ValueOf(rows[3], model.IntervalColumn(0)), gb, 1e-12);
  EXPECT_EQ(ValueOf(rows[2], model.IntervalColumn(0)), 0);
}

TEST(LpModel, ARowByLaunchLeavesOutWhatBeganLately) {
  const LpModel model(Waiting().trace(), 1 * kMiB, false);
  EXPECT_GT(ValueOf(model.ByLaunchRow(2, 0, 0), model.IntervalColumn(0)), 0);
  EXPECT_EQ(ValueOf(model.ByLaunchRow(2, 1, 0), model.IntervalColumn(0)), 0);
}

}  // namespace
}  // namespace atp::policy
