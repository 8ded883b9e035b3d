// SPDX-License-Identifier: Apache-2.0
// Managed memory becomes the driver's where only that serves: handles for other devices (dma-buf)
// and multicast, of address ranges and of whole allocations. On a driver of a few functions,
// because the simulated machine has neither.
#include <gtest/gtest.h>

#include <set>

#include "shim/on_query.h"
#include "shim/on_vmm.h"
#include "shim/placement.h"
#include "shim/turn_plain.h"
#include "tests/shim/fake_real.h"

namespace atp::shim {
namespace {

constexpr uint64_t kMiB = 1ull << 20, kPage = 2 * kMiB;

// Reservations, physical memory and what is mapped where.
struct FakeVmm {
  static inline std::map<CUdeviceptr, size_t> reserved;
  static inline std::map<MemoryHandle, size_t> memories;
  static inline std::map<CUdeviceptr, MemoryHandle> mapped;
  static inline std::set<MemoryHandle> in_multicast;
  static inline MemoryHandle next = 0x1000;
  static inline std::vector<std::pair<CUdeviceptr, size_t>> copied;  // from where, how much
  static inline bool has_dma_buf = true, refuses_reservations = false;

  static CUresult OnlyOfItsOwn(CUdeviceptr address) {
    return mapped.count(address) > 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  }
  static void Install() {
    has_dma_buf = true;
    refuses_reservations = false;
    copied.clear();
    g_real.cuDeviceGetAttribute = [](int* value, CUdevice_attribute attribute, CUdevice) {
      *value = attribute != CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES &&
               (attribute != CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED || has_dma_buf);
      return CUDA_SUCCESS;
    };
    g_real.cuMemAddressReserve = [](CUdeviceptr* address, size_t bytes, size_t, CUdeviceptr wish,
                                    unsigned long long) {
      if (wish != 0 && refuses_reservations) return CUDA_ERROR_OUT_OF_MEMORY;
      *address = wish != 0 ? wish : FakeReal::next;
      if (wish == 0) FakeReal::next += bytes;
      reserved[*address] = bytes;
      return CUDA_SUCCESS;
    };
    g_real.cuMemAddressFree = [](CUdeviceptr address, size_t) {
      return reserved.erase(address) == 1 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    };
    g_real.cuMemCreate = [](MemoryHandle* handle, size_t bytes, const CUmemAllocationProp*,
                            unsigned long long) {
      memories[*handle = next++] = bytes;
      return CUDA_SUCCESS;
    };
    g_real.cuMemRelease = [](MemoryHandle handle) {
      return memories.erase(handle) == 1 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    };
    g_real.cuMemMap = [](CUdeviceptr address, size_t, size_t, MemoryHandle handle,
                         unsigned long long) { return mapped[address] = handle, CUDA_SUCCESS; };
    g_real.cuMemUnmap = [](CUdeviceptr address, size_t) {
      return mapped.erase(address) == 1 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    };
    g_real.cuMemSetAccess = [](CUdeviceptr, size_t, const CUmemAccessDesc*, size_t) {
      return CUDA_SUCCESS;
    };
    g_real.cuMemcpyDtoD_v2 = [](CUdeviceptr, CUdeviceptr from, size_t bytes) {
      return copied.emplace_back(from, bytes), CUDA_SUCCESS;
    };
    g_real.cuMemGetHandleForAddressRange = [](void*, CUdeviceptr address, size_t,
                                              CUmemRangeHandleType,
                                              unsigned long long) { return OnlyOfItsOwn(address); };
    g_real.cuMulticastBindAddr = [](MemoryHandle, size_t, CUdeviceptr address, size_t,
                                    unsigned long long) { return OnlyOfItsOwn(address); };
    g_real.cuMulticastBindMem = [](MemoryHandle, size_t, MemoryHandle handle, size_t, size_t,
                                   unsigned long long) {
      if (memories.count(handle) == 0) return CUDA_ERROR_INVALID_VALUE;
      return in_multicast.insert(handle), CUDA_SUCCESS;
    };
  }
};

class ConversionTest : public testing::Test {
 protected:
  ConversionTest() {
    FakeReal::Install();
    FakeVmm::Install();
    CurrentDevice();
  }
  ~ConversionTest() override {
    const Usage usage = UsageOf(*CurrentDevice());
    EXPECT_EQ(usage.managed, 0u) << "the books do not close";
    EXPECT_EQ(usage.native, 0u) << "the books do not close";
    EXPECT_TRUE(FakeReal::managed.empty()) << "not given back";
    EXPECT_TRUE(FakeVmm::mapped.empty() && FakeVmm::reserved.empty()) << "not given back";
  }
  static CUresult HandleFor(CUdeviceptr address, size_t bytes) {
    int file = -1;
    return OnHandleForRange<HookId::cuMemGetHandleForAddressRange>(
        &file, address, bytes, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0);
  }
  static CUdeviceptr Allocate(size_t bytes) {
    CUdeviceptr address = 0;
    EXPECT_EQ(PlaceAllocation(&address, bytes), CUDA_SUCCESS);
    EXPECT_EQ(FakeReal::managed.count(address), 1u);
    return address;
  }

  // A range of two pages, the first of which shows memory.
  struct Range {
    CUdeviceptr address = 0;
    MemoryHandle handle = 0;
    Range() {
      const CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                        .requestedHandleTypes = CU_MEM_HANDLE_TYPE_NONE,
                                        .location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}},
                                        .win32HandleMetaData = nullptr,
                                        .allocFlags = {}};
      CUmemAccessDesc access = {};
      access.location = prop.location;
      access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
      EXPECT_EQ(ReserveRange(&address, 2 * kPage, 0, 0, 0), CUDA_SUCCESS);
      EXPECT_EQ(CreateMemory(&handle, kPage, &prop, 0), CUDA_SUCCESS);
      EXPECT_EQ(MapMemory(address, kPage, 0, handle, 0), CUDA_SUCCESS);
      EXPECT_EQ(SetRangeAccess(address, kPage, &access, 1), CUDA_SUCCESS);
      EXPECT_TRUE(FakeVmm::mapped.empty()) << "managed so far";
    }
    ~Range() {
      EXPECT_EQ(UnmapMemory(address, kPage), CUDA_SUCCESS);
      EXPECT_EQ(ReleaseMemory(handle), CUDA_SUCCESS);
      EXPECT_EQ(FreeRange(address, 2 * kPage), CUDA_SUCCESS);
    }
  };
};

TEST_F(ConversionTest, AHandleForOtherDevicesOfARange) {
  const Range range;
  EXPECT_EQ(HandleFor(range.address, kPage), CUDA_SUCCESS);
  EXPECT_EQ(FakeVmm::mapped.count(range.address), 1u);
  EXPECT_EQ(FakeVmm::copied, (std::vector<std::pair<CUdeviceptr, size_t>>{{range.address, kPage}}));
  EXPECT_TRUE(FakeReal::managed.empty());
}

TEST_F(ConversionTest, AHandleForOtherDevicesOfAWholeAllocation) {
  const CUdeviceptr address = Allocate(5 * kMiB);
  EXPECT_EQ(HandleFor(address, 6 * kMiB), CUDA_SUCCESS);
  EXPECT_EQ(FakeVmm::copied, (std::vector<std::pair<CUdeviceptr, size_t>>{{address, 6 * kMiB}}));
  uint64_t start = 0, bytes = 0;
  ASSERT_TRUE(ProgramRange(address + 5 * kMiB - 1, &start, &bytes));
  EXPECT_EQ(start, address);
  EXPECT_EQ(bytes, 5 * kMiB);
  EXPECT_EQ(UsageOf(*CurrentDevice()).managed, 0u);
  EXPECT_EQ(UsageOf(*CurrentDevice()).native, 6 * kMiB);
  EXPECT_EQ(ReleaseAllocation(address), CUDA_SUCCESS);
  EXPECT_EQ(ReleaseAllocation(address), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(ConversionTest, MulticastOfMemoryAndOfAnAddress) {
  {
    const Range range;
    EXPECT_EQ(OnMulticastBind<HookId::cuMulticastBindMem>(1, 0, range.handle, 0, kPage, 0),
              CUDA_SUCCESS);
    EXPECT_EQ(FakeVmm::in_multicast.size(), 1u);
    EXPECT_EQ(FakeVmm::mapped.count(range.address), 1u);
  }
  const Range range;
  EXPECT_EQ(OnMulticastBindAddress<HookId::cuMulticastBindAddr>(1, 0, range.address, kPage, 0),
            CUDA_SUCCESS);
}

TEST_F(ConversionTest, WithoutSuchHandlesOnTheDeviceNothingIsTurned) {
  FakeVmm::has_dma_buf = false;
  const CUdeviceptr address = Allocate(4 * kMiB);
  EXPECT_EQ(PrepareHandleFor(address, 4 * kMiB, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD), CUDA_SUCCESS);
  EXPECT_EQ(FakeReal::managed.count(address), 1u);
  EXPECT_EQ(ReleaseAllocation(address), CUDA_SUCCESS);
}

// What could go wrong is tried before the managed memory is freed.
TEST_F(ConversionTest, ADriverThatGivesNoAddressesBackLeavesAllAsItWas) {
  FakeVmm::refuses_reservations = true;
  const CUdeviceptr address = Allocate(4 * kMiB);
  EXPECT_FALSE(TurnPlain(address));
  EXPECT_EQ(FakeReal::managed.count(address), 1u);
  EXPECT_TRUE(FakeVmm::memories.empty());
  EXPECT_EQ(ReleaseAllocation(address), CUDA_SUCCESS);
}

TEST_F(ConversionTest, SlabsAndWhatIsNotOursIsLeftAlone) {
  EXPECT_FALSE(TurnPlain(0x1234));
  std::vector<CUdeviceptr> small;
  for (int i = 0; i < 103; ++i) {  // beyond a twentieth of the budget small ones lie in slabs
    CUdeviceptr address = 0;
    ASSERT_EQ(PlaceAllocation(&address, kMiB / 2), CUDA_SUCCESS);
    small.push_back(address);
  }
  EXPECT_FALSE(TurnPlain(small.back()));
  for (CUdeviceptr address : small) EXPECT_EQ(ReleaseAllocation(address), CUDA_SUCCESS);
}

}  // namespace
}  // namespace atp::shim
