// SPDX-License-Identifier: Apache-2.0
// Two- and three-dimensional copies and sets between packed host memory and pitched device memory.
#include "tests/programs/program.h"

using namespace program;  // NOLINT

constexpr size_t kWidth = 37, kHeight = 19, kDepth = 5;

__global__ void Add(cudaPitchedPtr box, int what) {
  COUNT_LAUNCH();
  const size_t x = threadIdx.x, y = blockIdx.x, z = blockIdx.y;
  auto* row = reinterpret_cast<int*>(static_cast<char*>(box.ptr) + (z * kHeight + y) * box.pitch);
  row[x] += what;
}

int main() {
  const size_t row_bytes = kWidth * sizeof(int);
  std::vector<int> values(kWidth * kHeight * kDepth), result(values.size(), -1);
  for (size_t i = 0; i < values.size(); ++i) values[i] = int(i * i);
  cudaPitchedPtr box;
  const cudaExtent extent = make_cudaExtent(row_bytes, kHeight, kDepth);
  CUDA_OK(cudaMalloc3D(&box, extent));
  EXPECT(box.pitch >= row_bytes);
  CUDA_OK(cudaMemset3D(box, 0xA5, extent));
  cudaMemcpy3DParms copy = {};
  copy.srcPtr = make_cudaPitchedPtr(values.data(), row_bytes, kWidth, kHeight);
  copy.dstPtr = box;
  copy.extent = extent;
  copy.kind = cudaMemcpyHostToDevice;
  CUDA_OK(cudaMemcpy3D(&copy));
  Add<<<dim3(kHeight, kDepth), kWidth>>>(box, 9);
  // Back: the first slice through a 2D copy, all of it through a 3D copy.
  std::vector<int> slice(kWidth * kHeight);
  CUDA_OK(cudaMemcpy2D(slice.data(), row_bytes, box.ptr, box.pitch, row_bytes, kHeight,
                       cudaMemcpyDeviceToHost));
  std::swap(copy.srcPtr, copy.dstPtr);
  copy.dstPtr.ptr = result.data();
  copy.kind = cudaMemcpyDeviceToHost;
  CUDA_OK(cudaMemcpy3D(&copy));
  for (int& v : values) v += 9;
  ExpectEqual(result, values);
  ExpectEqual(slice, std::vector<int>(values.begin(), values.begin() + kWidth * kHeight));
  CUDA_OK(cudaMemset2D(box.ptr, box.pitch, 0, row_bytes, kHeight));
  CUDA_OK(cudaMemcpy3D(&copy));
  EXPECT(result[0] == 0 && result[kWidth * kHeight] == values[kWidth * kHeight]);
  CUDA_OK(cudaFree(box.ptr));
  return Finish(values, 1);
}
