// SPDX-License-Identifier: Apache-2.0
// The books of what has been dropped.
#include "shim/debts.h"

#include <gtest/gtest.h>

namespace atp::shim {
namespace {

// The second range is made of the first one, and needed before it.
class DebtsTest : public testing::Test {
 protected:
  DebtsTest() {
    auto schedule = std::make_shared<Schedule>();
    schedule->length = 8;
    schedule->drops = {{nullptr, kGranule, 1, 2, 5}, {nullptr, kGranule, 0, 1, 6}};
    debts_.Follow(schedule);
  }
  ~DebtsTest() override { debts_.Void(); }
  void Drop(uint32_t drop, uint64_t period) {
    debts_.Made(drop, period);
    ASSERT_TRUE(debts_.Begin(drop, period));
    debts_.Dropped(drop);
  }
  Debts debts_;
};

TEST_F(DebtsTest, WhatHasNotBeenMadeInThisPeriodStays) {
  EXPECT_FALSE(debts_.Begin(0, 0));
  debts_.Made(0, 3);
  EXPECT_FALSE(debts_.Begin(0, 2));
  EXPECT_TRUE(debts_.Begin(0, 3));
  EXPECT_FALSE(debts_.Begin(0, 3));  // once
}

TEST_F(DebtsTest, WhatIsNeededNowStays) {
  debts_.Made(0, 0);
  debts_.Keep(0);
  EXPECT_FALSE(debts_.Begin(0, 0));
  debts_.Made(0, 1);
  debts_.KeepAll();
  EXPECT_FALSE(debts_.Begin(0, 1));
}

TEST_F(DebtsTest, OneThatIsBeingDroppedIsWaitedFor) {
  debts_.Made(0, 0);
  ASSERT_TRUE(debts_.Begin(0, 0));
  EXPECT_TRUE(debts_.Due(5));
  EXPECT_TRUE(debts_.Busy(5));
  EXPECT_FALSE(debts_.Due(4));
  debts_.Dropped(0);
  EXPECT_FALSE(debts_.Busy(5));
}

TEST_F(DebtsTest, WhatWasMadeFirstIsPaidFirst) {
  Drop(0, 0);
  Drop(1, 0);
  EXPECT_EQ(debts_.Take(UINT32_MAX).drop, 1u);
  EXPECT_TRUE(debts_.Busy(5));  // while one is paid no other is
  debts_.Paid(true);
  EXPECT_EQ(debts_.Take(UINT32_MAX).drop, 0u);
  debts_.Paid(true);
  EXPECT_FALSE(debts_.any());
}

TEST_F(DebtsTest, WhatTheDriverRefusesIsOwedStill) {
  Drop(0, 0);
  debts_.Take(5);
  debts_.Paid(false);
  EXPECT_TRUE(debts_.Due(5));
  EXPECT_FALSE(debts_.Busy(5));
}

// Other threads ask this number alone whether they have to look.
TEST_F(DebtsTest, TheNumberCountsWhatIsOwedAndWhatMayBeAtAnyMoment) {
  EXPECT_FALSE(Owing());
  debts_.Made(0, 0);
  debts_.Made(0, 1);
  EXPECT_EQ(g_owing.load(), 1u);
  ASSERT_TRUE(debts_.Begin(0, 1));
  EXPECT_EQ(g_owing.load(), 1u);
  debts_.Dropped(0);
  debts_.Take(5);
  debts_.Paid(true);
  EXPECT_FALSE(Owing());
  debts_.Made(1, 2);
  debts_.Follow(nullptr);
  EXPECT_FALSE(Owing());
}

}  // namespace
}  // namespace atp::shim
