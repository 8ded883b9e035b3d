// SPDX-License-Identifier: Apache-2.0
#include "policy/sight.h"

#include <gtest/gtest.h>

#include <vector>

namespace atp::policy {
namespace {

constexpr Bytes kMiB = 1u << 20;

// Launches with one argument each, into one allocation of 64 MiB.
struct Use {
  uint64_t kernel, shape;
  Bytes offset, bytes;
};

SeenPeriod Period(const std::vector<Use>& uses) {
  SeenPeriod period;
  period.allocations = {64 * kMiB};
  for (const Use& use : uses) {
    SeenLaunch launch;
    launch.kernel = use.kernel;
    launch.shape = use.shape;
    launch.first_touch = static_cast<uint32_t>(period.touches.size());
    launch.touch_count = 1;
    period.launches.push_back(launch);
    period.touches.push_back({0, use.offset, use.bytes, true, false});
  }
  return period;
}

TEST(PredictReaches, GoesToTheEndOfAnAllocationThatOnePointerLeadsTo) {
  EXPECT_EQ(PredictReaches(Period({{1, 1, 0, 0}})), std::vector<Bytes>{64 * kMiB});
}

TEST(PredictReaches, EndsAtTheNextPointerIntoTheAllocation) {
  const auto reaches = PredictReaches(Period({{1, 1, 0, 0}, {2, 1, 24 * kMiB, 0}}));
  EXPECT_EQ(reaches, (std::vector<Bytes>{24 * kMiB, 40 * kMiB}));
}

TEST(PredictReaches, TakesKnownExtentsAsTheyAreButNeverBeyondTheAllocation) {
  const auto reaches = PredictReaches(Period({{1, 1, 8 * kMiB, 100}, {1, 1, 60 * kMiB, 8 * kMiB}}));
  EXPECT_EQ(reaches, (std::vector<Bytes>{100, 4 * kMiB}));
}

TEST(PredictReaches, ACutFromAnotherUseOfTheMemoryDoesNotShortenWhatAClassReaches) {
  // Tensors of 16 MiB at 0, 16 and 32; a cache has split the one at 16 for another kernel.
  const auto reaches = PredictReaches(Period({{1, 7, 0, 0},
                                              {1, 7, 16 * kMiB, 0},
                                              {1, 7, 32 * kMiB, 0},
                                              {2, 1, 24 * kMiB, 0},
                                              {3, 1, 48 * kMiB, 0}}));
  EXPECT_EQ(reaches[1], 16 * kMiB);
  EXPECT_EQ(reaches[3], 8 * kMiB);
}

TEST(PredictReaches, AGapBehindATensorIsNoPartOfIt) {
  const auto reaches =
      PredictReaches(Period({{1, 7, 0, 0}, {1, 7, 8 * kMiB, 0}, {1, 7, 16 * kMiB, 0}}));
  EXPECT_EQ(reaches[2], 8 * kMiB);  // not the 48 that are left of the allocation
}

TEST(PredictReaches, AnAllocationWithOnePointerIsOneTensorWhateverOthersOfItsClassReach) {
  SeenPeriod period = Period({{1, 7, 0, 0}, {1, 7, 0, 0}, {1, 7, 0, 0}, {1, 7, 0, 0}});
  period.allocations = {8 * kMiB, 8 * kMiB, 8 * kMiB, 64 * kMiB};
  for (uint32_t t = 0; t < 4; ++t) period.touches[t].allocation = t;
  EXPECT_EQ(PredictReaches(period)[3], 64 * kMiB);
}

TEST(PredictReaches, OfAnotherShapeNothingIsConcluded) {
  const auto reaches =
      PredictReaches(Period({{1, 7, 0, 0}, {1, 7, 8 * kMiB, 0}, {1, 8, 16 * kMiB, 0}}));
  EXPECT_EQ(reaches[2], 48 * kMiB);
}

TEST(PredictReaches, ATensorThatIsUsedOftenHasOneVoice) {
  const auto reaches = PredictReaches(Period({{1, 7, 0, 0},
                                              {1, 7, 0, 0},
                                              {1, 7, 0, 0},
                                              {1, 7, 4 * kMiB, 0},
                                              {1, 7, 20 * kMiB, 0},
                                              {2, 1, 40 * kMiB, 0}}));
  EXPECT_EQ(reaches[0], 4 * kMiB);
  EXPECT_EQ(reaches[4], 20 * kMiB);  // 4, 16 and 20: no majority
}

// Tensors of 1, 2 and 3 MiB, three of each size and shape, and one of a fourth shape before a gap;
// each launch has its count of elements as a scalar.
SeenPeriod Sizes(uint64_t last_count) {
  std::vector<Use> uses;
  SeenPeriod period;
  std::vector<uint64_t> counts;
  Bytes at = 0;
  for (Bytes mib : {1, 2, 3}) {
    for (int i = 0; i < 3; ++i) {
      uses.push_back({1, mib, at, 0});
      counts.push_back(mib * kMiB / 4);
      at += mib * kMiB;
    }
  }
  uses.push_back({1, 9, at, 0});
  counts.push_back(last_count);
  period = Period(uses);
  for (uint64_t count : counts) {
    LaunchShape shape;
    shape.scalars[0] = count, shape.scalar_count = 1, shape.threads = 256;
    period.scalars.push_back(shape);
  }
  return period;
}

TEST(PredictReaches, AnOddShapeReachesAsFarAsItsScalarsSayWhereOthersFitThem) {
  const SeenPeriod period = Sizes(5 * kMiB / 4);
  EXPECT_EQ(PredictReaches(period).back(), 5 * kMiB);
  SeenPeriod blind = period;
  blind.scalars.clear();
  EXPECT_EQ(PredictReaches(blind).back(), 46 * kMiB);  // to the end of the allocation
}

TEST(PredictReaches, AFitThatNothingConfirmsIsNotFollowed) {
  SeenPeriod period = Sizes(5 * kMiB / 4);
  for (SeenLaunch& launch : period.launches) {
    if (launch.shape == 3) launch.kernel = 2;  // two points are left, which any line goes through
  }
  EXPECT_EQ(PredictReaches(period).back(), 46 * kMiB);
}

TEST(PredictReaches, AFitNeverLengthensWhatACutShows) {
  SeenPeriod period = Sizes(40 * kMiB / 4);
  const Bytes end = period.touches.back().offset;
  period.touches.push_back({0, end + 8 * kMiB, 1, true, false});
  SeenLaunch launch;
  launch.kernel = 5, launch.first_touch = 10, launch.touch_count = 1;
  period.launches.push_back(launch);
  EXPECT_EQ(PredictReaches(period)[9], 8 * kMiB);
}

TEST(PredictReaches, IsSureOfWhatIsKnownAndOfWhatAClassAgreesOn) {
  // Three tensors of one kernel that agree, and three of another that do not.
  const SeenPeriod period = Period({{1, 7, 0, 0},
                                    {1, 7, 4 * kMiB, 0},
                                    {1, 7, 8 * kMiB, 0},
                                    {2, 7, 12 * kMiB, 0},
                                    {2, 7, 13 * kMiB, 0},
                                    {2, 7, 15 * kMiB, 0},
                                    {3, 7, 20 * kMiB, kMiB}});
  std::vector<double> confidence;
  PredictReaches(period, &confidence);
  EXPECT_EQ(confidence, (std::vector<double>{0.8, 0.8, 0.8, 0.4, 0.4, 0.4, 1}));
}

TEST(PredictReaches, IsSureWhereNothingCutsTheAllocation) {
  std::vector<double> confidence;
  PredictReaches(Period({{1, 1, 0, 0}}), &confidence);
  EXPECT_EQ(confidence, std::vector<double>{1});
}

TEST(SplitAtTouches, AnAtomIsAsSureAsItsSurestTouch) {
  const SeenPeriod period = Period({{1, 1, 0, 4 * kMiB}, {2, 1, 2 * kMiB, 4 * kMiB}});
  const Sight sight = SplitAtTouches(period, PredictReaches(period), 2 * kMiB, {0.3, 0.8});
  ASSERT_EQ(sight.atoms.size(), 3u);
  EXPECT_EQ(sight.atoms[0].confidence, 0.3);
  EXPECT_EQ(sight.atoms[1].confidence, 0.8);
  EXPECT_EQ(sight.atoms[2].confidence, 0.8);
}

TEST(SplitAtTouches, CutsWhereTouchesBeginAndEndAndLeavesOutWhatNobodyTouches) {
  const SeenPeriod period =
      Period({{1, 1, 0, 10 * kMiB}, {2, 1, 5 * kMiB, 3 * kMiB}, {3, 1, 40 * kMiB, 1}});
  const Sight sight = SplitAtTouches(period, PredictReaches(period), 2 * kMiB);
  EXPECT_EQ(sight.atoms, (std::vector<Atom>{{0, 0, 4 * kMiB},
                                            {0, 4 * kMiB, 4 * kMiB},
                                            {0, 8 * kMiB, 2 * kMiB},
                                            {0, 40 * kMiB, 2 * kMiB}}));
  ASSERT_EQ(sight.trace.launches.size(), 3u);
  EXPECT_EQ(sight.trace.launches[0].reads, (std::vector<uint32_t>{0, 1, 2}));
  EXPECT_EQ(sight.trace.launches[1].reads, std::vector<uint32_t>{1});
  EXPECT_EQ(sight.trace.launches[2].reads, std::vector<uint32_t>{3});
  EXPECT_EQ(sight.trace.tensors[3].bytes, 2 * kMiB);
  EXPECT_TRUE(sight.trace.launches[0].writes.empty());
}

TEST(SplitAtTouches, TwoTensorsThatShareAGranuleShareItsAtom) {
  SeenPeriod period = Period({{1, 1, 0, 3 * kMiB}, {2, 1, 3 * kMiB, 3 * kMiB}});
  period.touches[1].writes = true;
  const Sight sight = SplitAtTouches(period, PredictReaches(period), 2 * kMiB);
  ASSERT_EQ(sight.atoms.size(), 3u);
  EXPECT_EQ(sight.trace.launches[0].reads, (std::vector<uint32_t>{0, 1}));
  EXPECT_EQ(sight.trace.launches[1].writes, (std::vector<uint32_t>{1, 2}));
}

}  // namespace
}  // namespace atp::policy
