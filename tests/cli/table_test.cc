// SPDX-License-Identifier: Apache-2.0
#include "cli/table.h"

#include <gtest/gtest.h>

namespace atp::cli {
namespace {

TEST(Table, ColumnsAreAlignedTheFirstToTheLeft) {
  Table table({"a", "time"});
  table.Add({"long name", "1 s"});
  EXPECT_EQ(table.Text(), "a          time\nlong name   1 s\n");
}

TEST(Table, MarkdownHasARuleBelowItsHeader) {
  Table table({"a", "b"});
  table.Add({"1", "2"});
  EXPECT_EQ(table.Markdown(), "| a | b |\n|---|---:|\n| 1 | 2 |\n");
}

TEST(Table, SecondsHaveAUnitThatKeepsThemShort) {
  EXPECT_EQ(FormatSeconds(12.3456), "12.35 s");
  EXPECT_EQ(FormatSeconds(0.0123456), "12.35 ms");
  EXPECT_EQ(FormatSeconds(0.0000123), "12.3 us");
  EXPECT_EQ(FormatSeconds(0), "0 s");
  EXPECT_EQ(FormatSeconds(12345), "12345 s");
}

}  // namespace
}  // namespace atp::cli
