// SPDX-License-Identifier: Apache-2.0
#include "shim/shape_follower.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace atp::shim {
namespace {

using Launches = std::vector<uint64_t>;

std::vector<uint32_t> Fed(ShapeFollower* follower, const Launches& launches) {
  std::vector<uint32_t> laps;
  for (const uint64_t identity : launches) laps.push_back(follower->Feed(identity));
  return laps;
}

constexpr uint32_t kNone = ShapeFollower::kNone;

TEST(ShapeFollower, SeesALapAtItsLastLaunch) {
  ShapeFollower follower;
  follower.Add({1, 2, 1, 3});
  EXPECT_EQ(Fed(&follower, {9, 1, 2, 1, 3, 1, 2, 1, 3}),
            (std::vector<uint32_t>{kNone, kNone, kNone, kNone, 0, kNone, kNone, kNone, 0}));
}

TEST(ShapeFollower, ABeginningThatLedNowhereMayHaveHeldTheRightOne) {
  ShapeFollower follower;
  follower.Add({1, 2, 1, 3});
  EXPECT_EQ(Fed(&follower, {1, 2, 1, 2, 1, 3}).back(), 0u);
}

TEST(ShapeFollower, OfSeveralTheLongestCounts) {
  ShapeFollower follower;
  follower.Add({2, 3});
  follower.Add({1, 2, 3});
  EXPECT_EQ(Fed(&follower, {7, 2, 3}).back(), 0u);
  EXPECT_EQ(Fed(&follower, {1, 2, 3}).back(), 1u);
}

TEST(ShapeFollower, AgreesWithLookingAtEveryPlace) {
  std::mt19937 random(1);
  for (int run = 0; run < 200; ++run) {
    Launches shape(1 + random() % 6), launches(200);
    for (uint64_t& identity : shape) identity = random() % 2;
    for (uint64_t& identity : launches) identity = random() % 2;
    ShapeFollower follower;
    follower.Add(shape);
    for (size_t i = 0; i < launches.size(); ++i) {
      const bool lap = i + 1 >= shape.size() &&
                       std::equal(shape.begin(), shape.end(),
                                  launches.begin() + static_cast<long>(i + 1 - shape.size()));
      ASSERT_EQ(follower.Feed(launches[i]), lap ? 0u : kNone) << run << " " << i;
    }
  }
}

}  // namespace
}  // namespace atp::shim
