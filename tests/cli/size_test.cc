// SPDX-License-Identifier: Apache-2.0
#include "cli/size.h"

#include <gtest/gtest.h>

namespace atp::cli {
namespace {

TEST(Size, UnitsArePowersOf1024WithOrWithoutIb) {
  EXPECT_EQ(ParseBytes("4096"), 4096u);
  EXPECT_EQ(ParseBytes("16GiB"), uint64_t{16} << 30);
  EXPECT_EQ(ParseBytes("16G"), uint64_t{16} << 30);
  EXPECT_EQ(ParseBytes("512MiB"), uint64_t{512} << 20);
  EXPECT_EQ(ParseBytes("1.5K"), 1536u);
  EXPECT_EQ(ParseBytes("2T"), uint64_t{2} << 40);
}

TEST(Size, WhatIsNotASizeIsRefused) {
  for (const char* text : {"", "x", "0", "-1G", "1X", "1GB", "1GiBs", "1 G", "1e9", "nan", "inf",
                           "16777216T", "G", "%", "0.5"}) {
    EXPECT_FALSE(ParseBytes(text)) << text;
  }
}

TEST(Share, IsASizeOrAPercentageOfTheCard) {
  EXPECT_EQ(ParseShare("80%")->percent, 80);
  EXPECT_EQ(ParseShare("1G")->bytes, uint64_t{1} << 30);
  for (const char* text : {"0%", "101%", "-5%", "%", "80%%", "x%"})
    EXPECT_FALSE(ParseShare(text)) << text;
}

TEST(Budget, IsOneShareForAllOrOneForEachDevice) {
  const auto all = ParseBudget("512MiB");
  ASSERT_TRUE(all);
  EXPECT_EQ(all->at(-1).bytes, uint64_t{512} << 20);
  const auto each = ParseBudget("0=16GiB,1=80%");
  ASSERT_TRUE(each);
  EXPECT_EQ(each->at(0).bytes, uint64_t{16} << 30);
  EXPECT_EQ(each->at(1).percent, 80);
  for (const char* text :
       {"", "0=", "=1G", "0=1G,", "0=1G,0=2G", "a=1G", "-1=1G", "0=1G;1=1G", "1G,2G"}) {
    EXPECT_FALSE(ParseBudget(text)) << text;
  }
}

TEST(FormatBytes, ChoosesTheUnit) {
  EXPECT_EQ(FormatBytes(12), "12 bytes");
  EXPECT_EQ(FormatBytes(uint64_t{3} << 29), "1.5 GiB");
  EXPECT_EQ(FormatBytes(uint64_t{40} << 30), "40 GiB");
}

}  // namespace
}  // namespace atp::cli
