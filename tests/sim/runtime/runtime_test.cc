// SPDX-License-Identifier: Apache-2.0
// The stand-in runtime against a driver that remembers who called what (fake_driver.cc). The
// expected driver calls are those that NVIDIA's CUDA 13.0 runtime makes, observed at the driver
// interface.
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include "tests/sim/runtime/fake_driver.h"

extern "C" {
void** __cudaRegisterFatBinary(void* wrapper);
void __cudaRegisterFatBinaryEnd(void** handle);
void __cudaUnregisterFatBinary(void** handle);
void __cudaRegisterFunction(void** handle, const char* host, char* device, const char* name, int,
                            uint3*, uint3*, dim3*, dim3*, int*);
void __cudaRegisterVar(void** handle, char* host, char* device, const char* name, int, size_t bytes,
                       int, int);
void __cudaRegisterManagedVar(void** handle, void** shadow, char* device, const char* name, int,
                              size_t bytes, int, int);
char __cudaInitModule(void** handle);
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* function);
cudaError_t __cudaLaunchKernel(cudaKernel_t, dim3, dim3, void**, size_t, cudaStream_t);
cudaError_t __cudaLaunchKernel_ptsz(cudaKernel_t, dim3, dim3, void**, size_t, cudaStream_t);
unsigned __cudaPushCallConfiguration(dim3, dim3, size_t, struct CUstream_st*);
cudaError_t __cudaPopCallConfiguration(dim3*, dim3*, size_t*, void*);
cudaError_t cudaMemcpy_ptds(void*, const void*, size_t, cudaMemcpyKind);
cudaError_t cudaMemcpyAsync_ptsz(void*, const void*, size_t, cudaMemcpyKind, cudaStream_t);
}

namespace {

template <typename F>
F FromDriver(const char* name) {
  static void* library = dlopen("libcuda.so.1", RTLD_NOW);
  EXPECT_NE(library, nullptr) << dlerror();
  return reinterpret_cast<F>(dlsym(library, name));
}

std::string Calls() { return FromDriver<decltype(&FakeCalls)>("FakeCalls")(); }
void Forget() { FromDriver<decltype(&FakeForget)>("FakeForget")(); }
void FailNext(const char* symbol, int result) {
  FromDriver<decltype(&FakeFailNext)>("FakeFailNext")(symbol, result);
}

// Driver calls that `body` leads to, once the thread is bound to a context.
std::string CallsOf(const std::function<void()>& body) {
  cudaFree(nullptr);
  Forget();
  body();
  return Calls();
}

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

char function_a, function_missing, variable;
void* shadow = nullptr;

// A fat binary as nvcc's code registers it; the driver alone looks into the wrapper.
void** RegisterProgram() {
  static int wrapper;
  void** handle = __cudaRegisterFatBinary(&wrapper);
  __cudaRegisterFunction(handle, &function_a, nullptr, "_Z1av", -1, nullptr, nullptr, nullptr,
                         nullptr, nullptr);
  __cudaRegisterFunction(handle, &function_missing, nullptr, "missing", -1, nullptr, nullptr,
                         nullptr, nullptr, nullptr);
  __cudaRegisterVar(handle, &variable, nullptr, "v", 0, 16, 0, 0);
  __cudaRegisterManagedVar(handle, &shadow, nullptr, "m", 0, 4, 0, 0);
  __cudaRegisterFatBinaryEnd(handle);
  return handle;
}

TEST(Lookups, AreTheOnesOfTheRealRuntimeInItsOrder) {
  cudaFree(nullptr);
  const auto lines = Lines(FromDriver<decltype(&FakeLookups)>("FakeLookups")());
  ASSERT_EQ(lines.size(), 440u);  // the empty name, then 439
  EXPECT_EQ(lines[0], "dlsym  0 0");
  EXPECT_EQ(lines[1], "dlsym cuInit 2000 0");
  EXPECT_EQ(lines[2], "dlsym cuGetProcAddress 11030 0");
  EXPECT_EQ(lines[3], "dlsym cuGetProcAddress 12000 0");
  EXPECT_EQ(lines[4], "12000 cuDeviceGet 2000 0");
  for (size_t i = 4; i < lines.size(); ++i) EXPECT_EQ(lines[i].rfind("12000 ", 0), 0u) << lines[i];
  EXPECT_NE(std::find(lines.begin(), lines.end(), "12000 cuMemcpyHtoD 7000 2"), lines.end());
  EXPECT_NE(std::find(lines.begin(), lines.end(), "12000 cuDeviceGetUuid 9020 0"), lines.end());
}

TEST(Startup, AsksForTheDriverThenTheDevicesThenBindsThePrimaryContext) {
  ASSERT_EQ(cudaFree(nullptr), cudaSuccess);
  std::string calls = Calls();
  EXPECT_EQ(calls.rfind("DriverGetVersion Init ModuleGetLoadingMode DeviceGetCount DeviceGet "
                        "DeviceGetName DeviceTotalMem DeviceGetAttribute",
                        0),
            0u)
      << calls;
  EXPECT_NE(calls.find("DeviceGetUuid CtxGetCurrent DevicePrimaryCtxRetain CtxSetCurrent"),
            std::string::npos)
      << calls;
}

TEST(Startup, SettingADeviceCreatesItsContext) {
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  EXPECT_NE(Calls().find("DevicePrimaryCtxRetain CtxSetCurrent"), std::string::npos);
  EXPECT_EQ(cudaSetDevice(1), cudaErrorInvalidDevice);
}

TEST(Startup, RegistrationBeforeMainDoesNotTouchTheDriver) {
  RegisterProgram();
  EXPECT_EQ(Calls(), "");
}

TEST(Exit, UnloadsTheProgramsCodeThenReleasesTheContext) {
  EXPECT_EXIT(
      {
        void** handle = RegisterProgram();
        cudaKernel_t kernel;
        __cudaGetKernel(&kernel, &function_a);
        setenv("FAKE_DRIVER_ECHO", "1", 1);
        __cudaUnregisterFatBinary(handle);
        exit(0);
      },
      testing::ExitedWithCode(0), "LibraryUnload\nDevicePrimaryCtxRelease\n");
}

struct Expectation {
  const char* call;
  std::function<void()> body;
  const char* driver_calls;
};

// Arrays and textures; every array of the fake driver is 8 by 4 floats.
TEST(Forwarding, ArraysAreMadeInThreeDimensionsAndCopiedInRows) {
  cudaArray_t array = nullptr;
  const auto some = reinterpret_cast<cudaArray_t>(&function_a);
  const cudaChannelFormatDesc element = {32, 0, 0, 0, cudaChannelFormatKindFloat};
  float values[32];
  cudaResourceDesc resource = {};
  resource.res.array.array = some;
  cudaTextureDesc how = {};
  cudaTextureObject_t object = 0;
  const auto copy = [&](size_t x, size_t y, size_t bytes) {
    return CallsOf([&] {
      EXPECT_EQ(cudaMemcpyToArray(some, x, y, values, bytes, cudaMemcpyHostToDevice), cudaSuccess);
    });
  };
  const std::string asked = "Array3DGetDescriptor Array3DGetDescriptor";
  EXPECT_EQ(CallsOf([&] { cudaMallocArray(&array, &element, 8, 4); }), "Array3DCreate");
  EXPECT_EQ(CallsOf([&] { cudaFreeArray(some); }), "ArrayDestroy");
  EXPECT_EQ(CallsOf([&] { cudaCreateTextureObject(&object, &resource, &how, nullptr); }),
            "Array3DGetDescriptor TexObjectCreate");
  EXPECT_EQ(
      CallsOf([&] { cudaMemcpy2DToArray(some, 0, 0, values, 32, 32, 4, cudaMemcpyHostToDevice); }),
      "Memcpy2DUnaligned");
  EXPECT_EQ(copy(0, 0, 128), asked + " Memcpy2DUnaligned") << "whole rows";
  EXPECT_EQ(copy(8, 0, 24), asked + " Memcpy2DUnaligned") << "the rest of a row";
  EXPECT_EQ(copy(8, 0, 100), asked + " Memcpy2DUnaligned Memcpy2DUnaligned Memcpy2DUnaligned")
      << "a piece, whole rows, a piece";
  EXPECT_EQ(cudaMemcpyToArray(some, 32, 0, values, 4, cudaMemcpyHostToDevice),
            cudaErrorInvalidValue);
}

TEST(Forwarding, WhatTexturesCannotDoIsRefusedBeforeTheDriver) {
  cudaResourceDesc resource = {};
  resource.res.array.array = reinterpret_cast<cudaArray_t>(&function_a);
  cudaTextureDesc how = {};
  cudaTextureObject_t object = 0;
  how.readMode = cudaReadModeNormalizedFloat;
  EXPECT_EQ(cudaCreateTextureObject(&object, &resource, &how, nullptr), cudaErrorInvalidNormSetting)
      << "floats have no range";
  resource.resType = cudaResourceTypeLinear;
  resource.res.linear.desc = {32, 0, 0, 0, cudaChannelFormatKindSigned};
  how = {};
  how.filterMode = cudaFilterModeLinear;
  EXPECT_EQ(cudaCreateTextureObject(&object, &resource, &how, nullptr),
            cudaErrorInvalidFilterSetting);
  resource.res.linear.desc = {32, 32, 32, 0, cudaChannelFormatKindFloat};
  EXPECT_EQ(cudaCreateTextureObject(&object, &resource, &how, nullptr),
            cudaErrorInvalidChannelDescriptor);
}

TEST(Forwarding, EachRuntimeCallTurnsIntoTheDriverCallsOfTheRealRuntime) {
  char a[8], b[8];
  void* p = nullptr;
  size_t pitch = 0;
  cudaEvent_t event = nullptr;
  cudaStream_t stream = nullptr;
  float ms = 0;
  const cudaMemLocation device = {cudaMemLocationTypeDevice, 0};
  const cudaMemcpy3DParms box = {nullptr, {},           {a, 8, 8, 1}, nullptr,
                                 {},      {b, 8, 8, 1}, {8, 1, 1},    cudaMemcpyDeviceToDevice};
  const Expectation kTable[] = {
      {"cudaMalloc", [&] { cudaMalloc(&p, 8); }, "MemAlloc"},
      {"cudaMallocPitch", [&] { cudaMallocPitch(&p, &pitch, 100, 2); }, "MemAlloc"},
      {"cudaMallocManaged", [&] { cudaMallocManaged(&p, 8); }, "MemAllocManaged"},
      {"cudaMallocHost", [&] { cudaMallocHost(&p, 8); }, "MemHostAlloc"},
      {"cudaMallocAsync", [&] { cudaMallocAsync(&p, 8, stream); }, "MemAllocAsync"},
      {"cudaFreeAsync", [&] { cudaFreeAsync(a, stream); }, "MemFreeAsync"},
      {"cudaFree", [&] { cudaFree(a); }, "MemFree"},
      {"cudaFree(0)", [&] { cudaFree(nullptr); }, ""},
      {"HtoD", [&] { cudaMemcpy(a, b, 8, cudaMemcpyHostToDevice); }, "MemcpyHtoD"},
      {"DtoH", [&] { cudaMemcpy(a, b, 8, cudaMemcpyDeviceToHost); }, "MemcpyDtoH"},
      {"DtoD", [&] { cudaMemcpy(a, b, 8, cudaMemcpyDeviceToDevice); }, "MemcpyDtoD"},
      {"Default", [&] { cudaMemcpy(a, b, 8, cudaMemcpyDefault); }, "Memcpy"},
      {"HtoH", [&] { cudaMemcpy(a, b, 8, cudaMemcpyHostToHost); }, "Memcpy2DUnaligned"},
      {"async", [&] { cudaMemcpyAsync(a, b, 8, cudaMemcpyDefault, stream); }, "MemcpyAsync"},
      {"nothing to copy", [&] { cudaMemcpy(a, b, 0, cudaMemcpyDefault); }, ""},
      {"2D", [&] { cudaMemcpy2D(a, 8, b, 8, 4, 1, cudaMemcpyDefault); }, "Memcpy2DUnaligned"},
      {"3D", [&] { cudaMemcpy3D(&box); }, "Memcpy3D"},
      {"peer", [&] { cudaMemcpyPeer(a, 0, b, 0, 8); }, "MemcpyPeer"},
      {"cudaMemset", [&] { cudaMemset(a, 1, 8); }, "MemsetD8"},
      {"cudaMemset2D", [&] { cudaMemset2D(a, 8, 1, 8, 1); }, "MemsetD2D8"},
      {"prefetch", [&] { cudaMemPrefetchAsync(a, 8, device, 0, stream); }, "MemPrefetchAsync"},
      {"cudaStreamCreate", [&] { cudaStreamCreate(&stream); }, "StreamCreate"},
      {"priority", [&] { cudaStreamCreateWithPriority(&stream, 1, -1); },
       "StreamCreateWithPriority"},
      {"cudaDeviceSynchronize", [&] { cudaDeviceSynchronize(); }, "CtxGetCurrent CtxSynchronize"},
      {"cudaEventCreate", [&] { cudaEventCreate(&event); }, "EventCreate"},
      {"cudaEventRecord", [&] { cudaEventRecord(event, stream); }, "EventRecord"},
      {"elapsed", [&] { cudaEventElapsedTime(&ms, event, event); }, "EventElapsedTime"},
      {"wait", [&] { cudaStreamWaitEvent(stream, event, 0); }, "StreamWaitEvent"},
      {"per thread", [&] { cudaMemcpy_ptds(a, b, 8, cudaMemcpyHostToDevice); }, "MemcpyHtoD_ptsz"},
      {"per thread async", [&] { cudaMemcpyAsync_ptsz(a, b, 8, cudaMemcpyHostToDevice, stream); },
       "MemcpyHtoDAsync_ptsz"},
  };
  for (const Expectation& e : kTable) EXPECT_EQ(CallsOf(e.body), e.driver_calls) << e.call;
}

TEST(Kernels, CodeIsLoadedAtTheFirstLaunchAndTheHandleGoesToTheDriver) {
  RegisterProgram();
  cudaKernel_t kernel = nullptr;
  EXPECT_EQ(CallsOf([&] { __cudaGetKernel(&kernel, &function_a); }),
            "LibraryLoadData LibraryGetManaged LibraryGetKernel");
  ASSERT_NE(kernel, nullptr);
  EXPECT_EQ(CallsOf([&] { __cudaLaunchKernel(kernel, 1, 1, nullptr, 0, nullptr); }),
            "LaunchKernel");
  EXPECT_EQ(CallsOf([&] { __cudaLaunchKernel_ptsz(kernel, 1, 1, nullptr, 0, nullptr); }),
            "LaunchKernel_ptsz");
  EXPECT_EQ(CallsOf([&] { cudaLaunchKernel(&function_a, 1, 1, nullptr, 0, nullptr); }),
            "LaunchKernel");
  EXPECT_EQ(CallsOf([&] { cudaLaunchCooperativeKernel(&function_a, 1, 1, nullptr, 0, nullptr); }),
            "LaunchCooperativeKernel");
  const void* as_function = reinterpret_cast<const void*>(kernel);
  EXPECT_EQ(cudaLaunchKernel(as_function, 1, 1, nullptr, 0, nullptr), cudaSuccess);
}

TEST(Kernels, ALaunchWhoseCodeCouldNotBeLoadedReportsTheReason) {
  RegisterProgram();
  cudaFree(nullptr);
  FailNext("LibraryLoadData", CUDA_ERROR_NO_BINARY_FOR_GPU);
  cudaKernel_t kernel = nullptr;
  EXPECT_EQ(__cudaGetKernel(&kernel, &function_a), cudaErrorNoKernelImageForDevice);
  EXPECT_EQ(kernel, nullptr);
  EXPECT_EQ(__cudaLaunchKernel(kernel, 1, 1, nullptr, 0, nullptr), cudaErrorNoKernelImageForDevice);
  EXPECT_EQ(cudaGetLastError(), cudaErrorNoKernelImageForDevice);
}

TEST(Kernels, UnknownFunctionsAreInvalid) {
  RegisterProgram();
  char stranger = 0;
  EXPECT_EQ(cudaLaunchKernel(&stranger, 1, 1, nullptr, 0, nullptr), cudaErrorInvalidDeviceFunction);
  EXPECT_EQ(cudaLaunchKernel(&function_missing, 1, 1, nullptr, 0, nullptr),
            cudaErrorInvalidDeviceFunction);
}

TEST(Kernels, AShapeThatTheDriverRefusesIsAnInvalidConfiguration) {
  RegisterProgram();
  cudaFree(nullptr);  // the fake device answers each attribute by its number: 1 thread per block
  FailNext("LaunchKernel", CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cudaLaunchKernel(&function_a, 1, 4096, nullptr, 0, nullptr),
            cudaErrorInvalidConfiguration);
  FailNext("LaunchKernel", CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cudaLaunchKernel(&function_a, 1, 1, nullptr, 0, nullptr), cudaErrorInvalidValue);
}

TEST(Kernels, CallConfigurationIsAStack) {
  __cudaPushCallConfiguration(dim3(2, 3, 4), dim3(5), 6, reinterpret_cast<cudaStream_t>(7));
  __cudaPushCallConfiguration(dim3(9), dim3(9), 9, nullptr);
  dim3 grid, block;
  size_t shared = 0;
  cudaStream_t stream = nullptr;
  EXPECT_EQ(__cudaPopCallConfiguration(&grid, &block, &shared, &stream), cudaSuccess);
  EXPECT_EQ(__cudaPopCallConfiguration(&grid, &block, &shared, &stream), cudaSuccess);
  EXPECT_EQ(grid.z, 4u);
  EXPECT_EQ(block.x, 5u);
  EXPECT_EQ(shared, 6u);
  EXPECT_EQ(stream, reinterpret_cast<cudaStream_t>(7));
  EXPECT_EQ(__cudaPopCallConfiguration(&grid, &block, &shared, &stream),
            cudaErrorMissingConfiguration);
}

TEST(Variables, AreFoundByTheirHostAddress) {
  RegisterProgram();
  char bytes[16];
  EXPECT_EQ(CallsOf([&] { cudaMemcpyToSymbol(&variable, bytes, 16); }),
            "LibraryLoadData LibraryGetManaged LibraryGetGlobal MemcpyHtoD");
  void* address = nullptr;
  size_t size = 0;
  EXPECT_EQ(cudaGetSymbolAddress(&address, &variable), cudaSuccess);
  EXPECT_EQ(address, reinterpret_cast<void*>(0x1000));
  EXPECT_EQ(cudaGetSymbolSize(&size, &variable), cudaSuccess);
  EXPECT_EQ(size, 16u);
  EXPECT_EQ(cudaMemcpyToSymbol(&variable, bytes, 16, 1), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpyToSymbol(bytes, bytes, 1), cudaErrorInvalidSymbol);
}

TEST(Variables, ManagedOnesArePointedToTheirMemoryBeforeTheHostUsesThem) {
  void** handle = RegisterProgram();
  EXPECT_TRUE(__cudaInitModule(handle));
  EXPECT_EQ(shadow, reinterpret_cast<void*>(0x2000));
}

TEST(Errors, TheLastOneIsReportedOnceAndNotReadyIsNone) {
  cudaFree(nullptr);
  FailNext("MemAlloc", CUDA_ERROR_OUT_OF_MEMORY);
  void* p = nullptr;
  EXPECT_EQ(cudaMalloc(&p, 8), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaPeekAtLastError(), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaGetLastError(), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  FailNext("StreamQuery", CUDA_ERROR_NOT_READY);
  EXPECT_EQ(cudaStreamQuery(nullptr), cudaErrorNotReady);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

TEST(Errors, ThatLoseTheContextStayUntilTheDeviceIsReset) {
  cudaFree(nullptr);
  FailNext("CtxSynchronize", CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
  EXPECT_EQ(cudaGetLastError(), cudaErrorIllegalAddress);
  EXPECT_EQ(cudaGetLastError(), cudaErrorIllegalAddress);
  EXPECT_EQ(cudaDeviceReset(), cudaSuccess);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

TEST(Errors, HaveTheNamesAndTextsThatProgramsPrint) {
  EXPECT_STREQ(cudaGetErrorName(cudaErrorMemoryAllocation), "cudaErrorMemoryAllocation");
  EXPECT_STREQ(cudaGetErrorString(cudaErrorMemoryAllocation), "out of memory");
  EXPECT_STREQ(cudaGetErrorString(cudaErrorInsufficientDriver),
               "CUDA driver version is insufficient for CUDA runtime version");
  EXPECT_STREQ(cudaGetErrorString(static_cast<cudaError_t>(12345)), "unrecognized error code");
}

TEST(Errors, WhatIsNotImplementedSaysSo) {
  cudaMipmappedArray_t array = nullptr;
  const cudaChannelFormatDesc desc = cudaCreateChannelDesc(32, 0, 0, 0, cudaChannelFormatKindFloat);
  EXPECT_EQ(cudaMallocMipmappedArray(&array, &desc, {4, 4, 0}, 2, 0), cudaErrorNotSupported);
  EXPECT_EQ(cudaGetLastError(), cudaErrorNotSupported);
}

TEST(Drivers, ThatAreTooOldAreRefusedWithTheirVersion) {
  EXPECT_EXIT(
      {
        setenv("FAKE_DRIVER_VERSION", "12040", 1);
        void* p = nullptr;
        exit(cudaMalloc(&p, 8));
      },
      testing::ExitedWithCode(cudaErrorInsufficientDriver), "12040");
}

TEST(Drivers, AnswerEntryPointsWithAStatus) {
  void* p = nullptr;
  auto found = cudaDriverEntryPointSymbolNotFound;
  EXPECT_EQ(cudaGetDriverEntryPointByVersion("cuMemAlloc", &p, 3020, cudaEnableDefault, &found),
            cudaSuccess);
  EXPECT_EQ(found, cudaDriverEntryPointSuccess);
  EXPECT_NE(p, nullptr);
  EXPECT_EQ(cudaGetDriverEntryPointByVersion("cuNothing", &p, 3020, cudaEnableDefault, &found),
            cudaSuccess);
  EXPECT_EQ(found, cudaDriverEntryPointSymbolNotFound);
  EXPECT_EQ(p, nullptr);
}

TEST(Properties, ComeFromTheAttributes) {
  cudaDeviceProp p;
  ASSERT_EQ(cudaGetDeviceProperties(&p, 0), cudaSuccess);
  EXPECT_STREQ(p.name, "fake");
  EXPECT_EQ(p.multiProcessorCount, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  EXPECT_EQ(p.maxGridSize[2], CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z);
  EXPECT_EQ(cudaGetDeviceProperties(&p, 3), cudaErrorInvalidDevice);
}

}  // namespace
