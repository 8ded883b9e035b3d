// SPDX-License-Identifier: Apache-2.0
#include "policy/layout_plan.h"

#include <gtest/gtest.h>

namespace atp::policy {
namespace {

TEST(CutPieces, GivesEachPartItsShareOfTheTime) {
  Layout layout;
  layout.out.push_back({7, 100, 10, 2, 4});
  layout.in.push_back({7, 100, 3, 5, 5.5});
  const Layout cut = CutPieces(layout, 4);
  ASSERT_EQ(cut.out.size(), 3u);
  EXPECT_EQ(cut.in.size(), 1u);
  Bytes offset = 100;
  double time = 2;
  for (const Layout::Piece& p : cut.out) {
    EXPECT_EQ(p.interval, 7u);
    EXPECT_EQ(p.offset, offset);
    EXPECT_LE(p.bytes, 4u);
    EXPECT_DOUBLE_EQ(p.start, time);
    EXPECT_DOUBLE_EQ(p.end - p.start, 0.2 * static_cast<double>(p.bytes));
    offset += p.bytes, time = p.end;
  }
  EXPECT_EQ(offset, 110u);
  EXPECT_EQ(time, 4);
}

TEST(CutPieces, LeavesWhatTakesNoTimeWithoutTime) {
  Layout layout;
  layout.out.push_back({0, 0, 8, 3, 3});
  const Layout cut = CutPieces(layout, 4);
  ASSERT_EQ(cut.out.size(), 2u);
  for (const Layout::Piece& p : cut.out) EXPECT_EQ(p.start, p.end);
}

}  // namespace
}  // namespace atp::policy
