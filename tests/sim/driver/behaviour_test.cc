// SPDX-License-Identifier: Apache-2.0
// The behaviour of unified memory that is the driver's and not the machine's: what it refuses.
// Numbers 1 to 11 are tested in tests/sim/machine/behaviours_test.cc.
#include "tests/sim/driver/driver_test_support.h"

namespace atp::sim {
namespace {

constexpr size_t kBytes = 2 << 20;
constexpr CUmemLocation kDevice{CU_MEM_LOCATION_TYPE_DEVICE, 0};

CUdeviceptr ManagedMemory() {
  CUcontext context = nullptr;
  CUdeviceptr memory = 0;
  EXPECT_CUDA(cuInit(0));
  EXPECT_CUDA(cuCtxCreate(&context, nullptr, 0, 0));
  EXPECT_CUDA(cuMemAllocManaged(&memory, kBytes, CU_MEM_ATTACH_GLOBAL));
  return memory;
}

TEST(Behaviour, Nr12_HintsAreNotCapturedAndManagedMemoryIsNeitherSharedNorWaitedFor) {
  RunWith({}, [] {
    const CUdeviceptr memory = ManagedMemory();
    CUstream stream = nullptr;
    ASSERT_CUDA(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    for (const CUstreamCaptureMode mode :
         {CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
          CU_STREAM_CAPTURE_MODE_RELAXED}) {
      CUgraph graph = nullptr;
      ASSERT_CUDA(cuStreamBeginCapture(stream, mode));
      EXPECT_RESULT(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                    cuMemPrefetchAsync(memory, kBytes, kDevice, 0, stream));
      EXPECT_RESULT(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(stream, &graph));
    }
    CUipcMemHandle handle;
    EXPECT_RESULT(CUDA_ERROR_INVALID_VALUE, cuIpcGetMemHandle(&handle, memory));
    EXPECT_RESULT(CUDA_ERROR_INVALID_VALUE,
                  cuStreamWaitValue32(stream, memory, 1, CU_STREAM_WAIT_VALUE_EQ));
    EXPECT_RESULT(CUDA_ERROR_INVALID_VALUE, cuStreamWriteValue32(stream, memory, 1, 0));
  });
}

TEST(Behaviour, Nr12_WithoutPageFaultsThereAreNoHintsAndNothingBeyondTheCard) {
  RunWith({{"ATP_SIM_CMA", "0"}, {"ATP_SIM_GPU", "tiny"}}, [] {
    CUdeviceptr memory = ManagedMemory();
    EXPECT_RESULT(CUDA_ERROR_INVALID_DEVICE,
                  cuMemPrefetchAsync(memory, kBytes, kDevice, 0, nullptr));
    EXPECT_RESULT(CUDA_ERROR_INVALID_DEVICE,
                  cuMemAdvise(memory, kBytes, CU_MEM_ADVISE_SET_ACCESSED_BY, kDevice));
    EXPECT_RESULT(CUDA_ERROR_OUT_OF_MEMORY,
                  cuMemAllocManaged(&memory, size_t{300} << 20, CU_MEM_ATTACH_GLOBAL));
  });
}

}  // namespace
}  // namespace atp::sim
