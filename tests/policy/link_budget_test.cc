// SPDX-License-Identifier: Apache-2.0
#include "policy/link_budget.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>

namespace atp::policy {
namespace {

constexpr Direction kIn = Direction::kIn, kOut = Direction::kOut;

int64_t Sum(const std::vector<LinkBudget::Share>& shares) {
  return std::accumulate(shares.begin(), shares.end(), int64_t{0},
                         [](int64_t sum, const auto& share) { return sum + share.bytes; });
}

TEST(LinkBudget, TakesFromTheRightEnd) {
  LinkBudget budget({10, 10, 0, 0}, {1, 0, 2, 0, 3, 0});
  auto early = budget.TakeEarliest(kOut, 0, 5, 25);
  ASSERT_EQ(early.size(), 2u);
  EXPECT_EQ(early[0].window, 0);
  EXPECT_EQ(early[1].window, 2);
  EXPECT_EQ(early[1].bytes, 15);
  auto late = budget.TakeLatest(kIn, 0, 5, 35);
  EXPECT_EQ(late[0].window, 4);
  EXPECT_EQ(late[0].bytes, 30);
  EXPECT_EQ(late[1].window, 2);
  EXPECT_EQ(budget.Free(kOut, 0, 5), 35);
  EXPECT_EQ(budget.Free(kIn, 0, 5), 25);
}

TEST(LinkBudget, WindowsWrapAroundThePeriod) {
  LinkBudget budget({10, 10, 0, 0}, {1, 2, 3});
  EXPECT_EQ(budget.Free(kOut, 2, 3), 40);
  EXPECT_EQ(budget.Free(kOut, -1, 0), 40);
  const auto shares = budget.TakeEarliest(kOut, 2, 4, 45);
  EXPECT_EQ(shares.size(), 3u);
  EXPECT_EQ(shares.back().window, 4);
  EXPECT_EQ(budget.Used(kOut, 0), 10);
  EXPECT_EQ(budget.LastStart(kOut, -1, 1, 15), 1);  // window 1 has 15 left, the others nothing
  EXPECT_EQ(budget.LastStart(kOut, -1, 1, 16), -2);
}

TEST(LinkBudget, FindsTheLastStartThatHoldsEnough) {
  std::mt19937_64 random(3);
  for (int trial = 0; trial < 300; ++trial) {
    std::vector<double> seconds(1 + random() % 12);
    for (double& s : seconds) s = static_cast<double>(random() % 4);
    LinkBudget budget({10, 10, 0, 0}, seconds);
    const int64_t n = static_cast<int64_t>(seconds.size());
    const int64_t to = static_cast<int64_t>(random() % 20) - 8, from = to - n + 1;
    const int64_t bytes = 1 + static_cast<int64_t>(random() % 60);
    int64_t expected = from - 1;
    for (int64_t w = from; w <= to; ++w) {
      if (budget.Free(kOut, w, to) >= bytes) expected = w;
    }
    ASSERT_EQ(budget.LastStart(kOut, from, to, bytes), expected);
  }
}

TEST(LinkBudget, GivesBackAndLengthens) {
  LinkBudget budget({10, 10, 0, 0}, {1, 0});
  const auto shares = budget.TakeEarliest(kIn, 0, 1, 10);
  EXPECT_EQ(budget.Free(kIn, 0, 1), 0);
  budget.GiveBack(kIn, {0, 4});
  EXPECT_EQ(budget.Free(kIn, 0, 1), 4);
  budget.LengthenFor(1, kIn, 7);
  EXPECT_GE(budget.Free(kIn, 1, 1), 7);
  EXPECT_GE(budget.Free(kOut, 1, 1), 7);
  EXPECT_NEAR(budget.seconds()[1], 0.8, 1e-9);  // one byte of rounding
  EXPECT_EQ(Sum(shares), 10);
}

TEST(LinkBudget, SharesTheLinkBetweenDirections) {
  // 100 each alone, 60 in and 80 out together.
  LinkBudget budget({100, 100, 60, 80}, {1.0});
  EXPECT_EQ(budget.Free(kIn, 0, 0), 100);
  budget.TakeEarliest(kOut, 0, 0, 80);
  EXPECT_NEAR(static_cast<double>(budget.Free(kIn, 0, 0)), 60, 1);
  budget.TakeEarliest(kIn, 0, 0, budget.Free(kIn, 0, 0));
  EXPECT_LE(budget.Free(kOut, 0, 0), 1);
  EXPECT_NEAR(budget.RateBeside(kIn, 80), 60, 1e-9);
  EXPECT_NEAR(budget.RateBeside(kIn, 100), 0, 1e-9);
  EXPECT_NEAR(budget.RateBeside(kOut, 60), 80, 1e-9);
  EXPECT_NEAR(budget.RateBeside(kOut, 0), 100, 1e-9);
}

}  // namespace
}  // namespace atp::policy
