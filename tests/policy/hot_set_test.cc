// SPDX-License-Identifier: Apache-2.0
#include "policy/hot_set.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace atp::policy {
namespace {

using Id = HotSet::Id;

// Runs launches of one item each and counts the bytes that had to be fetched.
Bytes Fetched(HotSet* set, const std::vector<Id>& order, Bytes bytes) {
  Bytes fetched = 0;
  for (const Id id : order) {
    const HotSet::Use use{id, bytes};
    fetched += set->Launch({&use, 1}).fetch.size() * bytes;
  }
  return fetched;
}

std::vector<Id> Scan(Id items) {
  std::vector<Id> order(items);
  for (Id i = 0; i < items; ++i) order[i] = i + 1;
  return order;
}

TEST(HotSet, WhatFitsIsFetchedOnce) {
  HotSet set;
  set.SetRoom(100);
  EXPECT_EQ(Fetched(&set, Scan(10), 10), 100u);
  EXPECT_EQ(Fetched(&set, Scan(10), 10), 0u);
}

TEST(HotSet, AScanLargerThanTheRoomKeepsAFixedPartOfItself) {
  HotSet set;
  set.SetRoom(1000);
  Fetched(&set, Scan(150), 10);
  // Oldest-first would fetch all of it each time. Two launches have room to pass, or a 32nd.
  for (int round = 0; round < 6; ++round) EXPECT_LE(Fetched(&set, Scan(150), 10), 560u);
}

TEST(HotSet, TheItemsUsedMostOftenStay) {
  HotSet set;
  set.SetRoom(400);
  std::mt19937 random(7);
  std::geometric_distribution<Id> skewed(0.08);
  std::vector<Id> order(4000);
  for (Id& id : order) id = 1 + std::min<Id>(skewed(random), 99);
  Fetched(&set, order, 10);
  for (Id id = 1; id <= 20; ++id) EXPECT_TRUE(set.IsKept(id)) << id;
  // Pinning the best 35 in advance would fetch what the others cost; the rest passes.
  Bytes others = 0;
  for (const Id id : order) others += id > 35 ? 10 : 0;
  EXPECT_LE(Fetched(&set, order, 10), others * 12 / 10);
}

TEST(HotSet, AChangeOfWhatIsUsedOftenIsFollowed) {
  HotSet set;
  set.SetRoom(100);
  std::vector<Id> first, second;
  for (int i = 0; i < 200; ++i) first.push_back(1 + i % 6), second.push_back(11 + i % 6);
  Fetched(&set, first, 10);
  Fetched(&set, second, 10);
  Fetched(&set, second, 10);
  EXPECT_EQ(Fetched(&set, second, 10), 0u);
}

TEST(HotSet, TheRoomIsNeverExceeded) {
  HotSet set;
  set.SetRoom(1000);
  std::mt19937 random(3);
  Bytes on_device = 0;
  std::vector<HotSet::Use> uses;
  for (int launch = 0; launch < 5000; ++launch) {
    uses.clear();
    for (unsigned n = 1 + random() % 4; n > 0; --n) {
      const Id id = 1 + random() % 60;
      uses.push_back({id, 10 + id % 7 * 25});
    }
    const HotSet::Moves& moves = set.Launch(uses);
    ASSERT_TRUE(moves.served);
    const auto bytes = [](const std::vector<Id>& ids) {
      Bytes sum = 0;
      for (const Id id : ids) sum += 10 + id % 7 * 25;
      return sum;
    };
    on_device -= bytes(moves.leave);
    on_device += bytes(moves.fetch);
    ASSERT_LE(on_device, 1000u);
    on_device -= bytes(moves.leave_ahead);
    ASSERT_EQ(on_device, set.resident());
    for (const auto& use : uses) ASSERT_TRUE(set.IsResident(use.id));
  }
}

TEST(HotSet, NothingMovesForALaunchThatExceedsTheRoomByItself) {
  HotSet set;
  set.SetRoom(100);
  Fetched(&set, Scan(5), 10);
  const HotSet::Use uses[] = {{7, 60}, {8, 60}};
  const HotSet::Moves& moves = set.Launch(uses);
  EXPECT_FALSE(moves.served);
  EXPECT_TRUE(moves.leave.empty() && moves.fetch.empty() && moves.leave_ahead.empty());
  EXPECT_EQ(set.resident(), 50u);
}

TEST(HotSet, WhatIsGoneTakesNoRoomAndClearingForgetsPlacesOnly) {
  HotSet set;
  set.SetRoom(100);
  Fetched(&set, Scan(10), 10);
  set.Remove(3);
  EXPECT_EQ(set.resident(), 90u);
  set.Clear();
  EXPECT_EQ(set.resident(), 0u);
  EXPECT_EQ(Fetched(&set, {1, 2}, 10), 20u);
}

}  // namespace
}  // namespace atp::policy
