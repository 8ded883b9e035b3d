// SPDX-License-Identifier: Apache-2.0
// A program on the driver API alone: loads a PTX file (its argument), launches by array and by
// packed buffer.
#include <cuda.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#define CU_OK(call)                                                 \
  do {                                                              \
    const CUresult cu_ok_result = (call);                           \
    if (cu_ok_result != CUDA_SUCCESS) {                             \
      const char* text = "?";                                       \
      cuGetErrorString(cu_ok_result, &text);                        \
      std::printf("FAIL line %d: %s: %s\n", __LINE__, #call, text); \
      std::exit(1);                                                 \
    }                                                               \
  } while (0)

namespace {

struct Packed {  // the layout of the kernel's parameters
  float a;
  CUdeviceptr x, y;
  int count;
};

}  // namespace

int main(int argc, char** argv) {
  std::ifstream in(argc > 1 ? argv[1] : "");
  const std::string ptx((std::istreambuf_iterator<char>(in)), {});
  if (ptx.empty()) {
    std::printf("FAIL no PTX file given\n");
    return 1;
  }
  CUdevice device;
  CUcontext context;
  CUmodule module;
  CUfunction function;
  CU_OK(cuInit(0));
  CU_OK(cuDeviceGet(&device, 0));
  CU_OK(cuCtxCreate(&context, nullptr, 0, device));
  CU_OK(cuModuleLoadData(&module, ptx.c_str()));
  CU_OK(cuModuleGetFunction(&function, module, "Axpy"));
  int count = 100000;
  const size_t bytes = count * sizeof(float);
  std::vector<float> x(count), y(count);
  for (int i = 0; i < count; ++i) {
    x[i] = static_cast<float>(i % 100);
    y[i] = static_cast<float>(i % 7);
  }
  CUdeviceptr device_x, device_y;
  CU_OK(cuMemAlloc(&device_x, bytes));
  CU_OK(cuMemAlloc(&device_y, bytes));
  CU_OK(cuMemcpyHtoD(device_x, x.data(), bytes));
  CU_OK(cuMemcpyHtoD(device_y, y.data(), bytes));
  const unsigned blocks = (count + 255) / 256;
  float a = 2;
  void* arguments[] = {&a, &device_x, &device_y, &count};
  CU_OK(cuLaunchKernel(function, blocks, 1, 1, 256, 1, 1, 0, nullptr, arguments, nullptr));
  Packed packed = {3, device_x, device_y, count};
  size_t packed_bytes = sizeof(packed);
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE,
                   &packed_bytes, CU_LAUNCH_PARAM_END};
  CU_OK(cuLaunchKernel(function, blocks, 1, 1, 256, 1, 1, 0, nullptr, nullptr, extra));
  CU_OK(cuCtxSynchronize());
  std::vector<float> result(count);
  CU_OK(cuMemcpyDtoH(result.data(), device_y, bytes));
  for (int i = 0; i < count; ++i) {
    if (result[i] == y[i] + 5 * x[i]) continue;
    std::printf("FAIL value %d is %g, expected %g\n", i, double(result[i]),
                double(y[i] + 5 * x[i]));
    return 1;
  }
  CU_OK(cuMemFree(device_x));
  CU_OK(cuMemFree(device_y));
  CU_OK(cuModuleUnload(module));
  CU_OK(cuCtxDestroy(context));
  std::printf("PASS\n");
  return 0;
}
