// SPDX-License-Identifier: Apache-2.0
#include "policy/raw_trace.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace atp::policy {
namespace {

using Access = RawTrace::Access;

class RawTraceTest : public testing::Test {
 protected:
  uint32_t Alloc(Bytes bytes, uint64_t at = 0, uint64_t freed = RawTrace::kNever) {
    RawTrace::Allocation allocation;
    allocation.id = 100 + raw_.allocations.size();
    allocation.bytes = bytes;
    allocation.at = at;
    allocation.freed_at = freed;
    raw_.allocations.push_back(allocation);
    return static_cast<uint32_t>(raw_.allocations.size() - 1);
  }
  void Run(uint64_t signature, std::vector<RawTrace::Touch> touches) {
    RawTrace::Launch launch;
    launch.name = "k";
    launch.signature = signature;
    launch.seconds = 1;
    launch.touches = std::move(touches);
    raw_.launches.push_back(launch);
  }
  static std::vector<Bytes> Sizes(const Trace& trace) {
    std::vector<Bytes> sizes;
    for (const Tensor& tensor : trace.tensors) sizes.push_back(tensor.bytes);
    return sizes;
  }
  RawTrace raw_;
};

TEST_F(RawTraceTest, CutsAllocationsWhereTouchesBeginAndEnd) {
  const uint32_t a = Alloc(1000);
  Run(1, {{a, 0, 600, Access::kRead}});
  Run(2, {{a, 400, 600, Access::kReadWrite}});
  const Trace trace = ToPeriod(raw_, {0, 2});
  EXPECT_EQ(Sizes(trace), (std::vector<Bytes>{400, 200, 400}));
  EXPECT_EQ(trace.launches[0].reads, (std::vector<uint32_t>{0, 1}));
  EXPECT_EQ(trace.launches[1].reads, (std::vector<uint32_t>{1, 2}));
  EXPECT_EQ(trace.launches[1].writes, (std::vector<uint32_t>{1, 2}));
  EXPECT_EQ(trace.tensors[1].id, "100+400");
}

TEST_F(RawTraceTest, JoinsNeighboursThatAreAlwaysTouchedTogether) {
  const uint32_t a = Alloc(1000);
  Run(1, {{a, 0, 300, Access::kRead}, {a, 300, 700, Access::kRead}});
  Run(2, {{a, 0, 1000, Access::kRead}});
  const Trace trace = ToPeriod(raw_, {0, 2});
  EXPECT_EQ(Sizes(trace), (std::vector<Bytes>{1000}));
  EXPECT_EQ(trace.launches[0].reads, (std::vector<uint32_t>{0}));
}

TEST_F(RawTraceTest, LeavesOutWhatThePeriodDoesNotTouch) {
  const uint32_t a = Alloc(1000), b = Alloc(1000);
  Run(1, {{a, 100, 200, Access::kRead}, {a, 600, 100, Access::kRead}});
  Run(2, {{b, 0, 1000, Access::kRead}});
  const Trace trace = ToPeriod(raw_, {0, 1});
  EXPECT_EQ(Sizes(trace), (std::vector<Bytes>{200, 100}));
  EXPECT_EQ(trace.launches.size(), 1u);
}

TEST_F(RawTraceTest, GlobalIsWhatLivesBeforeAndAfter) {
  const uint32_t weights = Alloc(10, 0), temporary = Alloc(10, 3, 4), ends = Alloc(10, 0, 4);
  for (uint64_t i = 0; i < 6; ++i) Run(1, {{weights, 0, 10, Access::kRead}});
  raw_.launches[3].touches.push_back({temporary, 0, 10, Access::kOverwrite});
  raw_.launches[2].touches.push_back({ends, 0, 10, Access::kRead});
  const Trace trace = ToPeriod(raw_, {2, 5});
  ASSERT_EQ(trace.tensors.size(), 3u);
  EXPECT_TRUE(trace.tensors[0].global);
  EXPECT_FALSE(trace.tensors[1].global);
  EXPECT_FALSE(trace.tensors[2].global);
}

TEST_F(RawTraceTest, WhatAProgramFreesAfterItsLastPeriodIsGlobalAllTheSame) {
  const uint32_t weight = Alloc(1000, 0, 4);   // older than the period, freed with the program
  const uint32_t scratch = Alloc(1000, 2, 4);  // made and freed by the period itself
  for (int period = 0; period < 2; ++period) {
    Run(1, {{weight, 0, 1000, Access::kRead}, {scratch, 0, 1000, Access::kOverwrite}});
    Run(2, {{scratch, 0, 1000, Access::kRead}});
  }
  const Trace trace = ToPeriod(raw_, {2, 4});
  EXPECT_TRUE(trace.tensors[0].global);
  EXPECT_FALSE(trace.tensors[1].global);
}

TEST_F(RawTraceTest, AWriteOfPartsKeepsTheRestAlive) {
  const uint32_t a = Alloc(10);
  Run(1, {{a, 0, 10, Access::kWrite}});
  Run(1, {{a, 0, 10, Access::kOverwrite}});
  EXPECT_EQ(ToPeriod(raw_, {0, 2}).launches[0].reads.size(), 1u);
  EXPECT_EQ(ToPeriod(raw_, {0, 2}).launches[1].reads.size(), 0u);
  ToPeriodOptions optimistic;
  optimistic.partial_writes_read = false;
  EXPECT_EQ(ToPeriod(raw_, {0, 2}, optimistic).launches[0].reads.size(), 0u);
}

TEST_F(RawTraceTest, KeepsOneDevice) {
  const uint32_t a = Alloc(10), b = Alloc(20);
  raw_.allocations[b].device = 1;
  Run(1, {{a, 0, 10, Access::kRead}});
  Run(2, {{b, 0, 20, Access::kRead}});
  raw_.launches[1].device = 1;
  ToPeriodOptions options;
  options.device = 1;
  const Trace trace = ToPeriod(raw_, {0, 2}, options);
  EXPECT_EQ(Sizes(trace), (std::vector<Bytes>{20}));
  EXPECT_EQ(trace.launches.size(), 1u);
}

TEST_F(RawTraceTest, FindsTheLastWholePeriodOfTheMainPhase) {
  const uint32_t a = Alloc(10);
  auto run = [&](uint64_t signature) { Run(signature, {{a, 0, 10, Access::kRead}}); };
  for (uint64_t s : {91, 92, 93}) run(s);
  for (int lap = 0; lap < 4; ++lap) {
    for (uint64_t s = 1; s <= 5; ++s) run(s);
  }
  run(1), run(2);  // the run ends within a step
  const auto range = FindMainPeriod(raw_);
  ASSERT_TRUE(range.has_value());
  EXPECT_EQ(range->begin, 18u);
  EXPECT_EQ(range->end, 23u);
}

TEST_F(RawTraceTest, FindsNoPeriodWhereNothingRepeats) {
  for (uint64_t s = 1; s <= 50; ++s) Run(s, {});
  EXPECT_FALSE(FindMainPeriod(raw_).has_value());
}

TEST_F(RawTraceTest, MakesUpSignaturesWhereThereAreNone) {
  const uint32_t a = Alloc(100);
  for (int lap = 0; lap < 3; ++lap) {
    for (Bytes i = 0; i < 4; ++i) Run(0, {{a, i * 10, 10, Access::kRead}});
  }
  const auto range = FindMainPeriod(raw_);
  ASSERT_TRUE(range.has_value());
  EXPECT_EQ(range->end - range->begin, 4u);
}

}  // namespace
}  // namespace atp::policy
