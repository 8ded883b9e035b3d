// SPDX-License-Identifier: Apache-2.0
#include "sim/machine/roofline.h"

#include <gtest/gtest.h>

#include "sim/machine/profiles.h"

namespace atp::sim {
namespace {

class RooflineTest : public testing::Test {
 protected:
  static LaunchConfig Grid(uint32_t blocks, uint32_t threads = 256) {
    LaunchConfig config;
    config.grid[0] = blocks;
    config.block[0] = threads;
    config.blocks_per_wave = 108 * 8;
    return config;
  }
  static ExecResult Stream(uint64_t bytes, uint64_t instructions = 0) {
    ExecResult result;
    result.warp_instructions = instructions;
    result.sector_bytes = bytes;
    result.waves.resize(1);
    for (uint64_t page = 0; page < bytes >> kPageBits; ++page) {
      result.waves[0].pages.push_back({page, PageTouch::kRead});
    }
    return result;
  }
  double Seconds(const LaunchConfig& config, const ExecResult& result) {
    return static_cast<double>(RooflineTime(costs_, shape_, config, result) -
                               costs_.kernel_launch) *
           1e-12;
  }
  const int profile_ = ProfileIndex("a100-40g");
  const Costs costs_ = ProfileCosts(profile_);
  const DeviceShape shape_ = ProfileShape(profile_, costs_);
};

TEST_F(RooflineTest, AnEmptyKernelCostsItsLaunch) {
  EXPECT_EQ(RooflineTime(costs_, shape_, Grid(1), ExecResult()), costs_.kernel_launch);
}

TEST_F(RooflineTest, AStreamGoesAtTheRateOfDeviceMemory) {
  uint64_t bytes = uint64_t{1} << 30;
  EXPECT_NEAR(static_cast<double>(bytes) / Seconds(Grid(100000), Stream(bytes)) / 1e9,
              1 / (1 / (1555 * 0.88) + 0.13 / 4096), 1);
}

TEST_F(RooflineTest, BytesThatAreReadTwiceFromTheCacheCrossMemoryOnce) {
  ExecResult twice = Stream(16 << 20);
  twice.waves.push_back(twice.waves[0]);
  twice.sector_bytes *= 2;
  EXPECT_LT(Seconds(Grid(100000), twice), 1.3 * Seconds(Grid(100000), Stream(16 << 20)));
  ExecResult large = Stream(512 << 20);  // larger than the cache: each wave loads it again
  large.waves.push_back(large.waves[0]);
  large.sector_bytes *= 2;
  EXPECT_NEAR(Seconds(Grid(100000), large), 2 * Seconds(Grid(100000), Stream(512 << 20)), 1e-6);
}

TEST_F(RooflineTest, ScatteredAccessesCountTheirSectorsNotWholePages) {
  ExecResult scattered = Stream(1 << 30);
  scattered.sector_bytes /= 128;
  EXPECT_LT(Seconds(Grid(100000), scattered), Seconds(Grid(100000), Stream(1 << 30)) / 10);
}

TEST_F(RooflineTest, InstructionsAreIssuedByAllMultiprocessors) {
  double seconds = Seconds(Grid(100000), Stream(0, 1'000'000'000));
  EXPECT_NEAR(1e9 / seconds / 1e9, 108 * 2 * 0.7 * 1.41, 0.5);
}

TEST_F(RooflineTest, ASmallGridLeavesTheCardEmpty) {
  double full = Seconds(Grid(100000), Stream(0, 1'000'000'000));
  EXPECT_NEAR(Seconds(Grid(1), Stream(0, 1'000'000'000)) / full, 108, 1);
  EXPECT_GT(Seconds(Grid(1, 32), Stream(0, 1'000'000'000)),
            3.9 * Seconds(Grid(1), Stream(0, 1'000'000'000)));
}

}  // namespace
}  // namespace atp::sim
