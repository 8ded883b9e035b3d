// SPDX-License-Identifier: Apache-2.0
#include "shim/plan_place.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

namespace atp::shim {
namespace {

// Launch i has signature first + i. Something is fetched before each one of `fetched`, and what is
// left behind each one of `flagged` may leave.
std::shared_ptr<Schedule> PlanOf(uint32_t length, uint64_t first, std::vector<uint32_t> fetched,
                                 std::vector<uint32_t> flagged) {
  auto plan = std::make_shared<Schedule>();
  plan->length = length;
  uint32_t fetches = 0;
  for (uint32_t i = 0; i < length; ++i) {
    plan->signatures.push_back(first + i);
    fetches += static_cast<uint32_t>(std::count(fetched.begin(), fetched.end(), i));
    plan->fetch_cut.push_back(fetches);
    const bool is = std::count(flagged.begin(), flagged.end(), i) > 0;
    plan->flag_index.push_back(is ? plan->flagged++ : Schedule::kNotFlagged);
  }
  return plan;
}

TEST(PlanPlace, ALaunchPassesOnlyWhereThePlanHasNothingToDo) {
  const auto plan = PlanOf(8, 100, /*fetched=*/{3}, /*flagged=*/{5});
  PlanPlace place;
  const auto passes = [&](uint32_t position) {
    place.Open(plan, 1, position - 1);
    const bool passed = place.Pass(100 + position) == position;
    EXPECT_EQ(place.Close(99), passed ? position : position - 1);
    return passed;
  };
  EXPECT_TRUE(passes(1));
  EXPECT_TRUE(passes(2));
  EXPECT_FALSE(passes(3)) << "something is fetched before it";
  EXPECT_TRUE(passes(4));
  EXPECT_FALSE(passes(5)) << "something waits for it";
  EXPECT_TRUE(passes(6));
  EXPECT_FALSE(passes(7)) << "it ends the period";
  place.Open(plan, 1, 7);
  EXPECT_EQ(place.Pass(100), PlanPlace::kNowhere) << "it begins the period";
}

TEST(PlanPlace, AnotherLaunchDoesNotPassNorDoesAnyWhereItIsClosed) {
  PlanPlace place;
  EXPECT_EQ(place.Pass(101), PlanPlace::kNowhere);
  place.Open(PlanOf(8, 100, {}, {}), 1, 0);
  EXPECT_EQ(place.Pass(102), PlanPlace::kNowhere);
  EXPECT_EQ(place.Pass(101), 1u);
  EXPECT_EQ(place.Pass(101), PlanPlace::kNowhere);
  EXPECT_EQ(place.PassLocked(102), 2u);
  EXPECT_FALSE(place.CloseAt(1));
  EXPECT_TRUE(place.open());
  EXPECT_TRUE(place.CloseAt(2));
  EXPECT_EQ(place.Pass(103), PlanPlace::kNowhere);
  EXPECT_EQ(place.Close(7), 7u);
}

// Threads pass as fast as they can, while one with the lock changes the plan all the time. Each
// position is taken by one thread, in order, and of the plan that runs.
TEST(PlanPlace, EachPositionIsTakenOnceWhateverHappensMeanwhile) {
  constexpr uint32_t kLength = 64;
  std::atomic<uint64_t> first{1000}, passed{0};
  std::atomic<bool> over{false};
  PlanPlace place;
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      for (uint32_t at = 0; !over; at = (at + 1) % kLength) {
        if (place.Pass(first + at) != PlanPlace::kNowhere) ++passed;
      }
    });
  }
  uint64_t counted = 0;
  for (uint64_t generation = 1; generation < 3000 || counted == 0; ++generation) {
    first = generation * 1000;
    place.Open(PlanOf(kLength, first, {}, {}), generation, 0);
    if (generation % 7 == 0) std::this_thread::yield();
    counted += place.Close(0);
  }
  over = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(passed, counted);
}

}  // namespace
}  // namespace atp::shim
