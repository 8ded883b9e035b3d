// SPDX-License-Identifier: Apache-2.0
// Copies among devices: each adds its part and hands the data on; with one device it hands it to
// itself.
#include "tests/programs/program.h"

using namespace program;  // NOLINT

constexpr int kCount = 1 << 16;

__global__ void Add(unsigned* values, unsigned what) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  values[i] = values[i] * 3 + what;
}

// Counts launches on device 0, where Finish looks.
__global__ void Confirm() { COUNT_LAUNCH(); }

int main() {
  int devices = 0;
  CUDA_OK(cudaGetDeviceCount(&devices));
  const size_t bytes = kCount * sizeof(unsigned);
  std::vector<unsigned> values(kCount), expected(kCount);
  for (int i = 0; i < kCount; ++i) expected[i] = values[i] = i;
  std::vector<unsigned*> buffers(devices + 1);
  for (int d = 0; d <= devices; ++d) {
    CUDA_OK(cudaSetDevice(d % devices));
    CUDA_OK(cudaMalloc(&buffers[d], bytes));
    Footprint() += bytes;
  }
  CUDA_OK(cudaSetDevice(0));
  CUDA_OK(cudaMemcpy(buffers[0], values.data(), bytes, cudaMemcpyHostToDevice));
  for (int d = 0; d < devices; ++d) {
    CUDA_OK(cudaSetDevice(d));
    Add<<<kCount / 256, 256>>>(buffers[d], d + 1);
    const int next = (d + 1) % devices;
    int can = 0;
    if (next != d) {
      CUDA_OK(cudaDeviceCanAccessPeer(&can, d, next));
      if (can) CUDA_OK(cudaDeviceEnablePeerAccess(next, 0));
    }
    CUDA_OK(cudaMemcpyPeer(buffers[d + 1], next, buffers[d], d, bytes));
    for (unsigned& e : expected) e = e * 3 + d + 1;
  }
  CUDA_OK(cudaSetDevice(0));
  CUDA_OK(cudaMemcpy(values.data(), buffers[devices], bytes, cudaMemcpyDeviceToHost));
  ExpectEqual(values, expected);
  for (int d = 0; d <= devices; ++d) CUDA_OK(cudaFree(buffers[d]));
  Confirm<<<1, 1>>>();
  return Finish(values, 1);
}
