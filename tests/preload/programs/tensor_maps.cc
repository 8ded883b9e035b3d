// SPDX-License-Identifier: Apache-2.0
// Launches, in a period, a kernel that is given its three tensors of 8 MiB as tensor maps alone, on
// the driver that does nothing: tensor_maps LAUNCHES. With "copied" behind it the maps were not
// made by the driver in this process, so that nobody can know what they stand for.
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const int launches = atoi(argv[1]);
  const bool copied = argc > 2 && strcmp(argv[2], "copied") == 0;
  constexpr cuuint64_t kWidth = 1024, kRows = 2048;  // of floats: 8 MiB
  constexpr int kTensors = 3;
  CUcontext context = nullptr;
  if (cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS ||
      cuCtxSetCurrent(context) != CUDA_SUCCESS) {
    return 1;
  }
  alignas(64) CUtensorMap maps[kTensors];
  for (CUtensorMap& map : maps) {
    CUdeviceptr tensor = 0;
    if (cuMemAlloc(&tensor, kWidth * kRows * sizeof(float)) != CUDA_SUCCESS) return 1;
    const cuuint64_t dimensions[] = {kWidth, kRows}, strides[] = {kWidth * sizeof(float)};
    const cuuint32_t box[] = {64, 64}, steps[] = {1, 1};
    if (cuTensorMapEncodeTiled(
            &map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, reinterpret_cast<void*>(tensor), dimensions,
            strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
            CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) != CUDA_SUCCESS) {
      return 1;
    }
    if (copied) map.opaque[1] = 1;
  }
  // The driver's kernels are known by how many words of arguments they take.
  const auto kernel = reinterpret_cast<CUfunction>(sizeof(CUtensorMap) / sizeof(uint64_t));
  for (int i = 0; i < launches; ++i) {
    void* arguments[] = {&maps[i % kTensors]};
    if (cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, nullptr, arguments, nullptr) != CUDA_SUCCESS) {
      return 1;
    }
  }
  return cuCtxSynchronize() == CUDA_SUCCESS ? 0 : 1;
}
