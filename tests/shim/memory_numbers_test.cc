// SPDX-License-Identifier: Apache-2.0
#include "shim/memory_numbers.h"

#include <gtest/gtest.h>

namespace atp::shim {
namespace {

constexpr uint64_t kGiB = 1ull << 30;

class MemoryNumbersTest : public testing::Test {
 protected:
  MemoryNumbersTest() {
    device_.total = 16 * kGiB;
    device_.free_at_start = 15 * kGiB;
  }
  uint64_t Free(uint64_t driver_free) {
    size_t free = driver_free, total = 16 * kGiB;
    CorrectMemoryInfo(&device_, &free, &total);
    EXPECT_EQ(total, 16 * kGiB);
    return free;
  }
  Device device_;
};

TEST_F(MemoryNumbersTest, BeforeAnyAllocationTheDriversAnswerStands) {
  EXPECT_EQ(Free(15 * kGiB), 15 * kGiB);
}

TEST_F(MemoryNumbersTest, WhatTheProgramAllocatedIsUsedWhereverItLies) {
  device_.managed = 4 * kGiB;
  device_.ever_managed = true;
  EXPECT_EQ(Free(15 * kGiB), 11 * kGiB);  // all of it on the host
  EXPECT_EQ(Free(11 * kGiB), 11 * kGiB);  // all of it on the device
}

TEST_F(MemoryNumbersTest, FreeIsNeverNegative) {
  device_.managed = 40 * kGiB;
  device_.ever_managed = true;
  EXPECT_EQ(Free(2 * kGiB), 0u);
}

TEST_F(MemoryNumbersTest, ChunksThatTheDriverKeepsAfterManagedMemoryIsFreedAreFree) {
  device_.ever_managed = true;
  EXPECT_EQ(Free(14 * kGiB), 15 * kGiB);
}

TEST_F(MemoryNumbersTest, WithoutManagedMemoryOthersUseShowsToo) {
  EXPECT_EQ(Free(3 * kGiB), 3 * kGiB);
}

TEST_F(MemoryNumbersTest, UnknownDevicesAndNullPointersAreLeftAlone) {
  size_t free = 5, total = 6;
  CorrectMemoryInfo(nullptr, &free, &total);
  CorrectMemoryInfo(&device_, nullptr, &total);
  EXPECT_EQ(free, 5u);
  EXPECT_EQ(total, 6u);
}

}  // namespace
}  // namespace atp::shim
