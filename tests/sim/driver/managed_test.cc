// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <unistd.h>

#include <cstring>

#include "sim/host_symbols.h"
#include "tests/sim/driver/driver_test_support.h"

namespace atp::sim {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

class Managed : public DriverTest {
 protected:
  static CUmemLocation OnDevice() { return {CU_MEM_LOCATION_TYPE_DEVICE, 0}; }
  static CUmemLocation OnHost() { return {CU_MEM_LOCATION_TYPE_HOST, 0}; }
  int Attribute(CUmem_range_attribute attribute, CUdeviceptr address, size_t bytes) {
    int value = -99;
    EXPECT_CUDA(cuMemRangeGetAttribute(&value, sizeof value, attribute, address, bytes));
    return value;
  }
  // Virtual milliseconds that `work` takes, measured by events on the null stream.
  template <class Work>
  float Milliseconds(Work work) {
    CUevent start = nullptr, end = nullptr;
    float milliseconds = 0;
    EXPECT_CUDA(cuEventCreate(&start, 0));
    EXPECT_CUDA(cuEventCreate(&end, 0));
    EXPECT_CUDA(cuEventRecord(start, nullptr));
    work();
    EXPECT_CUDA(cuEventRecord(end, nullptr));
    EXPECT_CUDA(cuEventSynchronize(end));
    EXPECT_CUDA(cuEventElapsedTime(&milliseconds, start, end));
    return milliseconds;
  }
};

TEST_F(Managed, HostAndKernelsShareTheBytes) {
  constexpr int kCount = 100000;
  const CUdeviceptr address = AllocManaged(kCount * sizeof(int));
  EXPECT_EQ(address % (2 * kMiB), 0u);
  auto* host = reinterpret_cast<int*>(address);
  for (int i = 0; i < kCount; ++i) host[i] = i;
  ASSERT_CUDA(Launch("Increment", kCount, nullptr, address, kCount));
  ASSERT_CUDA(cuCtxSynchronize());
  for (int i = 0; i < kCount; ++i) ASSERT_EQ(host[i], i + 1);
  EXPECT_CUDA(cuMemFree(address));
}

TEST_F(Managed, SystemCallsMayUseManagedMemory) {
  const CUdeviceptr address = AllocManaged(8192);
  ASSERT_CUDA(Launch("Fill", 2048, nullptr, address, 77, 2048));
  ASSERT_CUDA(cuCtxSynchronize());
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  ASSERT_EQ(write(ends[1], reinterpret_cast<void*>(address), 4096), 4096);
  ASSERT_EQ(read(ends[0], reinterpret_cast<void*>(address + 4096), 4096), 4096);
  close(ends[0]);
  close(ends[1]);
  EXPECT_EQ(ReadInts(address + 4096, 1)[0], 77);
}

TEST_F(Managed, MoreThanTheCardCanBeAllocatedAndUsed) {
  const size_t bytes = 24 * kMiB;
  std::vector<CUdeviceptr> parts;
  for (int i = 0; i < 16; ++i) parts.push_back(AllocManaged(bytes));  // 384 MiB on a card of 256
  const int count = static_cast<int>(bytes / 4 / 64);
  for (int i = 0; i < 16; ++i) ASSERT_CUDA(Launch("Fill", count, nullptr, parts[i], i, count));
  ASSERT_CUDA(cuCtxSynchronize());
  for (int i = 0; i < 16; ++i) EXPECT_EQ(ReadInts(parts[i], 1)[0], i);
  for (const CUdeviceptr part : parts) EXPECT_CUDA(cuMemFree(part));
}

TEST_F(Managed, AHostTouchMakesTheNextKernelFault) {
  const size_t bytes = 8 * kMiB;
  const int count = static_cast<int>(bytes / 4);
  const CUdeviceptr address = AllocManaged(bytes);
  ASSERT_CUDA(Launch("Increment", count, nullptr, address, count));
  ASSERT_CUDA(cuCtxSynchronize());
  const float resident =
      Milliseconds([&] { ASSERT_CUDA(Launch("Increment", count, nullptr, address, count)); });
  auto* host = reinterpret_cast<volatile int*>(address);
  int sum = 0;
  for (int i = 0; i < count; i += 1024) sum += host[i];
  const float faulting =
      Milliseconds([&] { ASSERT_CUDA(Launch("Increment", count, nullptr, address, count)); });
  EXPECT_EQ(sum, count / 1024 * 2);
  EXPECT_GT(faulting, 2 * resident);
  const float again =
      Milliseconds([&] { ASSERT_CUDA(Launch("Increment", count, nullptr, address, count)); });
  EXPECT_LT(again, faulting / 2);
}

TEST_F(Managed, APrefetchMakesTheKernelFast) {
  const size_t bytes = 8 * kMiB;
  const int count = static_cast<int>(bytes / 4);
  const auto prepared = [&] {
    const CUdeviceptr address = AllocManaged(bytes);
    memset(reinterpret_cast<void*>(address), 0, bytes);
    return address;
  };
  const CUdeviceptr faulted = prepared(), prefetched = prepared();
  ASSERT_CUDA(cuMemPrefetchAsync(prefetched, bytes, OnDevice(), 0, nullptr));
  ASSERT_CUDA(cuCtxSynchronize());
  const float fast =
      Milliseconds([&] { ASSERT_CUDA(Launch("Increment", count, nullptr, prefetched, count)); });
  const float slow =
      Milliseconds([&] { ASSERT_CUDA(Launch("Increment", count, nullptr, faulted, count)); });
  EXPECT_GT(slow, 2 * fast);
}

TEST_F(Managed, AdviceIsReportedPieceByPiece) {
  const CUdeviceptr address = AllocManaged(8 * kMiB);
  EXPECT_EQ(Attribute(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, address, 8 * kMiB), 0);
  ASSERT_CUDA(cuMemAdvise(address, 4 * kMiB, CU_MEM_ADVISE_SET_READ_MOSTLY, OnDevice()));
  EXPECT_EQ(Attribute(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, address, 4 * kMiB), 1);
  EXPECT_EQ(Attribute(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, address, 8 * kMiB), 0);
  EXPECT_EQ(Attribute(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, address, 4096), CU_DEVICE_INVALID);
  ASSERT_CUDA(cuMemAdvise(address, 8 * kMiB, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, OnHost()));
  EXPECT_EQ(Attribute(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, address, 8 * kMiB), CU_DEVICE_CPU);
  EXPECT_EQ(Attribute(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE, address, 4096),
            CU_MEM_LOCATION_TYPE_HOST);
  ASSERT_CUDA(cuMemAdvise(address, 8 * kMiB, CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION, OnHost()));
  EXPECT_EQ(Attribute(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, address, 8 * kMiB),
            CU_DEVICE_INVALID);
  ASSERT_CUDA(cuMemAdvise(address, 2 * kMiB, CU_MEM_ADVISE_SET_ACCESSED_BY, OnDevice()));
  int users[2] = {5, 5};
  ASSERT_CUDA(cuMemRangeGetAttribute(users, sizeof users, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY,
                                     address, 4096));
  EXPECT_EQ(users[0], 0);
  EXPECT_EQ(users[1], CU_DEVICE_INVALID);
  ASSERT_CUDA(cuMemPrefetchAsync(address, 2 * kMiB, OnDevice(), 0, nullptr));
  EXPECT_EQ(Attribute(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, address, 2 * kMiB), 0);
  EXPECT_EQ(Attribute(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, address, 4 * kMiB),
            CU_DEVICE_INVALID);
}

TEST_F(Managed, HintsOnOtherMemoryAreRefused) {
  const CUdeviceptr device = Alloc(4 * kMiB), managed = AllocManaged(4 * kMiB);
  EXPECT_RESULT(CUDA_ERROR_INVALID_VALUE, cuMemPrefetchAsync(device, 4096, OnDevice(), 0, nullptr));
  EXPECT_RESULT(CUDA_ERROR_INVALID_VALUE, cuMemPrefetchAsync(managed, 0, OnDevice(), 0, nullptr));
  EXPECT_RESULT(CUDA_ERROR_INVALID_VALUE,
                cuMemPrefetchAsync(managed, 5 * kMiB, OnDevice(), 0, nullptr));
  EXPECT_RESULT(CUDA_ERROR_INVALID_VALUE,
                cuMemPrefetchAsync(managed, 4096, OnDevice(), 1, nullptr));
  EXPECT_RESULT(CUDA_ERROR_INVALID_DEVICE,
                cuMemPrefetchAsync(managed, 4096, {CU_MEM_LOCATION_TYPE_DEVICE, 7}, 0, nullptr));
  EXPECT_RESULT(CUDA_ERROR_INVALID_VALUE,
                cuMemAdvise(device, 4096, CU_MEM_ADVISE_SET_READ_MOSTLY, OnDevice()));
  CUdeviceptr address = 0;
  EXPECT_RESULT(CUDA_ERROR_INVALID_VALUE, cuMemAllocManaged(&address, 0, CU_MEM_ATTACH_GLOBAL));
  EXPECT_RESULT(CUDA_ERROR_INVALID_VALUE, cuMemAllocManaged(&address, 4096, CU_MEM_ATTACH_SINGLE));
  CUipcMemHandle handle;
  EXPECT_RESULT(CUDA_ERROR_INVALID_VALUE, cuIpcGetMemHandle(&handle, managed));
}

TEST_F(Managed, BatchesFollowTheirRules) {
  CUdeviceptr addresses[2] = {AllocManaged(2 * kMiB), AllocManaged(2 * kMiB)};
  size_t sizes[2] = {2 * kMiB, 2 * kMiB};
  CUmemLocation places[2] = {OnDevice(), OnHost()};
  size_t first_of[2] = {0, 1};
  CUstream stream = nullptr;
  ASSERT_CUDA(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  EXPECT_CUDA(cuMemPrefetchBatchAsync(addresses, sizes, 2, places, first_of, 2, 0, stream));
  EXPECT_RESULT(CUDA_ERROR_INVALID_VALUE,
                cuMemPrefetchBatchAsync(addresses, sizes, 2, places, first_of, 2, 0, nullptr));
  size_t wrong[2] = {1, 0};
  EXPECT_RESULT(CUDA_ERROR_INVALID_VALUE,
                cuMemPrefetchBatchAsync(addresses, sizes, 2, places, wrong, 2, 0, stream));
  EXPECT_CUDA(cuMemDiscardBatchAsync(addresses, sizes, 2, 0, stream));
  EXPECT_CUDA(
      cuMemDiscardAndPrefetchBatchAsync(addresses, sizes, 2, places, first_of, 2, 0, stream));
  EXPECT_CUDA(cuStreamSynchronize(stream));
}

TEST_F(Managed, SetsOfManagedMemoryWaitForTheirEnd) {
  const CUdeviceptr managed = AllocManaged(8 * kMiB), device = Alloc(8 * kMiB);
  ASSERT_CUDA(cuMemPrefetchAsync(managed, 8 * kMiB, OnDevice(), 0, nullptr));
  ASSERT_CUDA(cuCtxSynchronize());
  ASSERT_CUDA(cuMemsetD8(managed, 1, 8 * kMiB));
  EXPECT_CUDA(cuStreamQuery(nullptr));
  ASSERT_CUDA(cuMemsetD8(device, 1, 8 * kMiB));
  EXPECT_RESULT(CUDA_ERROR_NOT_READY, cuStreamQuery(nullptr));
}

TEST(SeveralDevices, ManagedMemoryMovesToTheDeviceThatTouchesIt) {
  RunWith({{"ATP_SIM_DEVICES", "2"}}, [] {
    constexpr int kCount = 1 << 20;
    CUdeviceptr shared = 0;
    CUcontext contexts[2];
    CUfunction increment[2];
    ASSERT_CUDA(cuInit(0));
    for (int device = 0; device < 2; ++device) {
      CUmodule module = nullptr;
      ASSERT_CUDA(cuDevicePrimaryCtxRetain(&contexts[device], device));
      ASSERT_CUDA(cuCtxSetCurrent(contexts[device]));
      ASSERT_CUDA(cuModuleLoad(&module, ATP_TEST_PTX));
      ASSERT_CUDA(cuModuleGetFunction(&increment[device], module, "Increment"));
    }
    ASSERT_CUDA(cuMemAllocManaged(&shared, kCount * sizeof(int), CU_MEM_ATTACH_GLOBAL));
    ASSERT_CUDA(cuMemsetD32(shared, 0, kCount));
    const auto run_on = [&](int device) {
      int count = kCount;
      void* arguments[] = {&shared, &count};
      EXPECT_CUDA(cuCtxSetCurrent(contexts[device]));
      const uint64_t start = atpSimNow();
      EXPECT_CUDA(cuLaunchKernel(increment[device], kCount / 256, 1, 1, 256, 1, 1, 0, nullptr,
                                 arguments, nullptr));
      EXPECT_CUDA(cuCtxSynchronize());
      return atpSimNow() - start;
    };
    run_on(0);
    const uint64_t at_home = run_on(0), moved = run_on(1), settled = run_on(1), back = run_on(0);
    EXPECT_GT(moved, 2 * at_home);
    EXPECT_LT(settled, moved / 2);
    EXPECT_GT(back, 2 * at_home);
    int last = 0;
    ASSERT_CUDA(cuMemcpyDtoH(&last, shared + 4 * (kCount - 1), sizeof last));
    EXPECT_EQ(last, 5);
  });
}

TEST(DevicesWithoutFaults, HaveNoHintsAndNoOversubscription) {
  RunWith({{"ATP_SIM_CMA", "0"}}, [] {
    CUcontext context = nullptr;
    ASSERT_CUDA(cuInit(0));
    ASSERT_CUDA(cuCtxCreate(&context, nullptr, 0, 0));
    int value = 9;
    ASSERT_CUDA(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, 0));
    EXPECT_EQ(value, 0);
    CUdeviceptr address = 0;
    ASSERT_CUDA(cuMemAllocManaged(&address, 4096, CU_MEM_ATTACH_GLOBAL));
    *reinterpret_cast<int*>(address) = 3;
    EXPECT_RESULT(CUDA_ERROR_INVALID_DEVICE,
                  cuMemPrefetchAsync(address, 4096, {CU_MEM_LOCATION_TYPE_DEVICE, 0}, 0, nullptr));
    EXPECT_RESULT(CUDA_ERROR_OUT_OF_MEMORY,
                  cuMemAllocManaged(&address, 300 * kMiB, CU_MEM_ATTACH_GLOBAL));
  });
}

TEST(DevicesWithoutManagedMemory, SaySo) {
  RunWith({{"ATP_SIM_MANAGED", "0"}}, [] {
    CUcontext context = nullptr;
    ASSERT_CUDA(cuInit(0));
    ASSERT_CUDA(cuCtxCreate(&context, nullptr, 0, 0));
    int value = 9;
    ASSERT_CUDA(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 0));
    EXPECT_EQ(value, 0);
    CUdeviceptr address = 0;
    EXPECT_RESULT(CUDA_ERROR_NOT_SUPPORTED,
                  cuMemAllocManaged(&address, 4096, CU_MEM_ATTACH_GLOBAL));
  });
}

TEST(HostMemoryLimit, KillsTheContextWhenEvictionFindsNoRoom) {
  RunWith({{"ATP_SIM_MEMORY", "32MiB"}, {"ATP_SIM_HOST_MEMORY", "8MiB"}}, [] {
    CUcontext context = nullptr;
    ASSERT_CUDA(cuInit(0));
    ASSERT_CUDA(cuCtxCreate(&context, nullptr, 0, 0));
    CUmodule module = nullptr;
    CUfunction fill = nullptr;
    ASSERT_CUDA(cuModuleLoad(&module, ATP_TEST_PTX));
    ASSERT_CUDA(cuModuleGetFunction(&fill, module, "Fill"));
    CUdeviceptr address = 0;
    ASSERT_CUDA(cuMemAllocManaged(&address, 64 * kMiB, CU_MEM_ATTACH_GLOBAL));
    int value = 1, n = 16 << 20;
    void* arguments[] = {&address, &value, &n};
    cuLaunchKernel(fill, static_cast<unsigned>(n / 128), 1, 1, 128, 1, 1, 0, nullptr, arguments,
                   nullptr);
    EXPECT_RESULT(CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize());
    EXPECT_RESULT(CUDA_ERROR_ILLEGAL_ADDRESS, cuMemAlloc(&address, 16));
  });
}

}  // namespace
}  // namespace atp::sim
