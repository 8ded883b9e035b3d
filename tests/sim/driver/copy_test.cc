// SPDX-License-Identifier: Apache-2.0
#include <numeric>

#include "tests/sim/driver/driver_test_support.h"

namespace atp::sim {
namespace {

class Copy : public DriverTest {
 protected:
  // Places of one KiB of each kind.
  void* Pinned() {
    void* pinned = nullptr;
    EXPECT_CUDA(cuMemAllocHost(&pinned, 1024));
    return pinned;
  }
  static std::vector<int> Counting(int first = 0) {
    std::vector<int> values(256);
    std::iota(values.begin(), values.end(), first);
    return values;
  }
};

TEST_F(Copy, EveryPairOfPlacesKeepsTheBytes) {
  std::vector<int> pageable = Counting(), back(256);
  const std::vector<CUdeviceptr> places = {Alloc(1024), AllocManaged(1024),
                                           reinterpret_cast<CUdeviceptr>(Pinned()),
                                           Alloc(size_t{2} << 20)};
  for (const CUdeviceptr first : places) {
    for (const CUdeviceptr second : places) {
      if (first == second) continue;
      ASSERT_CUDA(cuMemcpyHtoD(first, pageable.data(), 1024));
      ASSERT_CUDA(cuMemsetD8(second, 0, 1024));
      ASSERT_CUDA(cuMemcpyDtoD(second, first, 1024));
      ASSERT_CUDA(cuMemcpyDtoH(back.data(), second, 1024));
      ASSERT_EQ(back, pageable);
      ASSERT_CUDA(cuMemcpy(first, second, 512));
    }
  }
  ASSERT_CUDA(cuMemcpy(reinterpret_cast<CUdeviceptr>(back.data()),
                       reinterpret_cast<CUdeviceptr>(pageable.data()), 8));
}

TEST_F(Copy, RangesBeyondAnAllocationAreRefused) {
  const CUdeviceptr a = Alloc(1024), b = Alloc(1024);
  std::vector<int> host(512);
  EXPECT_RESULT(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD(a, host.data(), 1025));
  EXPECT_RESULT(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH(host.data(), a + 1, 1024));
  EXPECT_RESULT(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoD(a, b, 1025));
  EXPECT_RESULT(CUDA_ERROR_INVALID_VALUE, cuMemsetD8(a, 0, 1025));
  EXPECT_RESULT(CUDA_ERROR_INVALID_VALUE, cuMemsetD32(a + 2, 0, 1));
  EXPECT_RESULT(CUDA_ERROR_INVALID_VALUE,
                cuMemcpyHtoD(reinterpret_cast<CUdeviceptr>(host.data()), host.data(), 4));
  EXPECT_CUDA(cuMemcpyHtoD(a, host.data(), 0));
}

TEST_F(Copy, SetsWriteEveryWidth) {
  const CUdeviceptr a = Alloc(1024);
  ASSERT_CUDA(cuMemsetD32(a, 0x01020304, 256));
  EXPECT_EQ(ReadInts(a, 256), std::vector<int>(256, 0x01020304));
  ASSERT_CUDA(cuMemsetD16(a, 0x0506, 512));
  EXPECT_EQ(ReadInts(a, 256), std::vector<int>(256, 0x05060506));
  ASSERT_CUDA(cuMemsetD8Async(a, 7, 1024, nullptr));
  EXPECT_EQ(ReadInts(a, 256), std::vector<int>(256, 0x07070707));
  ASSERT_CUDA(cuMemsetD2D32(a, 64, 1, 4, 3));
  const std::vector<int> values = ReadInts(a, 64);
  for (int i = 0; i < 64; ++i) EXPECT_EQ(values[i], i % 16 < 4 && i < 48 ? 1 : 0x07070707) << i;
}

TEST_F(Copy, TwoDimensionsFollowThePitches) {
  CUdeviceptr a = 0;
  size_t pitch = 0;
  ASSERT_CUDA(cuMemAllocPitch(&a, &pitch, 40, 8, 4));
  EXPECT_EQ(pitch % 512, 0u);
  std::vector<int> source(10 * 8), back(4 * 3);
  std::iota(source.begin(), source.end(), 0);
  CUDA_MEMCPY2D copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = source.data();
  copy.srcPitch = 40;
  copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.dstDevice = a;
  copy.dstPitch = pitch;
  copy.WidthInBytes = 40;
  copy.Height = 8;
  ASSERT_CUDA(cuMemcpy2D(&copy));
  CUDA_MEMCPY2D part{};
  part.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  part.srcDevice = a;
  part.srcPitch = pitch;
  part.srcXInBytes = 8;
  part.srcY = 2;
  part.dstMemoryType = CU_MEMORYTYPE_HOST;
  part.dstHost = back.data();
  part.WidthInBytes = 16;
  part.Height = 3;
  ASSERT_CUDA(cuMemcpy2DUnaligned(&part));
  for (int y = 0; y < 3; ++y) {
    for (int x = 0; x < 4; ++x) EXPECT_EQ(back[y * 4 + x], (y + 2) * 10 + x + 2);
  }
}

TEST_F(Copy, ThreeDimensionsFollowTheSlices) {
  const CUdeviceptr a = Alloc(4 * 4 * 4 * 4);
  std::vector<int> source(64), back(64);
  std::iota(source.begin(), source.end(), 0);
  CUDA_MEMCPY3D copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = source.data();
  copy.srcPitch = 16;
  copy.srcHeight = 4;
  copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.dstDevice = a;
  copy.dstPitch = 16;
  copy.dstHeight = 4;
  copy.WidthInBytes = 8;
  copy.Height = 2;
  copy.Depth = 3;
  ASSERT_CUDA(cuMemsetD32(a, 99, 64));
  ASSERT_CUDA(cuMemcpy3D(&copy));
  back = ReadInts(a, 64);
  for (int i = 0; i < 64; ++i) {
    const bool inside = i % 4 < 2 && i / 4 % 4 < 2 && i / 16 < 3;
    EXPECT_EQ(back[i], inside ? i : 99) << i;
  }
}

TEST_F(Copy, AsynchronousCopiesTakeTimeInTheirStreamOnly) {
  CUstream stream = nullptr;
  ASSERT_CUDA(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  void* pinned = nullptr;
  constexpr size_t kBytes = size_t{32} << 20;
  ASSERT_CUDA(cuMemAllocHost(&pinned, kBytes));
  const CUdeviceptr a = Alloc(kBytes);
  ASSERT_CUDA(cuMemcpyHtoDAsync(a, pinned, kBytes, stream));
  EXPECT_RESULT(CUDA_ERROR_NOT_READY, cuStreamQuery(stream));
  EXPECT_CUDA(cuStreamQuery(nullptr));
  ASSERT_CUDA(cuStreamSynchronize(stream));
  EXPECT_CUDA(cuStreamQuery(stream));
}

TEST(PeerCopy, PeersExchangeWithoutPeerAccessButKernelsNeedIt) {
  RunWith({{"ATP_SIM_DEVICES", "2"}}, [] {
    ASSERT_CUDA(cuInit(0));
    CUcontext first = nullptr, second = nullptr;
    ASSERT_CUDA(cuCtxCreate(&first, nullptr, 0, 0));
    CUdeviceptr a = 0, b = 0;
    ASSERT_CUDA(cuMemAlloc(&a, 1024));
    ASSERT_CUDA(cuMemsetD32(a, 5, 256));
    ASSERT_CUDA(cuCtxCreate(&second, nullptr, 0, 1));
    ASSERT_CUDA(cuMemAlloc(&b, 1024));
    ASSERT_CUDA(cuMemcpyPeer(b, second, a, first, 1024));
    std::vector<int> back(256);
    ASSERT_CUDA(cuMemcpyDtoH(back.data(), b, 1024));
    EXPECT_EQ(back, std::vector<int>(256, 5));
    CUmodule module = nullptr;
    CUfunction fill = nullptr;
    ASSERT_CUDA(cuModuleLoad(&module, ATP_TEST_PTX));
    ASSERT_CUDA(cuModuleGetFunction(&fill, module, "Fill"));
    int value = 6, n = 256;
    void* arguments[] = {&a, &value, &n};
    ASSERT_CUDA(cuCtxEnablePeerAccess(first, 0));
    EXPECT_RESULT(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, cuCtxEnablePeerAccess(first, 0));
    ASSERT_CUDA(cuLaunchKernel(fill, 2, 1, 1, 128, 1, 1, 0, nullptr, arguments, nullptr));
    ASSERT_CUDA(cuCtxSynchronize());
    ASSERT_CUDA(cuCtxDisablePeerAccess(first));
    ASSERT_CUDA(cuLaunchKernel(fill, 2, 1, 1, 128, 1, 1, 0, nullptr, arguments, nullptr));
    EXPECT_RESULT(CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize());
  });
}

}  // namespace
}  // namespace atp::sim
