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
