// SPDX-License-Identifier: Apache-2.0
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "tests/sim/driver/driver_test_support.h"

namespace atp::sim {
namespace {

class Context : public DriverTest {};

TEST(Uninitialised, CallsBeforeInitAreRefused) {
  RunWith({}, [] {
    int count = 0;
    EXPECT_RESULT(CUDA_ERROR_NOT_INITIALIZED, cuDeviceGetCount(&count));
    EXPECT_CUDA(cuInit(0));
    EXPECT_RESULT(CUDA_ERROR_INVALID_VALUE, cuInit(1));
    CUdeviceptr address = 0;
    EXPECT_RESULT(CUDA_ERROR_INVALID_CONTEXT, cuMemAlloc(&address, 16));
  });
}

TEST(Forked, AChildHasNoDriver) {
  RunWith({}, [] {
    ASSERT_CUDA(cuInit(0));
    const pid_t child = fork();
    if (child == 0) {
      int count = 0;
      _exit(cuDeviceGetCount(&count) == CUDA_ERROR_NOT_INITIALIZED ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  });
}

TEST_F(Context, EachThreadHasItsOwnStack) {
  CUcontext current = nullptr, second = nullptr, popped = nullptr;
  ASSERT_CUDA(cuCtxCreate(&second, nullptr, 0, device_));
  ASSERT_CUDA(cuCtxGetCurrent(&current));
  EXPECT_EQ(current, second);
  std::thread([&] {
    CUcontext here = context_;
    ASSERT_CUDA(cuCtxGetCurrent(&here));
    EXPECT_EQ(here, nullptr);
  }).join();
  ASSERT_CUDA(cuCtxPopCurrent(&popped));
  EXPECT_EQ(popped, second);
  ASSERT_CUDA(cuCtxGetCurrent(&current));
  EXPECT_EQ(current, context_);
  ASSERT_CUDA(cuCtxPushCurrent(second));
  ASSERT_CUDA(cuCtxSetCurrent(context_));  // replaces the top
  ASSERT_CUDA(cuCtxDestroy(second));
  EXPECT_RESULT(CUDA_ERROR_INVALID_CONTEXT, cuCtxDestroy(second));
}

TEST_F(Context, ADestroyedContextThatIsStillCurrentSaysSo) {
  CUcontext second = nullptr;
  ASSERT_CUDA(cuCtxCreate(&second, nullptr, 0, device_));
  std::thread([&] { ASSERT_CUDA(cuCtxDestroy(second)); }).join();
  CUdeviceptr address = 0;
  EXPECT_RESULT(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuMemAlloc(&address, 16));
  ASSERT_CUDA(cuCtxSetCurrent(context_));
}

TEST_F(Context, ThePrimaryContextLivesAsLongAsItIsRetained) {
  CUcontext first = nullptr, again = nullptr;
  unsigned flags = 9;
  int active = 9;
  ASSERT_CUDA(cuDevicePrimaryCtxGetState(device_, &flags, &active));
  EXPECT_EQ(active, 0);
  ASSERT_CUDA(cuDevicePrimaryCtxRetain(&first, device_));
  ASSERT_CUDA(cuDevicePrimaryCtxRetain(&again, device_));
  EXPECT_EQ(first, again);
  ASSERT_CUDA(cuDevicePrimaryCtxRelease(device_));
  ASSERT_CUDA(cuDevicePrimaryCtxGetState(device_, &flags, &active));
  EXPECT_EQ(active, 1);
  EXPECT_RESULT(CUDA_ERROR_INVALID_CONTEXT, cuCtxDestroy(first));
  ASSERT_CUDA(cuDevicePrimaryCtxRelease(device_));
  EXPECT_RESULT(CUDA_ERROR_INVALID_CONTEXT, cuDevicePrimaryCtxRelease(device_));
}

TEST_F(Context, ResetMakesAFreshPrimaryContextAfterAFailure) {
  CUcontext primary = nullptr;
  ASSERT_CUDA(cuDevicePrimaryCtxRetain(&primary, device_));
  ASSERT_CUDA(cuCtxPushCurrent(primary));
  CUmodule module = nullptr;
  CUfunction trap = nullptr;
  ASSERT_CUDA(cuModuleLoad(&module, ATP_TEST_PTX));
  ASSERT_CUDA(cuModuleGetFunction(&trap, module, "Trap"));
  ASSERT_CUDA(cuLaunchKernel(trap, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
  EXPECT_RESULT(CUDA_ERROR_LAUNCH_FAILED, cuCtxSynchronize());
  ASSERT_CUDA(cuDevicePrimaryCtxReset(device_));
  ASSERT_CUDA(cuCtxPopCurrent(&primary));
  ASSERT_CUDA(cuDevicePrimaryCtxRetain(&primary, device_));
  ASSERT_CUDA(cuCtxPushCurrent(primary));
  CUdeviceptr address = 0;
  EXPECT_CUDA(cuMemAlloc(&address, 16));
  ASSERT_CUDA(cuCtxPopCurrent(&primary));
  ASSERT_CUDA(cuDevicePrimaryCtxRelease(device_));
}

TEST_F(Context, LimitsAreRemembered) {
  size_t value = 0;
  ASSERT_CUDA(cuCtxGetLimit(&value, CU_LIMIT_STACK_SIZE));
  EXPECT_EQ(value, 1024u);
  ASSERT_CUDA(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 4096));
  ASSERT_CUDA(cuCtxGetLimit(&value, CU_LIMIT_STACK_SIZE));
  EXPECT_EQ(value, 4096u);
}

TEST_F(Context, AttributesDescribeTheProfile) {
  int major = 0, processors = 0, managed = 0, concurrent = 0, warp = 0;
  ASSERT_CUDA(cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device_));
  ASSERT_CUDA(cuDeviceGetAttribute(&processors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device_));
  ASSERT_CUDA(cuDeviceGetAttribute(&managed, CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, device_));
  ASSERT_CUDA(
      cuDeviceGetAttribute(&concurrent, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, device_));
  ASSERT_CUDA(cuDeviceGetAttribute(&warp, CU_DEVICE_ATTRIBUTE_WARP_SIZE, device_));
  EXPECT_EQ(major, 8);
  EXPECT_GT(processors, 0);
  EXPECT_EQ(managed, 1);
  EXPECT_EQ(concurrent, 1);
  EXPECT_EQ(warp, 32);
  // Everything that the runtime asks for at start-up is answered.
  for (int attribute = 1; attribute < CU_DEVICE_ATTRIBUTE_MAX; ++attribute) {
    int value = 0;
    EXPECT_CUDA(cuDeviceGetAttribute(&value, static_cast<CUdevice_attribute>(attribute), device_));
  }
}

TEST_F(Context, MultiprocessorsCanBeAskedForAndSplit) {
  CUdevResource all{}, rest{}, parts[8];
  ASSERT_CUDA(cuDeviceGetDevResource(device_, &all, CU_DEV_RESOURCE_TYPE_SM));
  int count = 0;
  ASSERT_CUDA(cuDeviceGetAttribute(&count, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device_));
  EXPECT_EQ(all.sm.smCount, static_cast<unsigned>(count));
  ASSERT_EQ(count, 6);
  unsigned groups = 0;
  ASSERT_CUDA(cuDevSmResourceSplitByCount(nullptr, &groups, &all, nullptr, 0, 1));
  EXPECT_EQ(groups, 1u) << "no part is smaller than four";
  constexpr unsigned kAlone = CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING;
  groups = 2;
  ASSERT_CUDA(cuDevSmResourceSplitByCount(parts, &groups, &all, &rest, kAlone, 1));
  EXPECT_EQ(groups, 2u);
  EXPECT_EQ(parts[1].sm.smCount, 2u);
  EXPECT_EQ(rest.sm.smCount, 2u);
  EXPECT_RESULT(CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION,
                cuDevSmResourceSplitByCount(parts, &groups, &all, &rest, 0, 7));
  EXPECT_RESULT(CUDA_ERROR_INVALID_RESOURCE_TYPE,
                cuCtxGetDevResource(context_, &all, CU_DEV_RESOURCE_TYPE_INVALID));
  CUgreenCtx green = nullptr;
  EXPECT_RESULT(CUDA_ERROR_NOT_SUPPORTED, cuGreenCtxCreate(&green, nullptr, device_, 0));
}

TEST_F(Context, OccupancyFollowsThreadsAndSharedMemory) {
  int blocks = 0;
  const CUfunction fill = Function("Fill");
  ASSERT_CUDA(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, fill, 1024, 0));
  EXPECT_EQ(blocks, 2);
  ASSERT_CUDA(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, fill, 64, 40 << 10));
  EXPECT_EQ(blocks, 4);
  int grid = 0, block = 0;
  ASSERT_CUDA(cuOccupancyMaxPotentialBlockSize(&grid, &block, fill, nullptr, 0, 0));
  EXPECT_EQ(block, 1024);
  EXPECT_GT(grid, 0);
}

}  // namespace
}  // namespace atp::sim
