// SPDX-License-Identifier: Apache-2.0
#include "shim/idle_ranges.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "shim/managed.h"
#include "shim/placement.h"
#include "tests/shim/fake_real.h"

namespace atp::shim {
namespace {

constexpr uint64_t kMiB = 1ull << 20;

class IdleRangesTest : public testing::Test {
 protected:
  IdleRangesTest() {
    FakeReal::Install();
    g_watching = true;
  }
  ~IdleRangesTest() override {
    for (CUdeviceptr address : live_) ReleaseAllocation(address);
    GiveBackIdle(0);
    g_watching = false;
    EXPECT_EQ(CurrentDevice()->idle, 0u) << "the books do not close";
    EXPECT_EQ(CurrentDevice()->managed, 0u) << "the books do not close";
    EXPECT_TRUE(FakeReal::managed.empty());
  }
  CUdeviceptr Allocate(size_t bytes) {
    CUdeviceptr address = 0;
    if (PlaceAllocation(&address, bytes) == CUDA_SUCCESS) live_.push_back(address);
    return address;
  }
  CUresult Release(CUdeviceptr address) {
    std::erase(live_, address);
    return ReleaseAllocation(address);
  }
  std::vector<CUdeviceptr> live_;
};

TEST_F(IdleRangesTest, EqualSequencesOfRequestsGetEqualAddressesWhateverTheOrderOfFrees) {
  const std::vector<CUdeviceptr> first = {Allocate(4 * kMiB), Allocate(4 * kMiB),
                                          Allocate(8 * kMiB), Allocate(4 * kMiB)};
  const std::vector<std::vector<size_t>> orders = {{2, 0, 3, 1}, {3, 2, 1, 0}, {0, 1, 2, 3}};
  for (const std::vector<size_t>& order : orders) {
    for (size_t i : order) ASSERT_EQ(Release(first[i]), CUDA_SUCCESS);
    for (size_t i = 0; i < first.size(); ++i) {
      EXPECT_EQ(Allocate(i == 2 ? 8 * kMiB : 4 * kMiB), first[i]);
    }
  }
}

TEST_F(IdleRangesTest, AFreeWaitsAndNothingIsUnmapped) {
  const CUdeviceptr address = Allocate(4 * kMiB);
  FakeReal::calls.clear();
  Release(address);
  EXPECT_EQ(FakeReal::calls, std::vector<std::string>{"sync"});
}

TEST_F(IdleRangesTest, WhatHasBeenFreedIsNoAllocationAndCannotBeFreedAgain) {
  const CUdeviceptr address = Allocate(4 * kMiB);
  Release(address);
  uint64_t start = 0, bytes = 0;
  EXPECT_FALSE(ProgramRange(address, &start, &bytes));
  EXPECT_EQ(ReleaseAllocation(address), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(UsageOf(*CurrentDevice()).managed, 0u);
  ASSERT_EQ(Allocate(3 * kMiB), address);
  ASSERT_TRUE(ProgramRange(address, &start, &bytes));
  EXPECT_EQ(bytes, 3 * kMiB);
}

TEST_F(IdleRangesTest, MemoryThatIsRefusedOtherwiseComesFromWhatIsIdle) {
  std::vector<CUdeviceptr> most;
  for (int i = 0; i < 8; ++i) most.push_back(Allocate(512 * kMiB));  // all of the host's share
  EXPECT_EQ(Allocate(2 * kMiB), 0u);
  Release(most[3]);
  EXPECT_NE(Allocate(256 * kMiB), 0u);
}

TEST_F(IdleRangesTest, AtMostASixthMoreIsHeldThanWasEverInUse) {
  CurrentDevice()->most_in_use = 0;
  for (uint64_t mib = 16; mib <= 160; mib += 2) {
    ASSERT_EQ(Release(Allocate(mib * kMiB)), CUDA_SUCCESS);
    EXPECT_LE(CurrentDevice()->managed, mib * kMiB / 6 * 7);
  }
}

TEST_F(IdleRangesTest, IsOffUnlessMemoryIsShort) {
  g_watching = false;
  Release(Allocate(4 * kMiB));
  EXPECT_TRUE(FakeReal::managed.empty());
}

}  // namespace
}  // namespace atp::shim
