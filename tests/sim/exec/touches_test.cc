// SPDX-License-Identifier: Apache-2.0
// What a launch reports about memory: pages in order, waves, overwritten pages, sectors; and that
// none of it depends on threads.
#include <algorithm>
#include <set>

#include "tests/sim/exec/support.h"

namespace atp::sim {
namespace {

class Touches : public testing::Test {
 protected:
  void SetUp() override {
    module_ = MustLoad(ReadText(std::string(ATP_PTX_DIR) + "/kernels.ptx"));
    ASSERT_NE(module_, nullptr);
    BindGlobals(module_.get(), &memory_);
  }
  void TearDown() override { SetExecutionThreads(0); }
  ExecResult Run(const std::string& kernel, LaunchConfig config, const Params& params) {
    ExecResult result = module_->Execute(kernel, config, params.bytes, memory_, &log_);
    EXPECT_EQ(result.status, ExecStatus::kOk) << result.message;
    return result;
  }
  static LaunchConfig Waves(uint32_t grid, uint32_t block, uint32_t per_wave) {
    LaunchConfig config = Grid(grid, block);
    config.blocks_per_wave = per_wave;
    return config;
  }
  static uint8_t FlagsOf(const WaveTouches& wave, uint64_t address) {
    for (const PageTouch& touch : wave.pages) {
      if (touch.page == address >> kPageBits) return touch.flags;
    }
    return 0;
  }

  TestMemory memory_;
  std::unique_ptr<Module> module_;
  std::string log_;
};

constexpr uint8_t kRead = PageTouch::kRead, kWrite = PageTouch::kWrite,
                  kOverwritten = PageTouch::kOverwritten;

TEST_F(Touches, FillOverwritesWholePagesOnly) {
  uint64_t p = memory_.Put(std::vector<float>(4096));  // four pages
  ExecResult result = Run("Fill", Waves(28, 128, 0), Params(p, 3500));
  ASSERT_EQ(result.waves.size(), 1u);
  ASSERT_EQ(result.waves[0].pages.size(), 4u);
  EXPECT_EQ(FlagsOf(result.waves[0], p), kWrite | kOverwritten);
  EXPECT_EQ(FlagsOf(result.waves[0], p + 8192), kWrite | kOverwritten);
  EXPECT_EQ(FlagsOf(result.waves[0], p + 12288), kWrite) << "3500 floats end in the fourth page";
}

TEST_F(Touches, ReadingFirstIsNoOverwrite) {
  uint64_t p = memory_.Put(std::vector<float>(1024));
  ExecResult result = Run("Scale", Waves(8, 128, 0), Params(p, 1024));
  EXPECT_EQ(FlagsOf(result.waves[0], p), kRead | kWrite);
}

TEST_F(Touches, ReadingWhatTheBlockItselfWroteIsStillAnOverwrite) {
  uint64_t p = memory_.Put(std::vector<float>(1024));
  ExecResult result = Run("FillThenScale", Waves(8, 128, 0), Params(p, 1024));
  EXPECT_EQ(FlagsOf(result.waves[0], p), kRead | kWrite | kOverwritten);
  EXPECT_EQ(memory_.As<float>(p)[1023], 4.0f);
}

TEST_F(Touches, PagesComeInOrderOfFirstTouchAndOncePerWave) {
  constexpr int kN = 64 * 1024;
  uint64_t a = memory_.Put(std::vector<float>(kN)), b = memory_.Put(std::vector<float>(kN)),
           c = memory_.Put(std::vector<float>(kN));
  ExecResult result = Run("VectorAdd", Waves(kN / 256, 256, 16), Params(a, b, c, kN));
  ASSERT_EQ(result.waves.size(), 16u);
  for (size_t w = 0; w < 16; ++w) {
    const WaveTouches& wave = result.waves[w];
    ASSERT_EQ(wave.pages.size(), 12u) << "16 blocks of 1 KiB in each of three arrays";
    std::set<uint64_t> distinct;
    for (const PageTouch& touch : wave.pages) distinct.insert(touch.page);
    EXPECT_EQ(distinct.size(), 12u);
    for (size_t k = 0; k < 4; ++k) {
      uint64_t offset = w * 16384 + k * 4096;
      std::set<uint64_t> expected = {(a + offset) >> kPageBits, (b + offset) >> kPageBits,
                                     (c + offset) >> kPageBits},
                         found;
      for (size_t t = 0; t < 3; ++t) found.insert(wave.pages[3 * k + t].page);
      EXPECT_EQ(found, expected);
    }
    EXPECT_EQ(FlagsOf(wave, c + w * 16384), kWrite | kOverwritten);
    EXPECT_EQ(FlagsOf(wave, a + w * 16384), kRead);
  }
  EXPECT_EQ(result.sector_bytes, uint64_t{3} * kN * 4)
      << "coalesced access asks for every byte once";
}

TEST_F(Touches, SayWhereTheirBlocksEnd) {
  constexpr int kN = 64 * 1024;
  uint64_t a = memory_.Put(std::vector<float>(kN)), b = memory_.Put(std::vector<float>(kN)),
           c = memory_.Put(std::vector<float>(kN));
  ExecResult result = Run("VectorAdd", Waves(kN / 256, 256, 16), Params(a, b, c, kN));
  ASSERT_EQ(result.waves.size(), 16u);
  // Four blocks share a page of each array: the first of them is the one that touches it first.
  const std::vector<uint32_t> expected = {3, 6, 9, 12};
  for (const WaveTouches& wave : result.waves) EXPECT_EQ(wave.block_ends, expected);
}

constexpr char kStrided[] = R"(
.version 8.0
.target sm_80
.address_size 64
.visible .entry strided(.param .u64 p, .param .u32 stride) {
  .reg .b32 %r<4>; .reg .b64 %d<4>; .reg .f32 %f;
  ld.param.u64 %d0, [p]; ld.param.u32 %r0, [stride]; mov.u32 %r1, %tid.x;
  mul.lo.u32 %r2, %r1, %r0; mad.wide.u32 %d1, %r2, 1, %d0;
  ld.global.f32 %f, [%d1];
  ret;
}
)";

TEST_F(Touches, SectorsFollowTheStride) {
  std::unique_ptr<Module> module = MustLoad(kStrided);
  uint64_t p = memory_.Allocate(1 << 20);
  for (auto [stride, sectors] : {std::pair(0u, 1u), std::pair(4u, 4u), std::pair(8u, 8u),
                                 std::pair(32u, 32u), std::pair(4096u, 32u)}) {
    ExecResult result =
        module->Execute("strided", Grid(1, 32), Params(p, stride).bytes, memory_, nullptr);
    EXPECT_EQ(result.sector_bytes, uint64_t{sectors} * 32) << stride;
    EXPECT_EQ(result.waves[0].pages.size(), stride == 4096 ? 32u : 1u);
  }
}

TEST_F(Touches, CountsAreOfWarpsAndLanes) {
  uint64_t p = memory_.Put(std::vector<float>(64));
  ExecResult one = Run("Fill", Grid(1, 1), Params(p, 64)),
             many = Run("Fill", Grid(1, 32), Params(p, 64));
  EXPECT_EQ(one.warp_instructions, many.warp_instructions);
  EXPECT_EQ(one.lane_instructions, one.warp_instructions);
  EXPECT_EQ(many.lane_instructions, 32 * many.warp_instructions);
}

bool Same(const ExecResult& a, const ExecResult& b) {
  if (a.status != b.status || a.message != b.message ||
      a.warp_instructions != b.warp_instructions || a.lane_instructions != b.lane_instructions ||
      a.sector_bytes != b.sector_bytes || a.waves.size() != b.waves.size()) {
    return false;
  }
  for (size_t w = 0; w < a.waves.size(); ++w) {
    if (a.waves[w].block_ends != b.waves[w].block_ends) return false;
    auto equal = [](const PageTouch& x, const PageTouch& y) {
      return x.page == y.page && x.flags == y.flags;
    };
    if (!std::equal(a.waves[w].pages.begin(), a.waves[w].pages.end(), b.waves[w].pages.begin(),
                    b.waves[w].pages.end(), equal)) {
      return false;
    }
  }
  return true;
}

TEST_F(Touches, NothingDependsOnTheNumberOfThreads) {
  constexpr int kN = 96 * 1024;
  std::vector<float> x(kN);
  for (int i = 0; i < kN; ++i) x[i] = 1.0f / static_cast<float>(i + 1);
  struct Case {
    const char* kernel;
    LaunchConfig config;
  };
  for (const Case& c :
       {Case{"VectorAdd", Waves(kN / 256, 256, 100)}, Case{"Softmax", Waves(200, 128, 33)},
        Case{"FloatAtomics", Waves(100, 128, 40)}}) {
    std::vector<ExecResult> results;
    std::vector<std::vector<float>> outputs;
    uint64_t a = memory_.Put(x), b = memory_.Put(x), out = memory_.Allocate(kN * 4),
             wide = memory_.Allocate(8);
    for (unsigned threads : {1u, 2u, 5u}) {
      SetExecutionThreads(threads);
      std::memset(memory_.Host(out), 0, kN * 4);
      std::memset(memory_.Host(wide), 0, 8);
      Params params = c.kernel[0] == 'V'   ? Params(a, b, out, kN)
                      : c.kernel[0] == 'S' ? Params(a, out, 450)
                                           : Params(out, wide, a, 100 * 128);
      results.push_back(Run(c.kernel, c.config, params));
      outputs.push_back(memory_.Get<float>(out, kN));
      EXPECT_TRUE(Same(results[0], results.back()))
          << c.kernel << " with " << threads << " threads";
      EXPECT_EQ(std::memcmp(outputs[0].data(), outputs.back().data(), kN * 4), 0)
          << c.kernel << " with " << threads << " threads";
    }
  }
}

TEST_F(Touches, TheLowestFailingBlockIsReportedWhateverTheThreads) {
  uint64_t p = memory_.Put(std::vector<float>(1024 * 100));
  std::string first;
  for (unsigned threads : {1u, 2u, 4u}) {
    SetExecutionThreads(threads);
    // Blocks from number 400 on run over the end.
    ExecResult result =
        module_->Execute("Fill", Waves(800, 256, 108), Params(p, 1 << 30).bytes, memory_, nullptr);
    EXPECT_EQ(result.status, ExecStatus::kIllegalAddress);
    EXPECT_NE(result.message.find("block (400,0,0)"), std::string::npos) << result.message;
    if (first.empty()) first = result.message;
    EXPECT_EQ(result.message, first);
  }
}

}  // namespace
}  // namespace atp::sim
