// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <numeric>

#include "tests/sim/driver/driver_test_support.h"

namespace atp::sim {
namespace {

class Arrays : public DriverTest {
 protected:
  static CUDA_ARRAY3D_DESCRIPTOR Shape(size_t width, size_t height, size_t depth,
                                       unsigned flags = 0) {
    CUDA_ARRAY3D_DESCRIPTOR shape{};
    shape.Width = width;
    shape.Height = height;
    shape.Depth = depth;
    shape.Format = CU_AD_FORMAT_SIGNED_INT32;
    shape.NumChannels = 1;
    shape.Flags = flags;
    return shape;
  }
  CUarray Make(size_t width, size_t height = 0, size_t depth = 0, unsigned flags = 0) {
    CUarray array = nullptr;
    const CUDA_ARRAY3D_DESCRIPTOR shape = Shape(width, height, depth, flags);
    EXPECT_CUDA(cuArray3DCreate(&array, &shape));
    return array;
  }
  static CUDA_RESOURCE_DESC Of(CUarray array) {
    CUDA_RESOURCE_DESC resource{};
    resource.resType = CU_RESOURCE_TYPE_ARRAY;
    resource.res.array.hArray = array;
    return resource;
  }
  static std::vector<int> Count(size_t count) {
    std::vector<int> values(count);
    std::iota(values.begin(), values.end(), 1);
    return values;
  }
  // A module from PTX text.
  CUfunction Kernel(const char* text, const char* name) {
    CUmodule module = nullptr;
    CUfunction function = nullptr;
    EXPECT_CUDA(cuModuleLoadData(&module, text));
    EXPECT_CUDA(cuModuleGetFunction(&function, module, name));
    return function;
  }
};

TEST_F(Arrays, DescribeThemselvesAndTakeRoomOnTheCard) {
  size_t before = 0, after = 0, total = 0;
  ASSERT_CUDA(cuMemGetInfo(&before, &total));
  CUarray array = Make(1024, 1024);
  ASSERT_CUDA(cuMemGetInfo(&after, &total));
  EXPECT_EQ(before - after, size_t{4} << 20);
  CUDA_ARRAY3D_DESCRIPTOR cube{};
  CUDA_ARRAY_DESCRIPTOR plane{};
  ASSERT_CUDA(cuArray3DGetDescriptor(&cube, array));
  ASSERT_CUDA(cuArrayGetDescriptor(&plane, array));
  EXPECT_EQ(cube.Width, 1024u);
  EXPECT_EQ(cube.Depth, 0u);
  EXPECT_EQ(plane.Height, 1024u);
  EXPECT_EQ(plane.Format, CU_AD_FORMAT_SIGNED_INT32);
  ASSERT_CUDA(cuArrayDestroy(array));
  EXPECT_RESULT(CUDA_ERROR_INVALID_HANDLE, cuArrayDestroy(array));
  ASSERT_CUDA(cuMemGetInfo(&after, &total));
  EXPECT_EQ(before, after);
}

TEST_F(Arrays, ShapesThatDoNotExistAreInvalidAndKindsThatAreNotThereUnsupported) {
  CUarray array = nullptr;
  CUDA_ARRAY3D_DESCRIPTOR shape = Shape(0, 4, 0);
  EXPECT_RESULT(CUDA_ERROR_INVALID_VALUE, cuArray3DCreate(&array, &shape));
  shape = Shape(4, 0, 4);
  EXPECT_RESULT(CUDA_ERROR_INVALID_VALUE, cuArray3DCreate(&array, &shape));
  shape = Shape(1 << 20, 0, 0);
  EXPECT_RESULT(CUDA_ERROR_INVALID_VALUE, cuArray3DCreate(&array, &shape));
  shape = Shape(4, 4, 0);
  shape.NumChannels = 3;
  EXPECT_RESULT(CUDA_ERROR_INVALID_VALUE, cuArray3DCreate(&array, &shape));
  shape = Shape(4, 4, 6, CUDA_ARRAY3D_LAYERED);
  EXPECT_RESULT(CUDA_ERROR_NOT_SUPPORTED, cuArray3DCreate(&array, &shape));
  shape = Shape(4, 4, 0);
  shape.Format = CU_AD_FORMAT_BC1_UNORM;
  EXPECT_RESULT(CUDA_ERROR_NOT_SUPPORTED, cuArray3DCreate(&array, &shape));
}

TEST_F(Arrays, OneDimensionIsCopiedByOffsets) {
  CUarray array = Make(100);
  const std::vector<int> values = Count(100);
  std::vector<int> back(60);
  ASSERT_CUDA(cuMemcpyHtoA(array, 0, values.data(), 400));
  ASSERT_CUDA(cuMemcpyAtoH(back.data(), array, 40, 240));
  EXPECT_EQ(back.front(), 11);
  EXPECT_EQ(back.back(), 70);
  const CUdeviceptr linear = Alloc(400);
  CUarray other = Make(100);
  ASSERT_CUDA(cuMemcpyAtoD(linear, array, 4, 396));
  EXPECT_EQ(ReadInts(linear, 1)[0], 2);
  ASSERT_CUDA(cuMemcpyDtoA(other, 4, linear, 8));
  ASSERT_CUDA(cuMemcpyAtoA(other, 0, array, 396, 4));
  ASSERT_CUDA(cuMemcpyAtoH(back.data(), other, 0, 12));
  EXPECT_EQ((std::vector<int>(back.begin(), back.begin() + 3)), (std::vector<int>{100, 2, 3}));
  EXPECT_RESULT(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoA(array, 396, values.data(), 8));
  EXPECT_RESULT(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoA(Make(8, 8), 0, values.data(), 8));
}

TEST_F(Arrays, PartsOfPlanesAndCubesGoWhereTheyShould) {
  constexpr size_t kWidth = 7, kHeight = 5, kDepth = 3;
  CUarray cube = Make(kWidth, kHeight, kDepth);
  const std::vector<int> values = Count(kWidth * kHeight * kDepth);
  CUDA_MEMCPY3D copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = values.data();
  copy.srcPitch = kWidth * 4;
  copy.srcHeight = kHeight;
  copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
  copy.dstArray = cube;
  copy.WidthInBytes = kWidth * 4;
  copy.Height = kHeight;
  copy.Depth = kDepth;
  ASSERT_CUDA(cuMemcpy3D(&copy));
  // Two by two by two elements from {3, 2, 1}.
  std::vector<int> part(8);
  CUDA_MEMCPY3D back{};
  back.srcMemoryType = CU_MEMORYTYPE_ARRAY;
  back.srcArray = cube;
  back.srcXInBytes = 12;
  back.srcY = 2;
  back.srcZ = 1;
  back.dstMemoryType = CU_MEMORYTYPE_HOST;
  back.dstHost = part.data();
  back.WidthInBytes = 8;
  back.Height = back.Depth = 2;
  ASSERT_CUDA(cuMemcpy3D(&back));
  for (size_t z = 0; z < 2; ++z) {
    for (size_t y = 0; y < 2; ++y) {
      for (size_t x = 0; x < 2; ++x)
        EXPECT_EQ(part[(z * 2 + y) * 2 + x], values[((z + 1) * kHeight + y + 2) * kWidth + x + 3]);
    }
  }
  back.srcXInBytes = 24;
  EXPECT_RESULT(CUDA_ERROR_INVALID_VALUE, cuMemcpy3D(&back)) << "one element behind the row";
}

// out[i] = the element at i of a texture of one dimension, by index.
constexpr char kFetch[] =
    ".version 8.0\n.target sm_80\n.address_size 64\n"
    ".visible .entry fetch(.param .u64 object, .param .u64 out)\n{\n"
    ".reg .b64 %rd<8>; .reg .b32 %r<8>;\n"
    "ld.param.u64 %rd1, [object]; ld.param.u64 %rd2, [out]; mov.u32 %r1, %tid.x;\n"
    "tex.1d.v4.s32.s32 {%r2, %r3, %r4, %r5}, [%rd1, {%r1}];\n"
    "mul.wide.u32 %rd3, %r1, 4; add.s64 %rd4, %rd2, %rd3; st.global.u32 [%rd4], %r2;\nret;\n}\n";

TEST_F(Arrays, ATextureReadsLinearMemoryAlsoManagedAndZeroBehindIt) {
  CUfunction fetch = Kernel(kFetch, "fetch");
  for (const bool managed : {false, true}) {
    const CUdeviceptr memory = managed ? AllocManaged(4096) : Alloc(4096), out = Alloc(256);
    const std::vector<int> values = Count(64);
    ASSERT_CUDA(cuMemcpyHtoD(memory, values.data(), 256));
    CUDA_RESOURCE_DESC resource{};
    resource.resType = CU_RESOURCE_TYPE_LINEAR;
    resource.res.linear.devPtr = memory;
    resource.res.linear.format = CU_AD_FORMAT_SIGNED_INT32;
    resource.res.linear.numChannels = 1;
    resource.res.linear.sizeInBytes = 240;
    CUDA_TEXTURE_DESC how{};
    how.flags = CU_TRSF_READ_AS_INTEGER;
    CUtexObject object = 0;
    ASSERT_CUDA(cuTexObjectCreate(&object, &resource, &how, nullptr));
    CUDA_RESOURCE_DESC again{};
    ASSERT_CUDA(cuTexObjectGetResourceDesc(&again, object));
    EXPECT_EQ(again.res.linear.devPtr, memory);
    CUdeviceptr to = out;
    void* arguments[] = {&object, &to};
    ASSERT_CUDA(cuLaunchKernel(fetch, 1, 1, 1, 64, 1, 1, 0, nullptr, arguments, nullptr));
    const std::vector<int> read = ReadInts(out, 64);
    EXPECT_EQ(read[59], 60);
    EXPECT_EQ(read[60], 0) << "the texture ends before the memory";
    ASSERT_CUDA(cuTexObjectDestroy(object));
    EXPECT_RESULT(CUDA_ERROR_INVALID_VALUE, cuTexObjectDestroy(object));
    resource.res.linear.devPtr = memory + 4;
    EXPECT_RESULT(CUDA_ERROR_INVALID_VALUE, cuTexObjectCreate(&object, &resource, &how, nullptr));
  }
}

TEST_F(Arrays, AKernelThatUsesAnObjectThatIsGoneFails) {
  CUfunction fetch = Kernel(kFetch, "fetch");
  CUtexObject object = 12345;
  CUdeviceptr out = Alloc(256);
  void* arguments[] = {&object, &out};
  cuLaunchKernel(fetch, 1, 1, 1, 64, 1, 1, 0, nullptr, arguments, nullptr);
  EXPECT_RESULT(CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize());
}

TEST_F(Arrays, TexturesThatCannotBeAreRefused) {
  CUtexObject object = 0;
  CUsurfObject surface = 0;
  CUDA_TEXTURE_DESC how{};
  const CUDA_RESOURCE_DESC plain = Of(Make(8, 8)),
                           writable = Of(Make(8, 8, 0, CUDA_ARRAY3D_SURFACE_LDST));
  how.filterMode = CU_TR_FILTER_MODE_LINEAR;
  EXPECT_RESULT(CUDA_ERROR_INVALID_VALUE, cuTexObjectCreate(&object, &plain, &how, nullptr))
      << "integers are not filtered";
  how = {};
  how.flags = CU_TRSF_SRGB;
  EXPECT_RESULT(CUDA_ERROR_NOT_SUPPORTED, cuTexObjectCreate(&object, &plain, &how, nullptr));
  EXPECT_RESULT(CUDA_ERROR_INVALID_VALUE, cuSurfObjectCreate(&surface, &plain));
  EXPECT_CUDA(cuSurfObjectCreate(&surface, &writable));
  EXPECT_RESULT(CUDA_ERROR_INVALID_VALUE, cuTexObjectDestroy(surface));
  EXPECT_CUDA(cuSurfObjectDestroy(surface));
  CUDA_RESOURCE_DESC gone = writable;
  ASSERT_CUDA(cuArrayDestroy(writable.res.array.hArray));
  EXPECT_RESULT(CUDA_ERROR_INVALID_HANDLE, cuSurfObjectCreate(&surface, &gone));
}

TEST_F(Arrays, AGraphCopiesToThem) {
  CUarray array = Make(16, 2);
  const CUdeviceptr memory = Alloc(128);
  ASSERT_CUDA(cuMemsetD32(memory, 3, 32));
  CUDA_MEMCPY3D copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = memory;
  copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
  copy.dstArray = array;
  copy.WidthInBytes = 64;
  copy.Height = 2;
  copy.Depth = 1;
  CUgraph graph = nullptr;
  CUgraphNode node = nullptr;
  CUgraphExec exec = nullptr;
  ASSERT_CUDA(cuGraphCreate(&graph, 0));
  ASSERT_CUDA(cuGraphAddMemcpyNode(&node, graph, nullptr, 0, &copy, context_));
  ASSERT_CUDA(cuGraphInstantiate(&exec, graph, 0));
  ASSERT_CUDA(cuGraphLaunch(exec, nullptr));
  CUDA_MEMCPY2D back{};
  std::vector<int> values(32);
  back.srcMemoryType = CU_MEMORYTYPE_ARRAY;
  back.srcArray = array;
  back.dstMemoryType = CU_MEMORYTYPE_HOST;
  back.dstHost = values.data();
  back.WidthInBytes = 64;
  back.Height = 2;
  ASSERT_CUDA(cuMemcpy2D(&back));
  EXPECT_EQ(values, std::vector<int>(32, 3));
}

TEST(ArraysOfAContext, GoWithIt) {
  RunWith({}, [] {
    ASSERT_CUDA(cuInit(0));
    size_t before = 0, after = 0, total = 0;
    CUcontext first = nullptr, second = nullptr;
    ASSERT_CUDA(cuCtxCreate(&first, nullptr, 0, 0));
    ASSERT_CUDA(cuMemGetInfo(&before, &total));
    ASSERT_CUDA(cuCtxCreate(&second, nullptr, 0, 0));
    CUarray array = nullptr;
    CUDA_ARRAY_DESCRIPTOR shape{1024, 1024, CU_AD_FORMAT_FLOAT, 1};
    ASSERT_CUDA(cuArrayCreate(&array, &shape));
    ASSERT_CUDA(cuCtxDestroy(second));
    ASSERT_CUDA(cuCtxSetCurrent(first));
    ASSERT_CUDA(cuMemGetInfo(&after, &total));
    EXPECT_EQ(before, after);
    EXPECT_RESULT(CUDA_ERROR_INVALID_HANDLE, cuArrayDestroy(array));
  });
}

}  // namespace
}  // namespace atp::sim
