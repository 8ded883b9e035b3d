// SPDX-License-Identifier: Apache-2.0
// ATP_SIM_CHECK=uninitialised: who counts as a writer.
#include <cstring>
#include <nlohmann/json.hpp>

#include "tests/sim/driver/driver_test_support.h"

namespace atp::sim {
namespace {

constexpr int kCount = 1024;

struct Card {
  Card() {
    EXPECT_CUDA(cuInit(0));
    EXPECT_CUDA(cuCtxCreate(&context, nullptr, 0, 0));
    EXPECT_CUDA(cuModuleLoad(&module, ATP_TEST_PTX));
    EXPECT_CUDA(cuModuleGetFunction(&increment, module, "Increment"));
  }
  void Increment(CUdeviceptr memory, int count = kCount) {
    void* arguments[] = {&memory, &count};
    EXPECT_CUDA(cuLaunchKernel(increment, 8, 1, 1, 128, 1, 1, 0, nullptr, arguments, nullptr));
    EXPECT_CUDA(cuCtxSynchronize());
  }
  CUcontext context = nullptr;
  CUmodule module = nullptr;
  CUfunction increment = nullptr;
};

// How many reads of unwritten memory `body` makes in a process of its own.
uint64_t ReadsOf(const char* check, const std::function<void()>& body) {
  const std::string file = TemporaryFile("check.json");
  RunWith({{"ATP_SIM_CHECK", check}, {"ATP_SIM_STATS", file}}, body);
  return nlohmann::json::parse(ReadText(file))["uninitialised_reads"];
}

TEST(UninitialisedReads, OfFreshMemoryAreCounted) {
  const uint64_t reads = ReadsOf("uninitialised", [] {
    Card card;
    CUdeviceptr memory = 0;
    ASSERT_CUDA(cuMemAlloc(&memory, kCount * 4));
    card.Increment(memory);
    card.Increment(memory);  // now it has been written
  });
  EXPECT_EQ(reads, uint64_t{kCount} / 32) << "one access a warp";
}

TEST(UninitialisedReads, SetsCopiesAndTheHostWrite) {
  const uint64_t reads = ReadsOf("uninitialised", [] {
    Card card;
    CUdeviceptr set = 0, copied = 0, pooled = 0, managed = 0;
    const std::vector<int> values(kCount, 1);
    ASSERT_CUDA(cuMemAlloc(&set, kCount * 4));
    ASSERT_CUDA(cuMemsetD32(set, 1, kCount));
    card.Increment(set);
    ASSERT_CUDA(cuMemAlloc(&copied, kCount * 4));
    ASSERT_CUDA(cuMemcpyHtoD(copied, values.data(), kCount * 4));
    card.Increment(copied);
    ASSERT_CUDA(cuMemAllocAsync(&pooled, kCount * 4, nullptr));
    ASSERT_CUDA(cuMemcpyDtoD(pooled, copied, kCount * 4));
    card.Increment(pooled);
    ASSERT_CUDA(cuMemAllocManaged(&managed, kCount * 4, CU_MEM_ATTACH_GLOBAL));
    std::memcpy(reinterpret_cast<void*>(managed), values.data(), kCount * 4);
    card.Increment(managed);
  });
  EXPECT_EQ(reads, 0u);
}

TEST(UninitialisedReads, MemoryThatComesBackFromAPoolIsFresh) {
  const uint64_t reads = ReadsOf("uninitialised", [] {
    Card card;
    for (int round = 0; round < 2; ++round) {
      CUdeviceptr memory = 0;
      ASSERT_CUDA(cuMemAllocAsync(&memory, kCount * 4, nullptr));
      if (round == 0) {
        ASSERT_CUDA(cuMemsetD32(memory, 1, kCount));
      }
      card.Increment(memory);
      ASSERT_CUDA(cuMemFreeAsync(memory, nullptr));
    }
  });
  EXPECT_EQ(reads, uint64_t{kCount} / 32);
}

TEST(UninitialisedReads, AreNotLookedForUnlessAsked) {
  const uint64_t reads = ReadsOf("", [] {
    Card card;
    CUdeviceptr memory = 0;
    ASSERT_CUDA(cuMemAlloc(&memory, kCount * 4));
    card.Increment(memory);
  });
  EXPECT_EQ(reads, 0u);
}

}  // namespace
}  // namespace atp::sim
