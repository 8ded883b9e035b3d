// SPDX-License-Identifier: Apache-2.0
#include "shim/tensor_maps.h"

#include <gtest/gtest.h>
#include <string.h>

#include <atomic>
#include <thread>

#include "shim/on_launch.h"
#include "shim/on_tensor_map.h"
#include "tests/shim/fake_real.h"

namespace atp::shim {
namespace {

constexpr uint64_t kBase = 0x310000000000;

CUtensorMap Map(unsigned char seed) {
  CUtensorMap map;
  memset(&map, seed, sizeof map);
  return map;
}

TEST(TensorBytes, RunFromTheFirstToTheLastByte) {
  const cuuint64_t dimensions[] = {100, 10, 3}, strides[] = {512, 8192};
  EXPECT_EQ(TensorBytes(CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 3, dimensions, strides),
            200u + 9 * 512 + 2 * 8192);
  EXPECT_EQ(TensorBytes(CU_TENSOR_MAP_DATA_TYPE_FLOAT64, 1, dimensions, nullptr), 800u);
  EXPECT_EQ(TensorBytes(CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B, 1, dimensions, nullptr), 50u);
  EXPECT_EQ(TensorBytes(CU_TENSOR_MAP_DATA_TYPE_UINT8, 0, dimensions, strides), 0u);
}

TEST(TensorMaps, AreKnownAgainByTheirContent) {
  const CUtensorMap map = Map(1), copy = map, other = Map(2);
  NoteTensorMap(map, {kBase, 4096});
  TensorExtent extent;
  ASSERT_TRUE(FindTensorMap(&copy, &extent));
  EXPECT_EQ(extent.address, kBase);
  EXPECT_EQ(extent.bytes, 4096u);
  EXPECT_FALSE(FindTensorMap(&other, &extent));
  NoteTensorMap(map, {kBase + 64, 100});
  ASSERT_TRUE(FindTensorMap(&copy, &extent));
  EXPECT_EQ(extent.address, kBase + 64);
}

TEST(TensorMaps, AnyNumberOfThemMayBeMade) {
  CUtensorMap map = Map(3);
  for (uint64_t i = 0; i < 20000; ++i) {
    map.opaque[0] = i;
    NoteTensorMap(map, {kBase, i + 1});
  }
  TensorExtent extent;
  ASSERT_TRUE(FindTensorMap(&map, &extent));
  EXPECT_EQ(extent.bytes, 20000u);
}

// Launches read while another thread makes maps that take the same places.
TEST(TensorMaps, WhatIsFoundIsNeverHalfOfAnother) {
  std::atomic<bool> over{false};
  std::thread maker([&] {
    CUtensorMap map = Map(4);
    for (uint64_t i = 0; i < 50000; ++i) {
      map.opaque[0] = i % 64;
      NoteTensorMap(map, {kBase + (i % 64) * 4096, i % 64 + 1});
      if (i % 8 == 0) {  // pushes others out
        CUtensorMap other = map;
        other.opaque[1] = i;
        NoteTensorMap(other, {kBase, 9999});
      }
    }
    over = true;
  });
  uint64_t found = 0;
  CUtensorMap map = Map(4);
  for (uint64_t i = 0; !over || found == 0; ++i) {
    map.opaque[0] = i % 64;
    TensorExtent extent;
    if (!FindTensorMap(&map, &extent)) continue;
    ++found;
    ASSERT_EQ(extent.address, kBase + (i % 64) * 4096);
    ASSERT_EQ(extent.bytes, i % 64 + 1);
  }
  maker.join();
}

// A driver whose maps hold nothing that looks like an address, and a kernel (scalar, map).
class TensorMapLaunch : public testing::Test {
 protected:
  TensorMapLaunch() {
    FakeReal::Install();
    ForgetFunctions();
    g_real.cuFuncGetParamInfo = [](CUfunction, size_t index, size_t* offset, size_t* bytes) {
      if (index > 1) return CUDA_ERROR_INVALID_VALUE;
      *offset = index == 0 ? 0 : 64;
      *bytes = index == 0 ? 8 : sizeof(CUtensorMap);
      return CUDA_SUCCESS;
    };
    g_real.cuTensorMapReplaceAddress = [](CUtensorMap* map, void*) {
      ++map->opaque[3];
      return CUDA_SUCCESS;
    };
    record_ = g_tracker.Insert(kBase, 3 << 20, 2 * kGranule, nullptr, 0);
  }
  ~TensorMapLaunch() override { g_tracker.Remove(record_); }

  static std::vector<Touch> Touches(CUtensorMap* map) {
    uint64_t scalar = 5;
    void* parameters[] = {&scalar, map};
    const auto function = reinterpret_cast<CUfunction>(0x7700);
    Observation observation(1, nullptr, nullptr, false);
    ObserveParameters(&observation, FunctionOf(function), LaunchShape{}, parameters, nullptr);
    return {observation.touches().begin(), observation.touches().end()};
  }
  Record* record_;
};

TEST_F(TensorMapLaunch, TouchesTheTensorOfAMapAmongTheArguments) {
  CUtensorMap map = Map(9), unknown = Map(10);
  NoteTensorMap(map, {kBase + 256, 9000});
  const std::vector<Touch> touches = Touches(&map);
  ASSERT_EQ(touches.size(), 1u);
  EXPECT_EQ(touches[0].offset, 256u);
  EXPECT_EQ(touches[0].bytes, 9000u);
  EXPECT_TRUE(Touches(&unknown).empty());
}

TEST_F(TensorMapLaunch, FollowsAMapWhoseAddressIsReplaced) {
  CUtensorMap map = Map(11);
  NoteTensorMap(map, {kBase, 700});
  void* other = reinterpret_cast<void*>(kBase + 4096);
  ASSERT_EQ(OnTensorMapReplaceAddress<HookId::cuTensorMapReplaceAddress>(&map, other),
            CUDA_SUCCESS);
  const std::vector<Touch> touches = Touches(&map);
  ASSERT_EQ(touches.size(), 1u);
  EXPECT_EQ(touches[0].offset, 4096u);
  EXPECT_EQ(touches[0].bytes, 700u);
}

}  // namespace
}  // namespace atp::shim
