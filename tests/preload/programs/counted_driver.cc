// SPDX-License-Identifier: Apache-2.0
// The same for the driver API, linked with the driver or, with COUNTED_BY_HANDLE, through dlopen
// and dlsym. Argument: a PTX file with the kernel Bump(unsigned*, unsigned count).
#include <cuda.h>
#include <stdio.h>

#include <fstream>
#include <sstream>
#include <string>

#ifdef COUNTED_BY_HANDLE
#include <dlfcn.h>
namespace {
void* Driver() {
  static void* handle = dlopen("libcuda.so.1", RTLD_NOW);
  return handle;
}
}  // namespace
#define STRING_OF(name) #name
#define NAME_OF(name) STRING_OF(name)
// cuda.h renames by macro, so the argument is the exported name by the time it is made a string.
#define D(name) reinterpret_cast<decltype(&::name)>(dlsym(Driver(), NAME_OF(name)))
#else
#define D(name) (&::name)
#endif

#define CHECK(call)                                              \
  do {                                                           \
    const CUresult result = (call);                              \
    if (result != CUDA_SUCCESS) {                                \
      printf("FAIL line %d: error %d\n", __LINE__, (int)result); \
      return 1;                                                  \
    }                                                            \
  } while (0)

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  std::stringstream ptx;
  ptx << std::ifstream(argv[1]).rdbuf();
  const std::string text = ptx.str();
  CUdevice device;
  CUcontext context;
  CUmodule module;
  CUfunction function;
  CHECK(D(cuInit)(0));
  CHECK(D(cuDeviceGet)(&device, 0));
  CHECK(D(cuDevicePrimaryCtxRetain)(&context, device));
  CHECK(D(cuCtxSetCurrent)(context));
  CHECK(D(cuModuleLoadData)(&module, text.c_str()));
  CHECK(D(cuModuleGetFunction)(&function, module, "Bump"));
  CUdeviceptr memory;
  unsigned count = 1 << 20;
  CHECK(D(cuMemAlloc)(&memory, count * 4));
  CHECK(D(cuMemsetD32)(memory, 7, count));
  void* arguments[] = {&memory, &count};
  for (int i = 0; i < 4; ++i) {
    CHECK(
        D(cuLaunchKernel)(function, count / 256, 1, 1, 256, 1, 1, 0, nullptr, arguments, nullptr));
  }
  struct {
    CUdeviceptr memory;
    unsigned count;
  } packed = {memory, count};
  size_t bytes = sizeof packed;
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                   CU_LAUNCH_PARAM_END};
  CHECK(D(cuLaunchKernel)(function, count / 256, 1, 1, 256, 1, 1, 0, nullptr, nullptr, extra));
  CUlaunchConfig config = {};
  config.gridDimX = count / 256;
  config.gridDimY = config.gridDimZ = config.blockDimY = config.blockDimZ = 1;
  config.blockDimX = 256;
  CHECK(D(cuLaunchKernelEx)(&config, function, arguments, nullptr));
  CHECK(D(cuLaunchCooperativeKernel)(function, 1, 1, 1, 256, 1, 1, 0, nullptr, arguments));
  unsigned first, last;
  CHECK(D(cuMemcpyDtoH)(&first, memory, 4));
  CHECK(D(cuMemcpyDtoH)(&last, memory + 4 * (count - 1), 4));
  CHECK(D(cuMemFree)(memory));
  CHECK(D(cuModuleUnload)(module));
  if (first != 7 + 7 || last != 7 + 6) {  // the cooperative launch reaches the first block only
    printf("FAIL values %u %u\n", first, last);
    return 1;
  }
  printf("PASS\n");
  return 0;
}
