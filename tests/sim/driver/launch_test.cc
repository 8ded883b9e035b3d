// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <thread>

#include "sim/host_symbols.h"
#include "tests/sim/driver/driver_test_support.h"

namespace atp::sim {
namespace {

class Launch : public DriverTest {};

TEST_F(Launch, VectorAddGivesTheSumsOfTheHost) {
  constexpr int kCount = 10000;
  std::vector<float> a(kCount), b(kCount), c(kCount);
  for (int i = 0; i < kCount; ++i) a[i] = 0.5f * i, b[i] = 1.25f - i;
  const size_t bytes = kCount * sizeof(float);
  const CUdeviceptr da = Alloc(bytes), db = Alloc(bytes), dc = Alloc(bytes);
  ASSERT_CUDA(cuMemcpyHtoD(da, a.data(), bytes));
  ASSERT_CUDA(cuMemcpyHtoD(db, b.data(), bytes));
  ASSERT_CUDA(DriverTest::Launch("Add", kCount, nullptr, da, db, dc, kCount));
  ASSERT_CUDA(cuCtxSynchronize());
  ASSERT_CUDA(cuMemcpyDtoH(c.data(), dc, bytes));
  for (int i = 0; i < kCount; ++i) ASSERT_EQ(c[i], a[i] + b[i]) << i;
}

TEST_F(Launch, TellsWhoAsksWhatItHasTouched) {
  constexpr uint64_t kPiece = 64 << 10;
  constexpr int kCount = 3 * kPiece / sizeof(int);
  CUdeviceptr out = 0;
  ASSERT_CUDA(cuMemAllocManaged(&out, 4 << 20, CU_MEM_ATTACH_GLOBAL));
  std::vector<atpSimTouch> touches(16);
  const auto ask = [&] { return atpSimTouched(touches.data(), touches.size()); };
  EXPECT_EQ(ask(), -1) << "nothing is kept for who has not asked";
  ASSERT_CUDA(DriverTest::Launch("Fill", kCount, nullptr, out + kPiece, 1, kCount));
  ASSERT_EQ(ask(), 3);
  for (uint64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(touches[i].address, out + (i + 1) * kPiece);
    EXPECT_EQ(touches[i].reads, 0);
    EXPECT_NE(touches[i].writes, 0);
  }
  EXPECT_EQ(ask(), -1) << "a launch is told once";
  ASSERT_CUDA(cuMemsetD8(out, 0, kPiece));
  EXPECT_EQ(ask(), -1) << "sets are no launches";
  ASSERT_CUDA(DriverTest::Launch("Fill", kCount, nullptr, out, 1, kCount));
  touches.resize(1);
  EXPECT_EQ(ask(), 3) << "how many there are, whatever the room";
}

TEST_F(Launch, TakesPackedArguments) {
  const CUdeviceptr out = Alloc(400);
  struct {
    CUdeviceptr out;
    int value, n;
  } arguments{out, 11, 100};
  size_t bytes = sizeof arguments;
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &arguments, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                   CU_LAUNCH_PARAM_END};
  ASSERT_CUDA(cuLaunchKernel(Function("Fill"), 1, 1, 1, 128, 1, 1, 0, nullptr, nullptr, extra));
  EXPECT_EQ(ReadInts(out, 100), std::vector<int>(100, 11));
}

TEST_F(Launch, AKernelMayStandForItsFunction) {
  CUlibrary library = nullptr;
  CUkernel kernel = nullptr;
  const std::string ptx = ReadText(ATP_TEST_PTX);
  ASSERT_CUDA(cuLibraryLoadData(&library, ptx.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0));
  ASSERT_CUDA(cuLibraryGetKernel(&kernel, library, "Fill"));
  CUdeviceptr out = Alloc(40);
  int value = 3, n = 10;
  void* arguments[] = {&out, &value, &n};
  ASSERT_CUDA(cuLaunchKernel(reinterpret_cast<CUfunction>(kernel), 1, 1, 1, 32, 1, 1, 0, nullptr,
                             arguments, nullptr));
  EXPECT_EQ(ReadInts(out, 10), std::vector<int>(10, 3));
  EXPECT_CUDA(cuLibraryUnload(library));
}

TEST_F(Launch, RefusesConfigurationsThatNoDeviceRuns) {
  CUdeviceptr out = Alloc(40);
  int value = 3, n = 10;
  void* arguments[] = {&out, &value, &n};
  const CUfunction fill = Function("Fill");
  EXPECT_RESULT(CUDA_ERROR_INVALID_VALUE,
                cuLaunchKernel(fill, 0, 1, 1, 32, 1, 1, 0, nullptr, arguments, nullptr));
  EXPECT_RESULT(CUDA_ERROR_INVALID_VALUE,
                cuLaunchKernel(fill, 1, 1, 1, 2048, 1, 1, 0, nullptr, arguments, nullptr));
  EXPECT_RESULT(CUDA_ERROR_INVALID_VALUE,
                cuLaunchKernel(fill, 1, 1, 1, 32, 1, 1, 100 << 10, nullptr, arguments, nullptr));
  EXPECT_RESULT(CUDA_ERROR_INVALID_VALUE,
                cuLaunchKernel(fill, 1, 1, 1, 32, 1, 1, 0, nullptr, nullptr, nullptr));
  EXPECT_RESULT(CUDA_ERROR_INVALID_HANDLE,
                cuLaunchKernel(nullptr, 1, 1, 1, 32, 1, 1, 0, nullptr, arguments, nullptr));
}

TEST_F(Launch, DynamicSharedMemoryBeyondTheDefaultMustBeAllowedFirst) {
  const CUfunction function = Function("DynamicShared");
  CUdeviceptr out = Alloc(64 * sizeof(int));
  void* arguments[] = {&out};
  const unsigned bytes = 60 << 10;
  EXPECT_RESULT(CUDA_ERROR_INVALID_VALUE,
                cuLaunchKernel(function, 1, 1, 1, 64, 1, 1, bytes, nullptr, arguments, nullptr));
  ASSERT_CUDA(cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, bytes));
  ASSERT_CUDA(cuLaunchKernel(function, 1, 1, 1, 64, 1, 1, bytes, nullptr, arguments, nullptr));
  const std::vector<int> values = ReadInts(out, 64);
  for (int i = 0; i < 64; ++i) EXPECT_EQ(values[i], 63 - i);
}

TEST_F(Launch, AnAddressOutOfBoundsKillsTheContextAtTheNextCall) {
  const CUdeviceptr out = Alloc(400);
  EXPECT_CUDA(DriverTest::Launch("Store", 1, nullptr, out, 100));
  EXPECT_RESULT(CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize());
  CUdeviceptr more = 0;
  EXPECT_RESULT(CUDA_ERROR_ILLEGAL_ADDRESS, cuMemAlloc(&more, 16));
  EXPECT_CUDA(cuCtxDestroy(context_));
  EXPECT_CUDA(cuCtxCreate(&context_, nullptr, 0, device_));  // a new one works
  EXPECT_CUDA(cuMemAlloc(&more, 16));
}

TEST_F(Launch, ATrapIsALaunchFailure) {
  EXPECT_CUDA(cuLaunchKernel(Function("Trap"), 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
  EXPECT_RESULT(CUDA_ERROR_LAUNCH_FAILED, cuCtxSynchronize());
}

TEST_F(Launch, PrintedTextAppearsAtSynchronisation) {
  testing::internal::CaptureStdout();
  EXPECT_CUDA(cuLaunchKernel(
      Function("Print"), 1, 1, 1, 1, 1, 1, 0, nullptr,
      [] {
        static int value = 42;
        static void* arguments[] = {&value};
        return arguments;
      }(),
      nullptr));
  EXPECT_CUDA(cuCtxSynchronize());
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "value 42\n");
}

TEST_F(Launch, ParametersAreDescribedWithOffsetAndSize) {
  const CUfunction function = Function("Layout");
  const std::vector<std::pair<size_t, size_t>> wanted = {{0, 1},  {2, 2},   {4, 4}, {8, 8},
                                                         {16, 8}, {24, 16}, {40, 1}};
  for (size_t i = 0; i < wanted.size(); ++i) {
    size_t offset = 0, size = 0;
    ASSERT_CUDA(cuFuncGetParamInfo(function, i, &offset, &size));
    EXPECT_EQ(std::make_pair(offset, size), wanted[i]) << i;
  }
  size_t offset = 0;
  EXPECT_RESULT(CUDA_ERROR_INVALID_VALUE,
                cuFuncGetParamInfo(function, wanted.size(), &offset, nullptr));
}

TEST_F(Launch, TakesVirtualTimeThatEventsReport) {
  CUevent start = nullptr, end = nullptr;
  ASSERT_CUDA(cuEventCreate(&start, 0));
  ASSERT_CUDA(cuEventCreate(&end, 0));
  constexpr int kCount = 1 << 16;
  const CUdeviceptr out = Alloc(kCount * sizeof(int));
  ASSERT_CUDA(cuEventRecord(start, nullptr));
  ASSERT_CUDA(DriverTest::Launch("Fill", kCount, nullptr, out, 1, kCount));
  ASSERT_CUDA(cuEventRecord(end, nullptr));
  float milliseconds = 0;
  EXPECT_RESULT(CUDA_ERROR_NOT_READY, cuEventElapsedTime(&milliseconds, start, end));
  ASSERT_CUDA(cuEventSynchronize(end));
  ASSERT_CUDA(cuEventElapsedTime(&milliseconds, start, end));
  EXPECT_GT(milliseconds, 0.0f);
  EXPECT_LT(milliseconds, 10.0f);
}

TEST_F(Launch, WorksFromManyHostThreads) {
  constexpr int kThreads = 8, kRounds = 20, kCount = 512;
  std::vector<CUdeviceptr> buffers;
  for (int i = 0; i < kThreads; ++i) buffers.push_back(Alloc(kCount * sizeof(int)));
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      ASSERT_CUDA(cuCtxSetCurrent(context_));
      CUstream stream = nullptr;
      ASSERT_CUDA(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
      ASSERT_CUDA(cuMemsetD32Async(buffers[i], 0, kCount, stream));
      for (int round = 0; round < kRounds; ++round)
        ASSERT_CUDA(DriverTest::Launch("Increment", kCount, stream, buffers[i], kCount));
      ASSERT_CUDA(cuStreamSynchronize(stream));
      ASSERT_CUDA(cuStreamDestroy(stream));
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const CUdeviceptr buffer : buffers)
    EXPECT_EQ(ReadInts(buffer, kCount), std::vector<int>(kCount, kRounds));
}

}  // namespace
}  // namespace atp::sim
