// SPDX-License-Identifier: Apache-2.0
#include "shim/demand.h"

#include <gtest/gtest.h>

#include <random>

#include "fake_world.h"

namespace atp::shim {
namespace {

// A program that uses one of `items` granules a launch, on a device that holds `fits` of them, with
// no plan. When left alone a launch that lacks its granule takes `kFaultNs` longer.
class Aimless : public Traffic::Observer {
 public:
  static constexpr uint64_t kLaunchNs = 100'000, kFaultNs = 400'000;
  static constexpr double kRate = 25.0;  // bytes per ns: a granule takes 84 us

  Aimless(uint32_t items, uint32_t fits)
      : world(kRate, fits * kGranule),
        traffic(&world, fits * kGranule),
        clock(&world),
        demand(&world, this, &clock),
        allocations(items) {
    executor = MakeLaneExecutor(FakeWorld::Calls(), demand.Share(traffic.movers()), 1);
    terms.room = fits * kGranule;
    terms.piece_bytes = kPieceBytes;
    for (uint32_t i = 0; i < items; ++i) {
      allocations[i].id = i + 1;
      allocations[i].slot = i;
      allocations[i].address = (i + 1) * kGranule;
      allocations[i].bytes = allocations[i].mapped_bytes = kGranule;
    }
  }

  void OnMoved(const Action& action, bool to_device) override {
    (to_device ? arrived : left) += action.bytes / kGranule;
    if (!to_device && action.clean) clean_left += action.bytes / kGranule;
  }
  bool IsDuplicated(const Action&) override { return false; }

  void Launch(uint32_t item, bool writes = true) {
    std::unique_lock lock(traffic.mutex());
    executor->CatchUp(lock);
    Touch touch;
    touch.allocation = &allocations[item];
    touch.writes = writes;
    LaunchView view;
    view.signature = 1000 + item;
    view.touches = &touch;
    view.touch_count = 1;
    clock.Launch(view);
    const uint64_t number = demand.Before(view, terms);
    if (number == 0) {
      world.Launch(kLaunchNs + kFaultNs, {});
      return;
    }
    ++served;
    const auto issued = [&, wanted = demand.Wanted()] { return demand.Issued(wanted); };
    if (!issued() && !executor->Await(lock, issued)) stuck = true;
    if (demand.Lacked()) {
      const Traffic::FetchEvents last = demand.LastFetches();
      for (unsigned i = 0; i < last.count; ++i) world.StreamWait(last.events[i]);
    }
    world.Launch(kLaunchNs, {allocations[item].address});
    demand.After(view, number);
  }

  FakeWorld world;
  Traffic traffic;
  PlainClock clock;
  Demand demand;
  std::unique_ptr<Executor> executor;
  Demand::Terms terms;
  std::vector<Allocation> allocations;
  uint64_t served = 0, arrived = 0, left = 0, clean_left = 0;
  bool stuck = false;
};

TEST(Demand, NeedsNothingIsSaidOfLaunchesWhoseItemsAreThereAndNotNewlyWritten) {
  Aimless program(8, 4);
  const auto needs_nothing = [&](uint32_t item, bool writes) {
    Touch touch;
    touch.allocation = &program.allocations[item];
    touch.writes = writes;
    LaunchView view;
    view.touches = &touch;
    view.touch_count = 1;
    return program.demand.NeedsNothing(view);
  };
  EXPECT_FALSE(needs_nothing(0, false)) << "nobody is served yet";
  for (int i = 0; i < 100; ++i) program.Launch(i % 2, /*writes=*/i % 2 == 0);
  ASSERT_TRUE(program.demand.serving());
  EXPECT_TRUE(needs_nothing(0, true));
  EXPECT_TRUE(needs_nothing(1, false));
  EXPECT_FALSE(needs_nothing(1, true)) << "it was thought to be read only";
  EXPECT_FALSE(needs_nothing(2, false)) << "it is away";
  for (uint32_t i = 2; i < 8; ++i) program.Launch(i);
  EXPECT_TRUE(needs_nothing(7, false));
  int there = 0;
  for (uint32_t i = 0; i < 8; ++i) there += needs_nothing(i, false);
  EXPECT_LE(there, 4) << "more than the device holds";
  program.demand.Forget(&program.allocations[7]);
  EXPECT_FALSE(needs_nothing(7, false)) << "it is gone";
  program.demand.Stop();
  for (uint32_t i = 0; i < 8; ++i) EXPECT_FALSE(needs_nothing(i, false)) << i;
}

std::vector<uint32_t> Skewed(uint32_t items, size_t count) {
  std::mt19937 random(5);
  std::geometric_distribution<uint32_t> skewed(0.15);
  std::vector<uint32_t> order(count);
  for (uint32_t& item : order) item = std::min(skewed(random), items - 1);
  return order;
}

TEST(Demand, AServedLaunchNeverMeetsAMissingGranule) {
  Aimless program(40, 16);
  for (const uint32_t item : Skewed(40, 3000)) program.Launch(item);
  EXPECT_FALSE(program.stuck);
  EXPECT_GT(program.served, 2500u);
  EXPECT_EQ(program.world.faults, 0u);
  EXPECT_EQ(program.world.early_fetches, 0u);
}

TEST(Demand, ResidentBytesNeverExceedTheRoom) {
  Aimless program(40, 16);
  for (const uint32_t item : Skewed(40, 3000)) program.Launch(item);
  EXPECT_LE(program.world.most_resident, 16 * kGranule);
  EXPECT_GT(program.left, 0u);
}

TEST(Demand, WhatIsUsedMostOftenStays) {
  Aimless program(40, 16);
  const std::vector<uint32_t> order = Skewed(40, 3000);
  for (const uint32_t item : order) program.Launch(item);
  uint64_t rare = 0;
  for (const uint32_t item : order) rare += item >= 13 ? 1 : 0;
  EXPECT_LE(program.arrived, rare + rare / 4 + 16);
}

TEST(Demand, WhatNobodyWritesLeavesByTheWayOfReadMostly) {
  Aimless program(40, 16);
  program.terms.read_mostly = true;
  for (const uint32_t item : Skewed(40, 2000)) program.Launch(item, /*writes=*/item % 2 == 0);
  EXPECT_GT(program.clean_left, 0u);
  EXPECT_LT(program.clean_left, program.left);
  EXPECT_FALSE(program.allocations[12].read_mostly);
}

// Weights that a kernel has filled, and that are read from then on.
TEST(Demand, WhatWasWrittenOnceAndReadSinceLeavesWithoutACopyInTheEnd) {
  Aimless program(40, 16);
  program.terms.read_mostly = true;
  for (uint32_t item = 0; item < 40; ++item) program.Launch(item, /*writes=*/true);
  const std::vector<uint32_t> order = Skewed(40, 4000);
  for (size_t i = 0; i < 2000; ++i) program.Launch(order[i], /*writes=*/false);
  const uint64_t left = program.left, clean = program.clean_left;
  for (size_t i = 2000; i < 4000; ++i) program.Launch(order[i], /*writes=*/false);
  EXPECT_GT(program.left, left + 100);
  EXPECT_GT(program.clean_left - clean, (program.left - left) * 9 / 10);
}

// What is used seldom finds room that was made before, and nothing is copied out while it arrives.
// The program looks at the outcome of each round.
TEST(Demand, RoomIsMadeWhenNothingArrives) {
  Aimless program(60, 32);
  uint64_t before = 0, arrived = 0;
  for (uint32_t round = 0; round < 200; ++round) {
    if (round == 100) {
      before = program.world.copies_out_beside_fetches;
      arrived = program.arrived;
    }
    program.Launch(24 + round % 36);
    for (uint32_t often = 0; often < 20; ++often) program.Launch(often);
    program.world.Synchronize();
  }
  EXPECT_GT(program.arrived, arrived + 50);
  EXPECT_EQ(program.world.copies_out_beside_fetches, before);
  EXPECT_LE(program.world.most_resident, 32 * kGranule);
  EXPECT_EQ(program.world.early_fetches, 0u);
}

TEST(Demand, AMissingDriverIsNotAskedForEver) {
  Aimless program(40, 16);
  for (const uint32_t item : Skewed(40, 1000)) program.Launch(item);
  program.world.FailAlways();
  for (const uint32_t item : Skewed(40, 1000)) program.Launch(item);
  const uint64_t before = program.served;
  for (const uint32_t item : Skewed(40, 500)) program.Launch(item);
  EXPECT_EQ(program.served, before);
  EXPECT_FALSE(program.stuck);
}

TEST(Demand, MemoryThatGoesIsForgottenAndAPlanTakesTheMoversOver) {
  Aimless program(40, 16);
  const std::vector<uint32_t> order = Skewed(30, 1000);
  for (const uint32_t item : order) program.Launch(item);
  program.demand.Forget(&program.allocations[39]);
  program.demand.Stop();
  EXPECT_FALSE(program.demand.serving());
  const uint64_t moved = program.arrived + program.left;
  {
    std::unique_lock lock(program.traffic.mutex());
    program.executor->CatchUp(lock);
  }
  EXPECT_TRUE(program.demand.Quiet());
  EXPECT_LE(program.arrived + program.left, moved + 3);  // what was under way
  for (const uint32_t item : order) program.Launch(item);
  EXPECT_FALSE(program.stuck);
}

}  // namespace
}  // namespace atp::shim
