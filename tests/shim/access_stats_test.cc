// SPDX-License-Identifier: Apache-2.0
#include "shim/access_stats.h"

#include <gtest/gtest.h>

#include <vector>

#include "shim/resolve.h"
#include "shim/schedule.h"

namespace atp::shim {
namespace {

constexpr uint64_t kBlock = 2u << 20, kPiece = 64u << 10, kBase = 100 * kBlock;

SimTouch PieceAt(uint64_t offset) { return {kBase + offset, 1, 0}; }

AccessRange Blocks(uint64_t first, uint64_t count) {
  return {kBase + first * kBlock, kBase + (first + count) * kBlock};
}

TEST(AccessStatsTest, WhatIsPredictedAndTouchedIsNeitherWrongNorMissed) {
  std::vector<SimTouch> touched;
  for (uint64_t at = 0; at < 2 * kBlock; at += kPiece) touched.push_back(PieceAt(at));
  const AccessCount count = CompareRanges(std::vector{Blocks(0, 2)}, touched);
  EXPECT_EQ(count.launches, 1u);
  EXPECT_EQ(count.predicted, 2 * kBlock);
  EXPECT_EQ(count.touched, 2 * kBlock);
  EXPECT_EQ(count.wrong, 0u);
  EXPECT_EQ(count.missed, 0u);
}

TEST(AccessStatsTest, RoundingToBlocksIsToldFromBlocksOfWhichNothingIsTouched) {
  const AccessCount count =
      CompareRanges(std::vector{Blocks(0, 2)}, std::vector{PieceAt(0), PieceAt(3 * kPiece)});
  EXPECT_EQ(count.wrong, 2 * kBlock - 2 * kPiece);
  EXPECT_EQ(count.wrong_in_blocks, kBlock);
}

TEST(AccessStatsTest, WhatLiesBeforeBetweenAndBehindPredictedRangesIsMissed) {
  const AccessCount count = CompareRanges(
      std::vector{Blocks(1, 1), Blocks(3, 1)},
      std::vector{PieceAt(0), PieceAt(kBlock), PieceAt(2 * kBlock + kPiece), PieceAt(9 * kBlock)});
  EXPECT_EQ(count.missed, 3 * kPiece);
  EXPECT_EQ(count.wrong, 2 * kBlock - kPiece);
  EXPECT_EQ(count.wrong_in_blocks, kBlock);
}

TEST(AccessStatsTest, NothingPredictedMissesEverything) {
  const AccessCount count = CompareRanges({}, std::vector{PieceAt(0), PieceAt(kPiece)});
  EXPECT_EQ(count.predicted, 0u);
  EXPECT_EQ(count.missed, count.touched);
}

TEST(AccessStatsTest, APlansLaunchTouchesWhatItReadsAndWritesOnce) {
  Allocation allocation;
  allocation.address = kBase;
  Schedule schedule;
  schedule.tensors = {{&allocation, 0, kBlock}, {&allocation, 4 * kBlock, 2 * kBlock}};
  policy::Trace trace;
  policy::Launch launch;
  launch.reads = {1, 0};
  launch.writes = {1};
  trace.launches = {launch};
  schedule.trace = std::make_shared<const policy::Trace>(trace);
  EXPECT_EQ(PredictedRanges(schedule, 0), (std::vector{Blocks(0, 1), Blocks(4, 2)}));
}

}  // namespace
}  // namespace atp::shim
