// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include "tests/sim/driver/driver_test_support.h"

namespace atp::sim {
namespace {

class SharedMemory : public DriverTest {
 protected:
  void SetUp() override {
    DriverTest::SetUp();
    prop_.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop_.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    prop_.requestedHandleTypes = kFile;
    ASSERT_CUDA(cuMemGetAllocationGranularity(&granule_, &prop_, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  }
  CUdeviceptr Map(CUmemGenericAllocationHandle handle) {
    CUdeviceptr address = 0;
    const CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, 0},
                                 CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    EXPECT_CUDA(cuMemAddressReserve(&address, granule_, 0, 0, 0));
    EXPECT_CUDA(cuMemMap(address, granule_, 0, handle, 0));
    EXPECT_CUDA(cuMemSetAccess(address, granule_, &access, 1));
    return address;
  }
  void Unmap(CUdeviceptr address) {
    EXPECT_CUDA(cuMemUnmap(address, granule_));
    EXPECT_CUDA(cuMemAddressFree(address, granule_));
  }
  static void* AsHandle(int fd) { return reinterpret_cast<void*>(static_cast<intptr_t>(fd)); }

  static constexpr CUmemAllocationHandleType kFile = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  CUmemAllocationProp prop_{};
  size_t granule_ = 0;
};

TEST_F(SharedMemory, ADescriptorBringsBackTheSameMemory) {
  int supported = 0, fd = -1;
  ASSERT_CUDA(cuDeviceGetAttribute(
      &supported, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, device_));
  EXPECT_EQ(supported, 1);
  CUmemGenericAllocationHandle made = 0, imported = 0;
  ASSERT_CUDA(cuMemCreate(&made, granule_, &prop_, 0));
  ASSERT_CUDA(cuMemExportToShareableHandle(&fd, made, kFile, 0));
  ASSERT_CUDA(cuMemImportFromShareableHandle(&imported, AsHandle(fd), kFile));
  const CUdeviceptr first = Map(made), second = Map(imported);
  ASSERT_CUDA(cuMemsetD32(first, 77, 4));
  EXPECT_EQ(ReadInts(second, 1)[0], 77);
  EXPECT_CUDA(cuMemRelease(made));
  Unmap(first);
  EXPECT_EQ(ReadInts(second, 1)[0], 77);
  EXPECT_CUDA(cuMemRelease(imported));
  Unmap(second);
  EXPECT_RESULT(CUDA_ERROR_INVALID_VALUE,
                cuMemImportFromShareableHandle(&imported, AsHandle(fd), kFile));
  close(fd);
}

TEST_F(SharedMemory, MemoryThatWasNotMeantToBeSharedIsNot) {
  int fd = -1;
  CUmemGenericAllocationHandle handle = 0;
  prop_.requestedHandleTypes = CU_MEM_HANDLE_TYPE_NONE;
  ASSERT_CUDA(cuMemCreate(&handle, granule_, &prop_, 0));
  EXPECT_RESULT(CUDA_ERROR_INVALID_VALUE, cuMemExportToShareableHandle(&fd, handle, kFile, 0));
  EXPECT_RESULT(CUDA_ERROR_NOT_SUPPORTED,
                cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_FABRIC, 0));
  EXPECT_CUDA(cuMemRelease(handle));
}

TEST_F(SharedMemory, OtherDescriptorsAreRefused) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  CUmemGenericAllocationHandle handle = 0;
  EXPECT_RESULT(CUDA_ERROR_INVALID_VALUE,
                cuMemImportFromShareableHandle(&handle, AsHandle(ends[0]), kFile));
  EXPECT_RESULT(CUDA_ERROR_INVALID_VALUE,
                cuMemImportFromShareableHandle(&handle, AsHandle(-1), kFile));
  close(ends[0]);
  close(ends[1]);
}

}  // namespace
}  // namespace atp::sim
