// SPDX-License-Identifier: Apache-2.0
#include <sys/mman.h>

#include <csignal>
#include <random>

#include "tests/sim/driver/driver_test_support.h"

namespace atp::sim {
namespace {

class Memory : public DriverTest {
 protected:
  size_t FreeBytes() {
    size_t free_bytes = 0, total = 0;
    EXPECT_CUDA(cuMemGetInfo(&free_bytes, &total));
    return free_bytes;
  }
};

TEST_F(Memory, SmallAllocationsShareChunksOfTheCard) {
  const size_t before = FreeBytes();
  std::vector<CUdeviceptr> pieces;
  for (int i = 0; i < 100; ++i) pieces.push_back(Alloc(1000));
  EXPECT_GE(FreeBytes() + (size_t{2} << 20), before);
  for (const CUdeviceptr piece : pieces) {
    EXPECT_EQ(piece % 256, 0u);
    EXPECT_CUDA(cuMemFree(piece));
  }
  EXPECT_EQ(FreeBytes(), before);
}

TEST_F(Memory, LargeAllocationsTakeWholeChunks) {
  const size_t before = FreeBytes();
  const CUdeviceptr a = Alloc((size_t{3} << 20) + 1);
  EXPECT_EQ(a % (size_t{2} << 20), 0u);
  EXPECT_EQ(before - FreeBytes(), size_t{4} << 20);
  EXPECT_CUDA(cuMemFree(a));
  EXPECT_EQ(FreeBytes(), before);
}

// In a process of its own: where managed memory has been, the driver keeps free chunks, which a
// real allocation may take but the number of free bytes does not count.
TEST(FullCard, IsOutOfMemory) {
  RunWith({}, [] {
    CUcontext context = nullptr;
    ASSERT_CUDA(cuInit(0));
    ASSERT_CUDA(cuCtxCreate(&context, nullptr, 0, 0));
    size_t free_bytes = 0, total = 0;
    ASSERT_CUDA(cuMemGetInfo(&free_bytes, &total));
    CUdeviceptr address = 0, most = 0;
    EXPECT_RESULT(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc(&address, free_bytes + 1));
    EXPECT_RESULT(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc(&address, SIZE_MAX - 100));
    ASSERT_CUDA(cuMemAlloc(&most, free_bytes));
    EXPECT_RESULT(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc(&address, size_t{2} << 20));
    EXPECT_CUDA(cuMemFree(most));
    EXPECT_CUDA(cuMemAlloc(&address, size_t{2} << 20));
    EXPECT_CUDA(cuCtxDestroy(context));
  });
}

TEST_F(Memory, RandomAllocationsNeverOverlapAndAllComeBack) {
  std::mt19937 random(7);
  const size_t before = FreeBytes();
  std::map<CUdeviceptr, size_t> live;
  for (int round = 0; round < 2000; ++round) {
    if (!live.empty() && random() % 2) {
      auto victim = std::next(live.begin(), random() % live.size());
      ASSERT_CUDA(cuMemFree(victim->first));
      live.erase(victim);
      continue;
    }
    const size_t bytes = random() % 8 ? random() % 5000 + 1 : random() % (3 << 20) + 1;
    CUdeviceptr address = 0;
    if (cuMemAlloc(&address, bytes) != CUDA_SUCCESS) continue;
    const auto next = live.lower_bound(address);
    const CUdeviceptr above = next == live.end() ? UINT64_MAX : next->first;
    const CUdeviceptr below =
        next == live.begin() ? 0 : std::prev(next)->first + std::prev(next)->second;
    ASSERT_LE(address + bytes, above);
    ASSERT_LE(below, address);
    live[address] = bytes;
  }
  for (const auto& [address, bytes] : live) ASSERT_CUDA(cuMemFree(address));
  EXPECT_EQ(FreeBytes(), before);
}

TEST_F(Memory, WrongFreesAreRefused) {
  const CUdeviceptr a = Alloc(4096);
  EXPECT_RESULT(CUDA_ERROR_INVALID_VALUE, cuMemFree(a + 16));
  EXPECT_CUDA(cuMemFree(a));
  EXPECT_RESULT(CUDA_ERROR_INVALID_VALUE, cuMemFree(a));
  EXPECT_CUDA(cuMemFree(0));
  EXPECT_RESULT(CUDA_ERROR_INVALID_VALUE, cuMemFreeHost(reinterpret_cast<void*>(a)));
}

TEST_F(Memory, FollowingADevicePointerOnTheHostCrashes) {
  testing::FLAGS_gtest_death_test_style = "fast";
  const CUdeviceptr a = Alloc(4096);
  EXPECT_DEATH(*reinterpret_cast<volatile char*>(a) = 1, "");
}

TEST_F(Memory, PinnedMemoryIsTheSameOnBothSides) {
  void* pinned = nullptr;
  ASSERT_CUDA(cuMemHostAlloc(&pinned, 4096, CU_MEMHOSTALLOC_WRITECOMBINED));
  CUdeviceptr address = 0;
  ASSERT_CUDA(cuMemHostGetDevicePointer(&address, pinned, 0));
  EXPECT_EQ(address, reinterpret_cast<CUdeviceptr>(pinned));
  ASSERT_CUDA(Launch("Fill", 1024, nullptr, address, 9, 1024));
  ASSERT_CUDA(cuCtxSynchronize());
  EXPECT_EQ(static_cast<int*>(pinned)[1023], 9);
  unsigned flags = 0;
  EXPECT_CUDA(cuMemHostGetFlags(&flags, pinned));
  EXPECT_TRUE(flags & CU_MEMHOSTALLOC_WRITECOMBINED);
  EXPECT_CUDA(cuMemFreeHost(pinned));
}

TEST_F(Memory, RegisteredMemoryCanBeUsedByKernelsUntilItIsUnregistered) {
  std::vector<int> host(1024);
  ASSERT_CUDA(cuMemHostRegister(host.data(), 4096, CU_MEMHOSTREGISTER_DEVICEMAP));
  EXPECT_RESULT(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, cuMemHostRegister(host.data(), 16, 0));
  ASSERT_CUDA(Launch("Fill", 1024, nullptr, host.data(), 4, 1024));
  ASSERT_CUDA(cuCtxSynchronize());
  EXPECT_EQ(host[1000], 4);
  EXPECT_CUDA(cuMemHostUnregister(host.data()));
  EXPECT_RESULT(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, cuMemHostUnregister(host.data()));
}

TEST_F(Memory, PointerAttributesTellTheTruth) {
  const CUdeviceptr device = Alloc(1000), managed = AllocManaged(1000);
  unsigned type = 0, is_managed = 9;
  CUcontext context = nullptr;
  EXPECT_CUDA(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, device));
  EXPECT_EQ(type, static_cast<unsigned>(CU_MEMORYTYPE_DEVICE));
  EXPECT_CUDA(cuPointerGetAttribute(&is_managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, device));
  EXPECT_EQ(is_managed, 0u);
  EXPECT_CUDA(cuPointerGetAttribute(&is_managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, managed + 10));
  EXPECT_EQ(is_managed, 1u);
  EXPECT_CUDA(cuPointerGetAttribute(&context, CU_POINTER_ATTRIBUTE_CONTEXT, device));
  EXPECT_EQ(context, context_);
  void* host = &host;
  EXPECT_RESULT(CUDA_ERROR_INVALID_VALUE,
                cuPointerGetAttribute(&host, CU_POINTER_ATTRIBUTE_HOST_POINTER, device));
  EXPECT_CUDA(cuPointerGetAttribute(&host, CU_POINTER_ATTRIBUTE_HOST_POINTER, managed));
  EXPECT_EQ(host, reinterpret_cast<void*>(managed));
  CUdeviceptr base = 0;
  size_t bytes = 0;
  EXPECT_CUDA(cuMemGetAddressRange(&base, &bytes, device + 999));
  EXPECT_EQ(base, device);
  EXPECT_EQ(bytes, 1000u);
  EXPECT_RESULT(CUDA_ERROR_NOT_FOUND, cuMemGetAddressRange(&base, &bytes, device + 1000));
}

TEST_F(Memory, ABatchOfAttributesSucceedsForUnknownPointers) {
  CUpointer_attribute attributes[] = {
      CU_POINTER_ATTRIBUTE_CONTEXT,        CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
      CU_POINTER_ATTRIBUTE_DEVICE_POINTER, CU_POINTER_ATTRIBUTE_HOST_POINTER,
      CU_POINTER_ATTRIBUTE_IS_MANAGED,     CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
  CUcontext context = context_;
  unsigned type = 9, managed = 9;
  CUdeviceptr device = 9;
  void* host = &host;
  int ordinal = 9, local = 0;
  void* data[] = {&context, &type, &device, &host, &managed, &ordinal};
  EXPECT_CUDA(cuPointerGetAttributes(6, attributes, data, reinterpret_cast<CUdeviceptr>(&local)));
  EXPECT_EQ(context, nullptr);
  EXPECT_EQ(type, 0u);
  EXPECT_EQ(device, 0u);
  EXPECT_EQ(host, nullptr);
  EXPECT_EQ(managed, 0u);
  EXPECT_EQ(ordinal, -2);
}

TEST_F(Memory, DestroyingAContextReturnsItsMemory) {
  const size_t before = FreeBytes();
  CUcontext other = nullptr;
  ASSERT_CUDA(cuCtxCreate(&other, nullptr, 0, device_));
  Alloc(size_t{8} << 20);
  EXPECT_LT(FreeBytes(), before);
  EXPECT_CUDA(cuCtxDestroy(other));
  EXPECT_EQ(FreeBytes(), before);
}

}  // namespace
}  // namespace atp::sim
