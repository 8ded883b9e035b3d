// SPDX-License-Identifier: Apache-2.0
// Kernels that read and write host memory: mapped allocations and registered ones.
#include "tests/programs/program.h"

using namespace program;  // NOLINT

constexpr int kCount = 1 << 15;

__global__ void Square(const int* in, int* out) {
  COUNT_LAUNCH();
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = in[i] * in[i];
}

int main() {
  const size_t bytes = kCount * sizeof(int);
  int *mapped, *mapped_device, *registered_device;
  CUDA_OK(cudaHostAlloc(&mapped, bytes, cudaHostAllocMapped));
  CUDA_OK(cudaHostGetDevicePointer(&mapped_device, mapped, 0));
  std::vector<int> result(kCount, -1), expected(kCount);
  CUDA_OK(cudaHostRegister(result.data(), bytes, cudaHostRegisterMapped));
  CUDA_OK(cudaHostGetDevicePointer(&registered_device, result.data(), 0));
  for (int i = 0; i < kCount; ++i) {
    mapped[i] = i % 1000 - 500;
    expected[i] = mapped[i] * mapped[i];
  }
  cudaPointerAttributes attributes;
  CUDA_OK(cudaPointerGetAttributes(&attributes, mapped));
  EXPECT(attributes.type == cudaMemoryTypeHost);
  Square<<<kCount / 256, 256>>>(mapped_device, registered_device);
  CUDA_OK(cudaDeviceSynchronize());
  CUDA_OK(cudaHostUnregister(result.data()));
  CUDA_OK(cudaFreeHost(mapped));
  ExpectEqual(result, expected);
  return Finish(result, 1);
}
