// SPDX-License-Identifier: Apache-2.0
#include "shim/launch_inbox.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace atp::shim {
namespace {

class LaunchInboxTest : public testing::Test {
 protected:
  LaunchInboxTest() { inbox_.Open(); }
  bool Put(uint64_t signature, size_t touch_count = 1) {
    touches_.resize(touch_count);
    for (Touch& touch : touches_) touch.offset = signature;
    LaunchView launch;
    launch.signature = signature;
    launch.touches = touches_.data();
    launch.touch_count = touch_count;
    return inbox_.Put(launch);
  }
  std::vector<uint64_t> Take() {
    std::vector<uint64_t> signatures;
    while (
        !inbox_.Take([&](const LaunchView& launch) { signatures.push_back(launch.signature); })) {
    }
    return signatures;
  }
  LaunchInbox inbox_;
  std::vector<Touch> touches_;
};

TEST_F(LaunchInboxTest, LaunchesComeOutInTheirOrderAndOnce) {
  for (uint64_t s : {7, 8, 9}) EXPECT_TRUE(Put(s));
  EXPECT_EQ(Take(), (std::vector<uint64_t>{7, 8, 9}));
  EXPECT_TRUE(Take().empty());
}

TEST_F(LaunchInboxTest, ALaunchIsKeptWithItsTouches) {
  Put(5, kMaxTouches);
  touches_.assign(kMaxTouches, Touch());  // the caller's own are gone by then
  inbox_.Take([](const LaunchView& launch) {
    ASSERT_EQ(launch.touch_count, kMaxTouches);
    EXPECT_EQ(launch.touches[kMaxTouches - 1].offset, 5u);
  });
}

TEST_F(LaunchInboxTest, AGraphWithMoreTouchesThanACellHoldsIsRefused) {
  EXPECT_FALSE(Put(1, kMaxTouches + 1));
  EXPECT_TRUE(Take().empty());
}

TEST_F(LaunchInboxTest, AFullInboxRefusesUntilSomebodyLooks) {
  for (int round = 0; round < 3; ++round) {
    for (uint64_t i = 0; i < LaunchInbox::kCells; ++i) ASSERT_TRUE(Put(i));
    EXPECT_FALSE(Put(0));
    EXPECT_EQ(Take().size(), LaunchInbox::kCells);
  }
}

TEST_F(LaunchInboxTest, NobodyLooksAtMoreThanAFewAtOnce) {
  for (uint64_t i = 0; i < LaunchInbox::kAtOnce + 1; ++i) Put(i);
  unsigned looked = 0;
  EXPECT_FALSE(inbox_.Take([&](const LaunchView&) { ++looked; }));
  EXPECT_EQ(looked, LaunchInbox::kAtOnce);
  EXPECT_TRUE(inbox_.Take([&](const LaunchView&) { ++looked; }));
  EXPECT_EQ(looked, LaunchInbox::kAtOnce + 1);
}

TEST_F(LaunchInboxTest, WhoLooksMayLookAgainMeanwhile) {
  for (uint64_t s : {1, 2, 3}) Put(s);
  std::vector<uint64_t> inner, outer;
  inbox_.Take([&](const LaunchView& launch) {
    outer.push_back(launch.signature);
    for (uint64_t signature : Take()) inner.push_back(signature);
  });
  EXPECT_EQ(outer, (std::vector<uint64_t>{1}));
  EXPECT_EQ(inner, (std::vector<uint64_t>{2, 3}));
}

TEST(LaunchInbox, BeforeItIsOpenedThereIsNothingInIt) {
  LaunchInbox inbox;
  EXPECT_TRUE(inbox.Take([](const LaunchView&) { FAIL(); }));
}

// Four threads leave launches, one looks: none is lost, and each thread's own stay in order.
TEST_F(LaunchInboxTest, OfManyThreadsNothingIsLost) {
  constexpr uint64_t kThreads = 4, kEach = 3000;
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([this, t] {
      for (uint64_t i = 0; i < kEach; ++i) {
        Touch touch;
        touch.offset = i;
        LaunchView launch;
        launch.signature = t;
        launch.touches = &touch;
        launch.touch_count = 1;
        while (!inbox_.Put(launch)) std::this_thread::yield();
      }
    });
  }
  std::vector<uint64_t> next(kThreads);
  for (uint64_t taken = 0; taken < kThreads * kEach;) {
    inbox_.Take([&](const LaunchView& launch) {
      EXPECT_EQ(launch.touches[0].offset, next[launch.signature]++);
      ++taken;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(Take().empty());
}

}  // namespace
}  // namespace atp::shim
