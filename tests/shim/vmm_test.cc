// SPDX-License-Identifier: Apache-2.0
#include "shim/vmm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "shim/placement.h"
#include "tests/shim/fake_real.h"

namespace atp::shim {
namespace {

constexpr uint64_t kMiB = 1ull << 20, kPage = 2 * kMiB;

CUmemAllocationProp OnDevice() {
  CUmemAllocationProp prop = {};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
  return prop;
}

CUresult Allow(CUdeviceptr address, uint64_t bytes) {
  CUmemAccessDesc access = {};
  access.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  return SetRangeAccess(address, bytes, &access, 1);
}

class VmmTest : public testing::Test {
 protected:
  VmmTest() {
    FakeReal::Install();
    g_real.cuMemcpyDtoD_v2 = [](CUdeviceptr to, CUdeviceptr from, size_t bytes) {
      std::lock_guard lock(FakeReal::mutex);
      copies.push_back({to, from, bytes});
      return CUDA_SUCCESS;
    };
    copies.clear();
    CurrentDevice();  // memory is created for devices that have been seen
  }
  ~VmmTest() override {
    EXPECT_EQ(UsageOf(*CurrentDevice()).managed, 0u) << "the books do not close";
    EXPECT_TRUE(FakeReal::managed.empty()) << "not given back";
  }
  static CUdeviceptr Reserve(uint64_t bytes) {
    CUdeviceptr address = 0;
    EXPECT_EQ(ReserveRange(&address, bytes, 0, 0, 0), CUDA_SUCCESS);
    return address;
  }
  static MemoryHandle Create(uint64_t bytes) {
    MemoryHandle handle = 0;
    const CUmemAllocationProp prop = OnDevice();
    EXPECT_EQ(CreateMemory(&handle, bytes, &prop, 0), CUDA_SUCCESS);
    return handle;
  }
  static uint64_t Managed() { return UsageOf(*CurrentDevice()).managed; }

  struct Copy {
    CUdeviceptr to, from;
    size_t bytes;
    bool operator==(const Copy&) const = default;
  };
  static inline std::vector<Copy> copies;
};

TEST_F(VmmTest, AddressesCostNothingAndMemoryCountsFromItsCreationToItsLastUse) {
  const CUdeviceptr range = Reserve(uint64_t{1} << 40);
  EXPECT_EQ(Managed(), 0u);
  const MemoryHandle handle = Create(kPage);
  EXPECT_EQ(Managed(), kPage);
  EXPECT_EQ(MapMemory(range, kPage, 0, handle, 0), CUDA_SUCCESS);
  EXPECT_EQ(Allow(range, kPage), CUDA_SUCCESS);
  EXPECT_EQ(ReleaseMemory(handle), CUDA_SUCCESS);
  EXPECT_EQ(Managed(), kPage) << "the mapping keeps it";
  EXPECT_EQ(UnmapMemory(range, kPage), CUDA_SUCCESS);
  EXPECT_EQ(Managed(), 0u);
  EXPECT_EQ(FreeRange(range, uint64_t{1} << 40), CUDA_SUCCESS);
}

TEST_F(VmmTest, NeighbouringMappingsAreOneAllocationForTheLoopAndComeApartAgain) {
  const CUdeviceptr range = Reserve(8 * kPage);
  MemoryHandle handles[3];
  for (int i = 0; i < 3; ++i) handles[i] = Create(kPage);
  for (int i : {0, 2, 1}) {
    EXPECT_EQ(MapMemory(range + i * kPage, kPage, 0, handles[i], 0), CUDA_SUCCESS);
  }
  const Record* run = g_tracker.Find(range);
  ASSERT_NE(run, nullptr);
  EXPECT_EQ(run->mapped_bytes, 3 * kPage);
  EXPECT_EQ(UnmapMemory(range + kPage, kPage), CUDA_SUCCESS);
  EXPECT_EQ(g_tracker.Find(range + kPage), nullptr);
  EXPECT_NE(g_tracker.Find(range), g_tracker.Find(range + 2 * kPage));
  for (int i : {0, 2}) EXPECT_EQ(UnmapMemory(range + i * kPage, kPage), CUDA_SUCCESS);
  for (MemoryHandle handle : handles) EXPECT_EQ(ReleaseMemory(handle), CUDA_SUCCESS);
  EXPECT_EQ(FreeRange(range, 8 * kPage), CUDA_SUCCESS);
}

TEST_F(VmmTest, BytesFollowTheirMemoryToAnotherPlace) {
  const CUdeviceptr range = Reserve(8 * kPage);
  const MemoryHandle handle = Create(kPage);
  EXPECT_EQ(MapMemory(range, kPage, 0, handle, 0), CUDA_SUCCESS);
  EXPECT_EQ(UnmapMemory(range, kPage), CUDA_SUCCESS);
  EXPECT_EQ(MapMemory(range, kPage, 0, handle, 0), CUDA_SUCCESS);
  EXPECT_TRUE(copies.empty()) << "they were there still";
  EXPECT_EQ(UnmapMemory(range, kPage), CUDA_SUCCESS);
  EXPECT_EQ(MapMemory(range + 4 * kPage, kPage, 0, handle, 0), CUDA_SUCCESS);
  EXPECT_EQ(copies, (std::vector<Copy>{{range + 4 * kPage, range, kPage}}));
  EXPECT_EQ(UnmapMemory(range + 4 * kPage, kPage), CUDA_SUCCESS);
  EXPECT_EQ(ReleaseMemory(handle), CUDA_SUCCESS);
  EXPECT_EQ(FreeRange(range, 8 * kPage), CUDA_SUCCESS);
}

TEST_F(VmmTest, BytesThatAreInTheWayOfANewMappingAreKeptElsewhere) {
  const CUdeviceptr range = Reserve(2 * kPage);
  const MemoryHandle first = Create(kPage), second = Create(kPage);
  EXPECT_EQ(MapMemory(range, kPage, 0, first, 0), CUDA_SUCCESS);
  EXPECT_EQ(UnmapMemory(range, kPage), CUDA_SUCCESS);
  EXPECT_EQ(MapMemory(range, kPage, 0, second, 0), CUDA_SUCCESS);
  ASSERT_EQ(copies.size(), 1u);
  EXPECT_EQ(copies[0].from, range);
  EXPECT_EQ(FakeReal::managed.size(), 2u) << "the range, and what was in the way";
  EXPECT_EQ(UnmapMemory(range, kPage), CUDA_SUCCESS);
  for (MemoryHandle handle : {first, second}) EXPECT_EQ(ReleaseMemory(handle), CUDA_SUCCESS);
  EXPECT_EQ(FreeRange(range, 2 * kPage), CUDA_SUCCESS);
}

TEST_F(VmmTest, WrongCallsChangeNothing) {
  const CUdeviceptr range = Reserve(4 * kPage);
  const MemoryHandle handle = Create(kPage);
  EXPECT_EQ(MapMemory(range, 2 * kPage, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(MapMemory(range, kPage, kPage, handle, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(MapMemory(range + 4096, kPage, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(MapMemory(range, kPage, 0, handle, 0), CUDA_SUCCESS);
  EXPECT_EQ(UnmapMemory(range, 2 * kPage), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(Allow(range, 2 * kPage), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(FreeRange(range, 4 * kPage), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(UnmapMemory(range, kPage), CUDA_SUCCESS);
  EXPECT_EQ(ReleaseMemory(handle), CUDA_SUCCESS);
  EXPECT_EQ(FreeRange(range, kPage), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(FreeRange(range, 4 * kPage), CUDA_SUCCESS);
}

TEST_F(VmmTest, WhatIsMappedWhereIsTold) {
  const CUdeviceptr range = Reserve(4 * kPage);
  const MemoryHandle handle = Create(2 * kPage);
  EXPECT_EQ(MapMemory(range + kPage, 2 * kPage, 0, handle, 0), CUDA_SUCCESS);
  uint64_t start = 0, bytes = 0;
  EXPECT_EQ(MappingAround(range + 3 * kPage - 1, &start, &bytes), InRange::kMapped);
  EXPECT_EQ(start, range + kPage);
  EXPECT_EQ(bytes, 2 * kPage);
  EXPECT_EQ(MappingAround(range, &start, &bytes), InRange::kUnmapped);
  EXPECT_EQ(MappingAround(range + 4 * kPage, &start, &bytes), InRange::kNo);
  MemoryHandle again = 0;
  EXPECT_EQ(RetainHandleOf(&again, reinterpret_cast<void*>(range + kPage)), CUDA_SUCCESS);
  EXPECT_EQ(again, handle);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(ReleaseMemory(handle), CUDA_SUCCESS);
  EXPECT_EQ(UnmapMemory(range + kPage, 2 * kPage), CUDA_SUCCESS);
  EXPECT_EQ(FreeRange(range, 4 * kPage), CUDA_SUCCESS);
}

// By an address too, memory is given to the driver before a use that asks for that; where there is
// none of ours, nobody is disturbed.
TEST_F(VmmTest, AnAddressThatShowsNothingOfOursIsTheDriversAlready) {
  const CUdeviceptr range = Reserve(4 * kPage);
  FakeReal::calls.clear();
  EXPECT_EQ(GiveAddressToDriver(range, kPage), CUDA_SUCCESS);
  EXPECT_EQ(GiveAddressToDriver(0x1234, 1), CUDA_SUCCESS);
  EXPECT_TRUE(FakeReal::calls.empty());
  EXPECT_EQ(FreeRange(range, 4 * kPage), CUDA_SUCCESS);
}

TEST_F(VmmTest, ManyThreadsMapAndUnmapInRangesOfTheirOwn) {
  std::atomic<int> wrong{0};
  const auto good = [&](CUresult result) { wrong += result != CUDA_SUCCESS; };
  const auto work = [&] {
    const CUdeviceptr range = Reserve(64 * kPage);
    for (uint64_t step = 0; step < 300; ++step) {
      const CUdeviceptr page = range + step * 7 % 64 * kPage;
      const MemoryHandle handle = Create(kPage);
      good(MapMemory(page, kPage, 0, handle, 0));
      good(Allow(page, kPage));
      good(ReleaseMemory(handle));
      uint64_t start = 0, bytes = 0;
      wrong += MappingAround(page + 5, &start, &bytes) != InRange::kMapped || start != page;
      good(UnmapMemory(page, kPage));
    }
    good(FreeRange(range, 64 * kPage));
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back(work);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace atp::shim
