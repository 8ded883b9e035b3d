// SPDX-License-Identifier: Apache-2.0
#include "shim/host_memory.h"

#include <gtest/gtest.h>

namespace atp::shim {
namespace {

constexpr uint64_t kGiB = 1ull << 30;

TEST(HostMemory, ReadsMemAvailable) {
  EXPECT_EQ(ParseMemAvailable("MemTotal: 9 kB\nMemFree:  1 kB\nMemAvailable:   2048 kB\nX: 3 kB\n"),
            2048u * 1024);
  EXPECT_EQ(ParseMemAvailable("MemTotal: 9 kB\n"), UINT64_MAX);
}

TEST(HostMemory, TheShareKeepsAReserveOfTwoGibibytesOrFivePercent) {
  EXPECT_EQ(DefaultHostShare(10 * kGiB), 10 * kGiB / 100 * 80 - 2 * kGiB);
  const uint64_t large = 1000 * kGiB / 100 * 80;
  EXPECT_EQ(DefaultHostShare(1000 * kGiB), large - large / 20);
  EXPECT_EQ(DefaultHostShare(kGiB), 0u);
}

TEST(HostMemory, ThisMachineHasSome) { EXPECT_GT(AvailableHostMemory(), 0u); }

}  // namespace
}  // namespace atp::shim
