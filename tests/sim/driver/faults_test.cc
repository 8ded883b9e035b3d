// SPDX-License-Identifier: Apache-2.0
#include <set>

#include "sim/host_symbols.h"
#include "tests/sim/driver/driver_test_support.h"

namespace atp::sim {
namespace {

void Prepare() {
  CUcontext context = nullptr;
  ASSERT_CUDA(cuInit(0));
  ASSERT_CUDA(cuCtxCreate(&context, nullptr, 0, 0));
}

TEST(Faults, TheNthCallFails) {
  RunWith({{"ATP_SIM_FAULT", "cuMemAlloc_v2:2=2,cuStreamCreate:1=999"}}, [] {
    Prepare();
    CUdeviceptr address = 0;
    CUstream stream = nullptr;
    EXPECT_CUDA(cuMemAlloc(&address, 16));
    EXPECT_RESULT(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc(&address, 16));
    EXPECT_CUDA(cuMemAlloc(&address, 16));
    EXPECT_RESULT(CUDA_ERROR_UNKNOWN, cuStreamCreate(&stream, 0));
    EXPECT_CUDA(cuStreamCreate(&stream, 0));
  });
}

TEST(Faults, FromTheNthCallOnAllFail) {
  RunWith({{"ATP_SIM_FAULT", "cuMemAlloc_v2:2+=2"}}, [] {
    Prepare();
    CUdeviceptr address = 0;
    EXPECT_CUDA(cuMemAlloc(&address, 16));
    for (int i = 0; i < 3; ++i) EXPECT_RESULT(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc(&address, 16));
  });
}

TEST(Faults, ADelayCostsVirtualTime) {
  RunWith({{"ATP_SIM_FAULT", "cuMemAlloc_v2:2=delay:50ms"}}, [] {
    Prepare();
    CUdeviceptr address = 0;
    ASSERT_CUDA(cuMemAlloc(&address, 16));
    const uint64_t before = atpSimNow();
    ASSERT_CUDA(cuMemAlloc(&address, 16));
    EXPECT_GE(atpSimNow() - before, 50'000'000u);
    EXPECT_LT(atpSimNow() - before, 60'000'000u);
  });
}

TEST(Faults, ALostDeviceStaysLost) {
  RunWith({{"ATP_SIM_FAULT", "cuMemAlloc_v2:1=lost"}}, [] {
    Prepare();
    CUdeviceptr address = 0;
    EXPECT_RESULT(CUDA_ERROR_DEVICE_UNAVAILABLE, cuMemAlloc(&address, 16));
    EXPECT_RESULT(CUDA_ERROR_DEVICE_UNAVAILABLE, cuCtxSynchronize());
  });
}

TEST(Faults, AnyCallCanBeCounted) {
  // cuInit, cuCtxCreate, then the third call of whatever function.
  RunWith({{"ATP_SIM_FAULT", "*:3=304"}}, [] {
    Prepare();
    CUstream stream = nullptr;
    EXPECT_RESULT(CUDA_ERROR_OPERATING_SYSTEM, cuStreamCreate(&stream, 0));
    EXPECT_CUDA(cuStreamCreate(&stream, 0));
  });
}

TEST(Faults, InitialisationCanFail) {
  RunWith({{"ATP_SIM_FAULT", "cuInit:1=100"}}, [] {
    int count = 0;
    EXPECT_RESULT(CUDA_ERROR_NO_DEVICE, cuInit(0));
    EXPECT_RESULT(CUDA_ERROR_NOT_INITIALIZED, cuDeviceGetCount(&count));
    EXPECT_CUDA(cuInit(0));
  });
}

TEST(Faults, ASlowCopyTakesTheDevicesTimeNotTheCallers) {
  RunWith({{"ATP_SIM_FAULT", "cuMemcpyHtoDAsync_v2:2=slow:20ms"}}, [] {
    Prepare();
    CUdeviceptr address = 0;
    void* pinned = nullptr;
    ASSERT_CUDA(cuMemAlloc(&address, 1 << 20));
    ASSERT_CUDA(cuMemAllocHost(&pinned, 1 << 20));
    for (uint64_t least : {0u, 20'000'000u, 0u}) {
      const uint64_t before = atpSimNow();
      ASSERT_CUDA(cuMemcpyHtoDAsync(address, pinned, 1 << 20, nullptr));
      EXPECT_LT(atpSimNow() - before, 1'000'000u) << "the call itself does not wait";
      ASSERT_CUDA(cuCtxSynchronize());
      EXPECT_GE(atpSimNow() - before, least);
      EXPECT_LT(atpSimNow() - before, least + 1'000'000);
    }
  });
}

TEST(Faults, APerThreadTwinCountsAsTheSymbolItself) {
  RunWith({{"ATP_SIM_FAULT", "cuMemcpyHtoDAsync_v2:1=700"}}, [] {
    Prepare();
    CUdeviceptr address = 0;
    int value = 1;
    ASSERT_CUDA(cuMemAlloc(&address, 16));
    void* twin = nullptr;
    ASSERT_CUDA(cuGetProcAddress("cuMemcpyHtoDAsync", &twin, 13000,
                                 CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, nullptr));
    const auto copy =
        reinterpret_cast<CUresult (*)(CUdeviceptr, const void*, size_t, CUstream)>(twin);
    EXPECT_RESULT(CUDA_ERROR_ILLEGAL_ADDRESS, copy(address, &value, sizeof value, nullptr));
    EXPECT_CUDA(copy(address, &value, sizeof value, nullptr));
  });
}

TEST(Faults, OneLaunchCanFail) {
  RunWith({{"ATP_SIM_FAULT", "cuLaunchKernel:2=719"}}, [] {
    Prepare();
    CUmodule module = nullptr;
    CUfunction fill = nullptr;
    ASSERT_CUDA(cuModuleLoad(&module, ATP_TEST_PTX));
    ASSERT_CUDA(cuModuleGetFunction(&fill, module, "Fill"));
    CUdeviceptr out = 0;
    int value = 1, count = 1;
    ASSERT_CUDA(cuMemAlloc(&out, 16));
    void* arguments[] = {&out, &value, &count};
    const auto launch = [&] {
      return cuLaunchKernel(fill, 1, 1, 1, 32, 1, 1, 0, nullptr, arguments, nullptr);
    };
    EXPECT_CUDA(launch());
    EXPECT_RESULT(CUDA_ERROR_LAUNCH_FAILED, launch());
    EXPECT_CUDA(launch());
  });
}

// --- the symbols that only the simulated driver has

class Lanes : public DriverTest {};

TEST_F(Lanes, AThreadPlaysSeveralHostThreads) {
  const uint64_t start = atpSimNow();
  EXPECT_EQ(atpSimLane(1), 0u);
  EXPECT_EQ(atpSimNow(), start);
  ASSERT_CUDA(cuMemFree(Alloc(1 << 21)));  // takes this lane's time
  const uint64_t later = atpSimNow();
  EXPECT_GT(later, start);
  EXPECT_EQ(atpSimLane(0), 1u);
  EXPECT_EQ(atpSimNow(), start);
  EXPECT_EQ(atpSimLane(1), 0u);
  EXPECT_EQ(atpSimNow(), later);
  atpSimLane(0);
}

TEST_F(Lanes, AWaitEndsAtTheFirstCompletion) {
  constexpr size_t kBytes = size_t{24} << 20;
  CUstream stream = nullptr;
  CUevent first = nullptr, second = nullptr, never = nullptr;
  void* pinned = nullptr;
  ASSERT_CUDA(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  for (CUevent* event : {&first, &second, &never}) ASSERT_CUDA(cuEventCreate(event, 0));
  ASSERT_CUDA(cuMemAllocHost(&pinned, kBytes));
  const CUdeviceptr buffer = Alloc(kBytes);
  ASSERT_CUDA(cuMemcpyHtoDAsync(buffer, pinned, kBytes, stream));
  ASSERT_CUDA(cuEventRecord(first, stream));
  ASSERT_CUDA(cuMemcpyHtoDAsync(buffer, pinned, kBytes, stream));
  ASSERT_CUDA(cuEventRecord(second, stream));
  const CUevent both[] = {second, first};
  const uint64_t start = atpSimNow();
  EXPECT_EQ(atpSimWaitAny(both, 2, start + 1000), -1);  // a microsecond is too short
  EXPECT_EQ(atpSimNow(), start + 1000);
  EXPECT_EQ(atpSimWaitAny(both, 2, UINT64_MAX), 1);
  const uint64_t at_first = atpSimNow();
  EXPECT_GT(at_first, start + 1000);
  EXPECT_RESULT(CUDA_ERROR_NOT_READY, cuEventQuery(second));
  EXPECT_EQ(atpSimWaitAny(&second, 1, UINT64_MAX), 0);
  EXPECT_GT(atpSimNow(), at_first);
  const CUevent unrecorded[] = {never};
  EXPECT_EQ(atpSimWaitAny(unrecorded, 1, UINT64_MAX), 0);
  EXPECT_EQ(atpSimWaitAny(nullptr, 0, atpSimNow() + 5), -1);
}

TEST_F(Lanes, VirtualTimeIsTheSameInEveryRun) {
  const std::string path = TemporaryFile("now");
  std::set<std::string> seen;
  for (const char* threads : {"1", "2", "2"}) {
    RunWith({{"ATP_SIM_THREADS", threads}}, [&] {
      // The fixture has already initialised the driver in this process too: only relative time
      // counts.
      const uint64_t start = atpSimNow();
      const int count = 1 << 20;
      const CUdeviceptr buffer = AllocManaged(count * sizeof(int));
      for (int i = 0; i < 3; ++i) ASSERT_CUDA(Launch("Increment", count, nullptr, buffer, count));
      ASSERT_CUDA(cuCtxSynchronize());
      FILE* file = fopen(path.c_str(), "w");
      fprintf(file, "%llu", static_cast<unsigned long long>(atpSimNow() - start));
      fclose(file);
    });
    seen.insert(ReadText(path));
  }
  EXPECT_EQ(seen.size(), 1u);
  remove(path.c_str());
}

}  // namespace
}  // namespace atp::sim
