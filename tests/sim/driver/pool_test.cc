// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/driver/driver_test_support.h"

namespace atp::sim {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

class Pools : public DriverTest {
 protected:
  void SetUp() override {
    DriverTest::SetUp();
    ASSERT_CUDA(cuStreamCreate(&first_, CU_STREAM_NON_BLOCKING));
    ASSERT_CUDA(cuStreamCreate(&second_, CU_STREAM_NON_BLOCKING));
    CUmemPoolProps props{};
    props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    props.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    ASSERT_CUDA(cuMemPoolCreate(&pool_, &props));
  }
  CUdeviceptr Take(size_t bytes, CUstream stream) {
    CUdeviceptr address = 0;
    EXPECT_CUDA(cuMemAllocFromPoolAsync(&address, bytes, pool_, stream));
    return address;
  }
  uint64_t Get(CUmemPool_attribute attribute) {
    uint64_t value = 0;
    EXPECT_CUDA(cuMemPoolGetAttribute(pool_, attribute, &value));
    return value;
  }
  CUstream first_ = nullptr, second_ = nullptr;
  CUmemoryPool pool_ = nullptr;
};

TEST_F(Pools, MemoryIsReusedAtOnceInTheStreamThatFreedIt) {
  const CUdeviceptr a = Take(kMiB, first_);
  ASSERT_CUDA(Launch("Fill", 1024, first_, a, 1, 1024));
  ASSERT_CUDA(cuMemFreeAsync(a, first_));
  EXPECT_EQ(Take(kMiB, first_), a);
}

TEST_F(Pools, AnotherStreamGetsMemoryOnlyWhenTheFreeHasBeenPassed) {
  const CUdeviceptr a = Take(2 * kMiB, first_);
  void* pinned = nullptr;
  ASSERT_CUDA(cuMemAllocHost(&pinned, 2 * kMiB));
  ASSERT_CUDA(cuMemcpyHtoDAsync(a, pinned, 2 * kMiB, first_));
  ASSERT_CUDA(cuMemFreeAsync(a, first_));
  EXPECT_NE(Take(2 * kMiB, second_), a);
  uint64_t keep = UINT64_MAX;
  ASSERT_CUDA(cuMemPoolSetAttribute(pool_, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep));
  ASSERT_CUDA(cuStreamSynchronize(first_));
  EXPECT_EQ(Take(2 * kMiB, second_), a);
}

TEST_F(Pools, UnusedMemoryAboveTheThresholdGoesBackAtSynchronisation) {
  const CUdeviceptr a = Take(8 * kMiB, first_);
  EXPECT_EQ(Get(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 8 * kMiB);
  EXPECT_EQ(Get(CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 8 * kMiB);
  ASSERT_CUDA(cuMemFreeAsync(a, first_));
  EXPECT_EQ(Get(CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 0u);
  EXPECT_EQ(Get(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 8 * kMiB);
  ASSERT_CUDA(cuStreamSynchronize(first_));
  EXPECT_EQ(Get(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 0u);
  EXPECT_EQ(Get(CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH), 8 * kMiB);
}

TEST_F(Pools, APlainAllocationGetsWhatPoolsDoNotUse) {
  uint64_t keep = UINT64_MAX;
  ASSERT_CUDA(cuMemPoolSetAttribute(pool_, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep));
  const CUdeviceptr a = Take(200 * kMiB, first_);
  ASSERT_CUDA(cuMemFreeAsync(a, first_));
  ASSERT_CUDA(cuStreamSynchronize(first_));
  EXPECT_EQ(Get(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 200 * kMiB);
  const CUdeviceptr b = Alloc(100 * kMiB);
  EXPECT_EQ(Get(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 0u);
  EXPECT_CUDA(cuMemFree(b));
}

TEST_F(Pools, TheDefaultPoolServesPlainStreamOrderedAllocations) {
  CUmemoryPool default_pool = nullptr, of_pointer = nullptr;
  ASSERT_CUDA(cuDeviceGetDefaultMemPool(&default_pool, device_));
  CUdeviceptr address = 0;
  ASSERT_CUDA(cuMemAllocAsync(&address, 100, first_));
  ASSERT_CUDA(cuPointerGetAttribute(&of_pointer, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, address));
  EXPECT_EQ(of_pointer, default_pool);
  EXPECT_RESULT(CUDA_ERROR_INVALID_VALUE, cuMemPoolDestroy(default_pool));
  EXPECT_CUDA(cuMemFree(address));  // a plain free takes it too
}

TEST_F(Pools, OrdinaryDeviceMemoryIsFreedInStreamOrderToo) {
  size_t before = 0, after = 0, total = 0;
  ASSERT_CUDA(cuMemGetInfo(&before, &total));
  const CUdeviceptr address = Alloc(4 * kMiB);
  ASSERT_CUDA(cuMemsetD8Async(address, 1, 4 * kMiB, first_));
  EXPECT_RESULT(CUDA_ERROR_INVALID_VALUE, cuMemFreeAsync(address + 512, first_));
  EXPECT_CUDA(cuMemFreeAsync(address, first_));
  ASSERT_CUDA(cuStreamSynchronize(first_));
  ASSERT_CUDA(cuMemGetInfo(&after, &total));
  EXPECT_EQ(before, after);
  EXPECT_RESULT(CUDA_ERROR_INVALID_VALUE, cuMemFree(address));
}

TEST_F(Pools, ACaptureFreesMemoryOfGraphsOnly) {
  const CUdeviceptr address = Alloc(kMiB);
  CUgraph graph = nullptr;
  ASSERT_CUDA(cuStreamBeginCapture(first_, CU_STREAM_CAPTURE_MODE_RELAXED));
  EXPECT_RESULT(CUDA_ERROR_INVALID_VALUE, cuMemFreeAsync(address, first_));
  cuStreamEndCapture(first_, &graph);
  if (graph) {
    EXPECT_CUDA(cuGraphDestroy(graph));
  }
  EXPECT_CUDA(cuMemFree(address));
}

TEST_F(Pools, ManagedAndHostMemoryIsNotFreedInStreamOrder) {
  void* pinned = nullptr;
  ASSERT_CUDA(cuMemAllocHost(&pinned, 4096));
  const CUdeviceptr managed = AllocManaged(kMiB);
  EXPECT_RESULT(CUDA_ERROR_INVALID_VALUE, cuMemFreeAsync(managed, first_));
  EXPECT_RESULT(CUDA_ERROR_INVALID_VALUE,
                cuMemFreeAsync(reinterpret_cast<CUdeviceptr>(pinned), first_));
  EXPECT_CUDA(cuMemFree(managed));
  EXPECT_CUDA(cuMemFreeHost(pinned));
}

TEST_F(Pools, TooMuchIsOutOfMemory) {
  CUdeviceptr address = 0;
  EXPECT_RESULT(CUDA_ERROR_OUT_OF_MEMORY, cuMemAllocAsync(&address, 1024 * kMiB, first_));
}

// --- virtual memory management

class Mappings : public DriverTest {
 protected:
  void SetUp() override {
    DriverTest::SetUp();
    prop_.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop_.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    ASSERT_CUDA(cuMemGetAllocationGranularity(&granule_, &prop_, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    ASSERT_CUDA(cuMemAddressReserve(&range_, 4 * granule_, 0, 0, 0));
  }
  CUmemGenericAllocationHandle Create(size_t bytes) {
    CUmemGenericAllocationHandle handle = 0;
    EXPECT_CUDA(cuMemCreate(&handle, bytes, &prop_, 0));
    return handle;
  }
  void Allow(CUdeviceptr address, size_t bytes) {
    const CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, 0},
                                 CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    ASSERT_CUDA(cuMemSetAccess(address, bytes, &access, 1));
  }
  CUmemAllocationProp prop_{};
  size_t granule_ = 0;
  CUdeviceptr range_ = 0;
};

TEST_F(Mappings, AReservationGrowsByMappings) {
  const CUmemGenericAllocationHandle first = Create(granule_), second = Create(granule_);
  ASSERT_CUDA(cuMemMap(range_, granule_, 0, first, 0));
  EXPECT_RESULT(CUDA_ERROR_INVALID_VALUE, cuMemMap(range_, granule_, 0, second, 0));
  ASSERT_CUDA(cuMemMap(range_ + granule_, granule_, 0, second, 0));
  Allow(range_, 2 * granule_);
  const int count = static_cast<int>(2 * granule_ / sizeof(int));
  ASSERT_CUDA(Launch("Fill", count, nullptr, range_, 8, count));
  const std::vector<int> values =
      ReadInts(range_, static_cast<size_t>(count));  // one copy over both
  EXPECT_EQ(values, std::vector<int>(static_cast<size_t>(count), 8));
  EXPECT_RESULT(CUDA_ERROR_INVALID_VALUE, cuMemAddressFree(range_, 4 * granule_));
  ASSERT_CUDA(cuMemUnmap(range_, 2 * granule_));
  ASSERT_CUDA(cuMemRelease(first));
  ASSERT_CUDA(cuMemRelease(second));
  EXPECT_CUDA(cuMemAddressFree(range_, 4 * granule_));
}

TEST_F(Mappings, OneHandleMappedTwiceIsOneMemory) {
  const CUmemGenericAllocationHandle handle = Create(granule_);
  ASSERT_CUDA(cuMemMap(range_, granule_, 0, handle, 0));
  ASSERT_CUDA(cuMemMap(range_ + 2 * granule_, granule_, 0, handle, 0));
  Allow(range_, granule_);
  Allow(range_ + 2 * granule_, granule_);
  ASSERT_CUDA(cuMemsetD32(range_, 3, 16));
  EXPECT_EQ(ReadInts(range_ + 2 * granule_, 1)[0], 3);
  ASSERT_CUDA(cuMemRelease(handle));  // the mappings keep it
  ASSERT_CUDA(cuMemUnmap(range_, granule_));
  EXPECT_EQ(ReadInts(range_ + 2 * granule_, 1)[0], 3);
  CUmemGenericAllocationHandle again = 0;
  ASSERT_CUDA(cuMemRetainAllocationHandle(&again, reinterpret_cast<void*>(range_ + 2 * granule_)));
  EXPECT_EQ(again, handle);
  ASSERT_CUDA(cuMemRelease(again));
  ASSERT_CUDA(cuMemUnmap(range_ + 2 * granule_, granule_));
}

TEST_F(Mappings, WithoutAccessThereIsNone) {
  const CUmemGenericAllocationHandle handle = Create(granule_);
  ASSERT_CUDA(cuMemMap(range_, granule_, 0, handle, 0));
  EXPECT_RESULT(CUDA_ERROR_INVALID_VALUE, cuMemsetD32(range_, 3, 16));
  ASSERT_CUDA(Launch("Fill", 16, nullptr, range_, 8, 16));
  EXPECT_RESULT(CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize());
}

TEST_F(Mappings, PhysicalMemoryCountsAgainstTheCard) {
  size_t before = 0, after = 0, total = 0;
  ASSERT_CUDA(cuMemGetInfo(&before, &total));
  const CUmemGenericAllocationHandle handle = Create(4 * granule_);
  ASSERT_CUDA(cuMemGetInfo(&after, &total));
  EXPECT_EQ(before - after, 4 * granule_);
  ASSERT_CUDA(cuMemRelease(handle));
  CUmemGenericAllocationHandle none = 0;
  EXPECT_RESULT(CUDA_ERROR_OUT_OF_MEMORY, cuMemCreate(&none, 1024 * kMiB, &prop_, 0));
  EXPECT_RESULT(CUDA_ERROR_INVALID_VALUE, cuMemCreate(&none, granule_ + 1, &prop_, 0));
}

}  // namespace
}  // namespace atp::sim
