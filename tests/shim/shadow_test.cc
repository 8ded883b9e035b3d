// SPDX-License-Identifier: Apache-2.0
// Launches that run again into scratch memory, on a driver whose device memory is the host's.
#include "shim/shadow.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#include "shim/device.h"
#include "shim/functions.h"
#include "tests/shim/fake_real.h"

namespace atp::shim {
namespace {

constexpr uint64_t kScratch = 1u << 20;
constexpr Parameter kParameters[3] = {{0, 8}, {8, 8}, {16, 4}};  // in, out, n
std::function<CUresult(void** parameters)> run;
std::vector<CUdeviceptr> written;  // by launches
CUresult copy_result;

class ShadowTest : public testing::Test {
 protected:
  ShadowTest() : in_(4096, 1), out_(4096, 1) {
    FakeReal::Install();
    copy_result = CUDA_SUCCESS;
    written.clear();
    run = [](void** parameters) {
      const auto* in = At(parameters, 0);
      auto* out = At(parameters, 1);
      written.push_back(reinterpret_cast<CUdeviceptr>(out));
      for (uint32_t i = 0; i < N(parameters); ++i) out[i] = static_cast<char>(in[i] + 1);
      return CUDA_SUCCESS;
    };
    g_real.cuCtxSetCurrent = [](CUcontext) { return CUDA_SUCCESS; };
    g_real.cuMemAlloc_v2 = [](CUdeviceptr* address, size_t bytes) {
      *address = reinterpret_cast<CUdeviceptr>(aligned_alloc(kGranule, bytes));
      return CUDA_SUCCESS;
    };
    g_real.cuMemHostRegister_v2 = [](void*, size_t, unsigned) { return CUDA_SUCCESS; };
    g_real.cuEventCreate = [](CUevent* event, unsigned) {
      return *event = reinterpret_cast<CUevent>(1), CUDA_SUCCESS;
    };
    g_real.cuEventRecord = [](CUevent, CUstream) { return CUDA_SUCCESS; };
    g_real.cuEventQuery = [](CUevent) { return CUDA_SUCCESS; };
    g_real.cuEventSynchronize = [](CUevent) { return CUDA_SUCCESS; };
    g_real.cuLaunchKernel = [](CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned,
                               unsigned, unsigned, CUstream, void** parameters,
                               void**) { return run(parameters); };
    g_real.cuMemcpyDtoHAsync_v2 = [](void* to, CUdeviceptr from, size_t bytes, CUstream) {
      if (copy_result == CUDA_SUCCESS) memcpy(to, reinterpret_cast<void*>(from), bytes);
      return copy_result;
    };
    info_.known = true;
    info_.name = "plus_one";
    info_.parameters = kParameters;
    info_.handle = this;
    again_ = Launched(1000, 24);
    repeatable_.again.push_back(again_);
  }

  static char* At(void** parameters, size_t i) { return *static_cast<char**>(parameters[i]); }
  static uint32_t N(void** parameters) { return *static_cast<uint32_t*>(parameters[2]); }

  // A launch that writes `n` bytes of `out_` from byte `at` on.
  Again Launched(uint32_t n, uint64_t at) {
    Again again;
    again.info = &info_;
    again.arguments.resize(20);
    const char *in = in_.data(), *out = out_.data() + at;
    memcpy(&again.arguments[0], &in, 8);
    memcpy(&again.arguments[8], &out, 8);
    memcpy(&again.arguments[16], &n, 4);
    again.outputs.push_back({8, reinterpret_cast<uint64_t>(out), n, 0, nullptr});
    again.kind = n;
    again.key = n + (at << 32);
    return again;
  }

  // The program launches it, in this period. Whether it ran again.
  bool Launch(Shadow* shadow, const Again& again, uint64_t period) {
    std::vector<char> arguments = again.arguments;
    void* parameters[3] = {&arguments[0], &arguments[8], &arguments[16]};
    LaunchView view;
    view.arguments.info = again.info;
    view.arguments.parameters = parameters;
    EXPECT_EQ(run(parameters), CUDA_SUCCESS);
    const std::vector<char> before = out_;
    if (!shadow->Wants(&again, view, period)) return false;
    shadow->Take(again);
    EXPECT_TRUE(shadow->submitting());
    shadow->Submit(view);
    EXPECT_FALSE(shadow->submitting());
    EXPECT_EQ(out_, before) << "the program's memory was written";
    shadow->Poll();
    return true;
  }
  Shadow* New(bool inline_work = true) {
    auto* shadow = new Shadow(FakeReal::current, kScratch, inline_work);
    shadow->Expect(repeatable_);
    return shadow;
  }

  std::vector<char> in_, out_;
  FunctionInfo info_;
  Again again_;
  Repeatable repeatable_;
};

TEST_F(ShadowTest, TheSameBitsInTwoPeriodsAreEnough) {
  Shadow* shadow = New();
  EXPECT_TRUE(Launch(shadow, again_, 1));
  EXPECT_FALSE(Launch(shadow, again_, 1)) << "the same period says no more";
  EXPECT_EQ(shadow->Of(repeatable_).open, 1u);
  EXPECT_TRUE(Launch(shadow, again_, 2));
  const Shadow::Result result = shadow->Of(repeatable_);
  EXPECT_EQ(result.passed, 1u);
  EXPECT_EQ(result.passed_bytes, 1000u);
  EXPECT_EQ(result.open, 0u);
  EXPECT_FALSE(Launch(shadow, again_, 3));
  EXPECT_EQ(shadow->runs(), 2u);
}

TEST_F(ShadowTest, PointersKeepTheirPlaceInALine) {
  Launch(New(), again_, 1);
  ASSERT_EQ(written.size(), 2u);
  EXPECT_NE(written[0], written[1]);
  EXPECT_EQ(written[0] % 256, written[1] % 256);
}

// What it wrote first hangs on how often it has run.
TEST_F(ShadowTest, OneByteThatDiffersRetiresAllOfTheKind) {
  Shadow* shadow = New();
  run = [count = 0](void** parameters) mutable {
    memset(At(parameters, 1), 7, N(parameters));
    At(parameters, 1)[999] = static_cast<char>(++count);
    return CUDA_SUCCESS;
  };
  EXPECT_TRUE(Launch(shadow, again_, 1));
  const Shadow::Result result = shadow->Of(repeatable_);
  EXPECT_EQ(result.passed, 0u);
  const std::map<std::string, uint64_t> retired = {
      {"plus_one: byte 999 of 1000 came out otherwise", 1}};
  EXPECT_EQ(result.retired, retired);
  EXPECT_FALSE(Launch(shadow, again_, 2));
  EXPECT_FALSE(Launch(shadow, Launched(1000, 512), 2)) << "it differs in its pointers only";
}

TEST_F(ShadowTest, AnotherLaunchThanTheProvenOneIsLeftAlone) {
  Shadow* shadow = New();
  const Again other = Launched(1001, 24);
  std::vector<char> arguments = other.arguments;
  void* parameters[3] = {&arguments[0], &arguments[8], &arguments[16]};
  LaunchView view;
  view.arguments.info = &info_;
  view.arguments.parameters = parameters;
  EXPECT_FALSE(shadow->Wants(&again_, view, 1)) << "other arguments";
  EXPECT_TRUE(shadow->Wants(&other, view, 1));
  view.arguments.shape.grid[0] = 2;
  EXPECT_FALSE(shadow->Wants(&other, view, 1)) << "another geometry";
  view.arguments.shape.grid[0] = 1;
  view.capturing = true;
  EXPECT_FALSE(shadow->Wants(&other, view, 1)) << "it only joins a graph";
}

TEST_F(ShadowTest, WhatDoesNotFitIsNotLookedAt) {
  Shadow* shadow = New();
  Again large = again_;
  large.outputs[0].bytes = kScratch;  // and a part of a line in front
  Repeatable two = repeatable_;
  two.again.push_back(large);
  EXPECT_EQ(shadow->Of(two).too_large, 1u);
  EXPECT_EQ(shadow->Of(two).open, 1u);
}

TEST_F(ShadowTest, ADriverThatRefusesIsNotAskedAgain) {
  for (const bool launch : {false, true}) {
    Shadow* shadow = New();
    copy_result = launch ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    g_real.cuLaunchKernel = [](CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned,
                               unsigned, unsigned, CUstream, void** parameters, void**) {
      return copy_result == CUDA_SUCCESS ? CUDA_ERROR_OUT_OF_MEMORY : run(parameters);
    };
    EXPECT_TRUE(Launch(shadow, again_, 1));
    EXPECT_FALSE(Launch(shadow, again_, 2));
    EXPECT_NE(shadow->Of(repeatable_).off.find("the driver refuses"), std::string::npos);
  }
  g_real.cuMemAlloc_v2 = [](CUdeviceptr*, size_t) { return CUDA_ERROR_OUT_OF_MEMORY; };
  EXPECT_EQ(New()->Of(repeatable_).off, "the driver gives no scratch memory");
}

// Its scratch memory may be somebody else's by now.
TEST_F(ShadowTest, ContextsThatEndEndIt) {
  Shadow* shadow = New();
  ForgetContext(reinterpret_cast<CUcontext>(0x999));
  EXPECT_TRUE(Launch(shadow, again_, 1));
  EXPECT_EQ(written.size(), 1u) << "it ran again all the same";
  EXPECT_FALSE(Launch(shadow, again_, 2));
  EXPECT_FALSE(shadow->Of(repeatable_).off.empty());
}

TEST_F(ShadowTest, AThreadComparesWhereThereAreThreads) {
  Shadow* shadow = New(/*inline_work=*/false);
  uint64_t period = 0;
  while (shadow->Of(repeatable_).passed == 0) {
    Launch(shadow, again_, ++period);
    std::this_thread::yield();
  }
  EXPECT_EQ(shadow->runs(), 2u);
}

}  // namespace
}  // namespace atp::shim
