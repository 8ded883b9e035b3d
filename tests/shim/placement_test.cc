// SPDX-License-Identifier: Apache-2.0
#include "shim/placement.h"

#include <gtest/gtest.h>

#include "shim/capture.h"
#include "shim/lifecycle.h"
#include "shim/on_alloc.h"
#include "tests/shim/fake_real.h"

namespace atp::shim {
namespace {

using testing::internal::CaptureStderr;
using testing::internal::GetCapturedStderr;
constexpr uint64_t kMiB = 1ull << 20, kGiB = 1ull << 30;

class PlacementTest : public testing::Test {
 protected:
  PlacementTest() { FakeReal::Install(); }
  ~PlacementTest() override {
    for (CUdeviceptr address : live_) ReleaseAllocation(address);
    const Usage usage = UsageOf(*CurrentDevice());
    EXPECT_EQ(usage.managed, 0u) << "the books do not close";
    EXPECT_EQ(usage.native, 0u) << "the books do not close";
    EXPECT_TRUE(FakeReal::managed.empty());
    EXPECT_TRUE(FakeReal::native.empty());
  }
  CUdeviceptr Allocate(size_t bytes) {
    CUdeviceptr address = 0;
    EXPECT_EQ(PlaceAllocation(&address, bytes), CUDA_SUCCESS);
    live_.push_back(address);
    return address;
  }
  CUresult Release(CUdeviceptr address) {
    std::erase(live_, address);
    return ReleaseAllocation(address);
  }
  std::vector<CUdeviceptr> live_;
};

TEST_F(PlacementTest, LargeAllocationsAreManagedAndRoundedUpToWholeBlocks) {
  const CUdeviceptr address = Allocate(5 * kMiB);
  EXPECT_EQ(FakeReal::managed[address], 6 * kMiB);
  ASSERT_NE(g_tracker.Find(address), nullptr);
  EXPECT_EQ(g_tracker.Find(address)->bytes, 5 * kMiB);
}

TEST_F(PlacementTest, SmallAllocationsStayPlainUpToATwentiethOfTheBudget) {
  for (int i = 0; i < 100; ++i) Allocate(kMiB / 2);  // 50 MiB of 51.2
  EXPECT_EQ(FakeReal::native.size(), 100u);
  for (int i = 0; i < 100; ++i) Allocate(kMiB / 2);
  EXPECT_EQ(FakeReal::native.size(), 102u);
  EXPECT_EQ(FakeReal::managed.size(), 25u);  // 98 of them, four a slab
}

TEST_F(PlacementTest, MemoryOfASlabIsReportedAsTheProgramAskedForIt) {
  for (int i = 0; i < 103; ++i) Allocate(kMiB / 2);
  const CUdeviceptr in_slab = Allocate(700000);
  uint64_t start = 0, bytes = 0;
  ASSERT_TRUE(ProgramRange(in_slab + 699999, &start, &bytes));
  EXPECT_EQ(start, in_slab);
  EXPECT_EQ(bytes, 700000u);
  EXPECT_FALSE(ProgramRange(in_slab + 700000, &start, &bytes));
}

TEST_F(PlacementTest, AFreeOfASlotWaitsAsTheDriversFreeDoes) {
  for (int i = 0; i < 103; ++i) Allocate(kMiB / 2);
  const CUdeviceptr in_slab = Allocate(700000);
  FakeReal::calls.clear();
  EXPECT_EQ(Release(in_slab), CUDA_SUCCESS);
  ASSERT_FALSE(FakeReal::calls.empty());
  EXPECT_EQ(FakeReal::calls.front(), "sync");
}

TEST_F(PlacementTest, FreesOfUnknownInteriorAndFreedPointersGetTheDriversAnswer) {
  const CUdeviceptr address = Allocate(5 * kMiB);
  EXPECT_EQ(ReleaseAllocation(address + 512), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(ReleaseAllocation(0x1234), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(Release(address), CUDA_SUCCESS);
  EXPECT_EQ(ReleaseAllocation(address), CUDA_ERROR_INVALID_VALUE);
  for (int i = 0; i < 103; ++i) Allocate(kMiB / 2);
  const CUdeviceptr in_slab = Allocate(700000);
  EXPECT_EQ(ReleaseAllocation(in_slab + 512), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(Release(in_slab), CUDA_SUCCESS);
  EXPECT_EQ(ReleaseAllocation(in_slab), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(PlacementTest, AFreeThatTheDriverRefusesLeavesTheBooksAsTheyWere) {
  const CUdeviceptr address = Allocate(5 * kMiB);
  const uint64_t before = UsageOf(*CurrentDevice()).managed;
  FakeReal::free_result = CUDA_ERROR_ILLEGAL_ADDRESS;
  EXPECT_EQ(ReleaseAllocation(address), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(UsageOf(*CurrentDevice()).managed, before);
  EXPECT_NE(g_tracker.Find(address), nullptr);
  FakeReal::free_result = CUDA_SUCCESS;
}

TEST_F(PlacementTest, ADriverThatRefusesManagedMemoryServesPlainMemory) {
  FakeReal::managed_result = CUDA_ERROR_NOT_SUPPORTED;
  const CUdeviceptr address = Allocate(5 * kMiB);
  EXPECT_EQ(FakeReal::native.count(address), 1u);
}

TEST_F(PlacementTest, ManagedMemoryOffTheBlockGridIsGivenBackAndPlainMemoryServes) {
  FakeReal::misalign = 4096;
  CaptureStderr();
  Allocate(5 * kMiB);
  GetCapturedStderr();
  EXPECT_EQ(FakeReal::native.size(), 1u);
  EXPECT_TRUE(FakeReal::managed.empty());
}

TEST_F(PlacementTest, AllocationsDuringACaptureArePlain) {
  g_open_captures = 1;
  const CUdeviceptr address = Allocate(5 * kMiB);
  g_open_captures = 0;
  EXPECT_EQ(FakeReal::native.count(address), 1u);
}

TEST_F(PlacementTest, BeyondBudgetAndHostShareIsOutOfMemoryWithARemedy) {
  Allocate(3 * kGiB);
  CUdeviceptr address = 0;
  CaptureStderr();
  EXPECT_EQ(PlaceAllocation(&address, 2 * kGiB), CUDA_ERROR_OUT_OF_MEMORY);
  const std::string log = GetCapturedStderr();
  for (const char* part : {"2.0 GiB asked", "3.0 GiB already", "4.0 GiB", "ATP_HOST_BUDGET"}) {
    EXPECT_NE(log.find(part), std::string::npos) << part << " in " << log;
  }
  Allocate(kGiB);  // what was refused is not held against the program
}

TEST_F(PlacementTest, WhenPlainMemoryIsOutTheLogSaysOnceWhoHoldsIt) {
  for (int i = 0; i < 3; ++i) Allocate(kMiB / 2);
  g_open_captures = 1;
  Allocate(64 * kMiB);
  FakeReal::native_result = CUDA_ERROR_OUT_OF_MEMORY;
  CUdeviceptr address = 0;
  CaptureStderr();
  EXPECT_EQ(PlaceAllocation(&address, 32 * kMiB), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(PlaceAllocation(&address, 32 * kMiB), CUDA_ERROR_OUT_OF_MEMORY);
  const std::string log = GetCapturedStderr();
  g_open_captures = 0;
  for (const char* part :
       {"out of plain memory", "32.0 MiB asked by", "65.5 MiB of plain", "64.0 MiB in 1 by", "+0x",
        "(capture)", "1.5 MiB in 3 (small)", "ATP_BUDGET"}) {
    EXPECT_NE(log.find(part), std::string::npos) << part << " in " << log;
  }
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 1) << log;
}

TEST_F(PlacementTest, ArgumentsThatTheDriverRefusesReachIt) {
  FakeReal::calls.clear();
  PlaceAllocation(nullptr, 0);
  EXPECT_EQ(FakeReal::calls, std::vector<std::string>{"native"});
}

// Another thread may be given the address before the driver's free has returned.
TEST_F(PlacementTest, AnAddressThatIsGivenOutAgainWhileItIsFreedIsCountedAsWhatItIsNow) {
  constexpr CUdeviceptr kAddress = 0x7000000;
  static CUresult answer;
  g_real.cuMemFreeAsync = [](CUdeviceptr address, CUstream) {
    if (answer == CUDA_SUCCESS) AccountNative(address, 3000, WhyNative::kPool);
    return answer;
  };
  const auto free = [&](CUresult with) {
    answer = with;
    return OnMemFreeAsync<HookId::cuMemFreeAsync>(kAddress, nullptr);
  };
  AccountNative(kAddress, 1000, WhyNative::kPool);
  EXPECT_EQ(free(CUDA_ERROR_INVALID_VALUE), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(UsageOf(*CurrentDevice()).native, 1000u) << "the driver has refused";
  EXPECT_EQ(free(CUDA_SUCCESS), CUDA_SUCCESS);
  EXPECT_EQ(UsageOf(*CurrentDevice()).native, 3000u);
  NativeSizes::Entry last;
  EXPECT_TRUE(UnaccountNative(kAddress, &last));
  EXPECT_EQ(last.bytes, 3000u);
}

TEST_F(PlacementTest, DestroyingAContextForgetsItsMemory) {
  const CUdeviceptr address = Allocate(5 * kMiB);
  ForgetMemoryOf(FakeReal::current, -1);
  EXPECT_EQ(g_tracker.Find(address), nullptr);
  FakeReal::managed.clear();
  live_.clear();
}

}  // namespace
}  // namespace atp::shim
