// SPDX-License-Identifier: Apache-2.0
// Touches that are recalled equal the ones that would have been recorded; and a modelled launch
// computes nothing.
#include "tests/sim/exec/support.h"

namespace atp::sim {
namespace {

class TouchMemo : public testing::Test {
 protected:
  void SetUp() override {
    module_ = MustLoad(ReadText(std::string(ATP_PTX_DIR) + "/kernels.ptx"));
    ASSERT_NE(module_, nullptr);
    BindGlobals(module_.get(), &memory_);
  }
  ExecResult Run(const std::string& kernel, const LaunchConfig& config, const Params& params) {
    ExecResult result = module_->Execute(kernel, config, params.bytes, memory_, &log_);
    EXPECT_EQ(result.status, ExecStatus::kOk) << result.message;
    return result;
  }
  // The same launch by a module that has never run it.
  ExecResult RunAnew(const std::string& kernel, const LaunchConfig& config, const Params& params) {
    std::unique_ptr<Module> fresh = MustLoad(ReadText(std::string(ATP_PTX_DIR) + "/kernels.ptx"));
    BindGlobals(fresh.get(), &memory_);
    return fresh->Execute(kernel, config, params.bytes, memory_, &log_);
  }
  static LaunchConfig Waves(uint32_t grid, uint32_t block, uint32_t per_wave) {
    LaunchConfig config = Grid(grid, block);
    config.blocks_per_wave = per_wave;
    return config;
  }
  static LaunchConfig Modelled(LaunchConfig config) {
    config.model_repeats = true;
    return config;
  }

  TestMemory memory_;
  std::unique_ptr<Module> module_;
  std::string log_;
};

void ExpectSame(const ExecResult& a, const ExecResult& b) {
  EXPECT_EQ(a.warp_instructions, b.warp_instructions);
  EXPECT_EQ(a.lane_instructions, b.lane_instructions);
  EXPECT_EQ(a.sector_bytes, b.sector_bytes);
  ASSERT_EQ(a.waves.size(), b.waves.size());
  for (size_t w = 0; w < a.waves.size(); ++w) {
    EXPECT_EQ(a.waves[w].block_ends, b.waves[w].block_ends);
    ASSERT_EQ(a.waves[w].pages.size(), b.waves[w].pages.size());
    for (size_t k = 0; k < a.waves[w].pages.size(); ++k) {
      EXPECT_EQ(a.waves[w].pages[k].page, b.waves[w].pages[k].page);
      EXPECT_EQ(a.waves[w].pages[k].flags, b.waves[w].pages[k].flags);
    }
  }
}

TEST_F(TouchMemo, ARepeatedLaunchIsExecutedAndItsTouchesAreRecalled) {
  constexpr int kN = 64 * 1024;
  const uint64_t a = memory_.Put(std::vector<float>(kN, 1)),
                 b = memory_.Put(std::vector<float>(kN, 2)), c = memory_.Allocate(kN * 4);
  const LaunchConfig config = Waves(kN / 256, 256, 16);
  const ExecResult first = Run("VectorAdd", config, Params(a, b, c, kN));
  EXPECT_FALSE(first.recalled);
  memory_.As<float>(a)[7] = 40;
  const ExecResult second = Run("VectorAdd", config, Params(a, b, c, kN));
  EXPECT_TRUE(second.recalled);
  EXPECT_FALSE(second.modelled);
  EXPECT_EQ(memory_.As<float>(c)[7], 42);
  ExpectSame(first, second);
  ExpectSame(second, RunAnew("VectorAdd", config, Params(a, b, c, kN)));
}

TEST_F(TouchMemo, OtherArgumentsAndOtherGeometryAreOtherLaunches) {
  constexpr int kN = 4096;
  const uint64_t a = memory_.Put(std::vector<float>(kN)), b = memory_.Put(std::vector<float>(kN)),
                 c = memory_.Allocate(kN * 4);
  EXPECT_FALSE(Run("VectorAdd", Waves(16, 256, 4), Params(a, b, c, kN)).recalled);
  EXPECT_FALSE(Run("VectorAdd", Waves(16, 256, 4), Params(a, c, b, kN)).recalled);
  EXPECT_FALSE(Run("VectorAdd", Waves(16, 256, 4), Params(a, b, c, kN - 1024)).recalled);
  EXPECT_FALSE(Run("VectorAdd", Waves(32, 128, 4), Params(a, b, c, kN)).recalled);
  EXPECT_FALSE(Run("VectorAdd", Waves(16, 256, 8), Params(a, b, c, kN)).recalled);
  EXPECT_TRUE(Run("VectorAdd", Waves(16, 256, 4), Params(a, b, c, kN)).recalled);
}

TEST_F(TouchMemo, KernelsWhoseTouchesDependOnDataAreNeverRecalled) {
  const uint64_t bins = memory_.Allocate(256 * 4),
                 data = memory_.Put(std::vector<uint32_t>(1024, 3));
  for (int i = 0; i < 2; ++i) {
    const ExecResult result = Run("Scatter", Modelled(Waves(4, 256, 0)), Params(data, bins, 1024));
    EXPECT_FALSE(result.recalled);
    EXPECT_EQ(memory_.As<uint32_t>(bins)[3], 1024u * (i + 1));
  }
}

TEST_F(TouchMemo, AModelledLaunchTouchesTheSameAndComputesNothing) {
  constexpr int kN = 64 * 1024;
  const uint64_t a = memory_.Put(std::vector<float>(kN, 1)),
                 b = memory_.Put(std::vector<float>(kN, 2)), c = memory_.Allocate(kN * 4);
  const LaunchConfig config = Modelled(Waves(kN / 256, 256, 16));
  const ExecResult first = Run("VectorAdd", config, Params(a, b, c, kN));
  EXPECT_FALSE(first.modelled);
  EXPECT_EQ(memory_.As<float>(c)[7], 3);
  memory_.As<float>(a)[7] = 40;
  const ExecResult second = Run("VectorAdd", config, Params(a, b, c, kN));
  EXPECT_TRUE(second.modelled);
  EXPECT_EQ(memory_.As<float>(c)[7], 3) << "nothing was computed";
  ExpectSame(first, second);
}

TEST_F(TouchMemo, WhatIsNotThereAnyMoreIsNotRecalled) {
  constexpr int kN = 1024;
  const uint64_t a = memory_.Put(std::vector<float>(kN)), b = memory_.Put(std::vector<float>(kN)),
                 c = memory_.Allocate(kN * 4);
  const LaunchConfig config = Modelled(Waves(4, 256, 0));
  Run("VectorAdd", config, Params(a, b, c, kN));
  memory_.Free(b);
  const ExecResult result =
      module_->Execute("VectorAdd", config, Params(a, b, c, kN).bytes, memory_, &log_);
  EXPECT_FALSE(result.modelled);
  EXPECT_EQ(result.status, ExecStatus::kIllegalAddress);
}

TEST_F(TouchMemo, ALaunchThatFailedIsNotRemembered) {
  const uint64_t p = memory_.Put(std::vector<float>(100));
  for (int i = 0; i < 2; ++i) {
    const ExecResult result =
        module_->Execute("Fill", Modelled(Waves(8, 128, 0)), Params(p, 1000).bytes, memory_, &log_);
    EXPECT_EQ(result.status, ExecStatus::kIllegalAddress);
    EXPECT_FALSE(result.recalled);
  }
}

}  // namespace
}  // namespace atp::sim
