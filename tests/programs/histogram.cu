// SPDX-License-Identifier: Apache-2.0
// Histogram of bytes: contended atomics in shared memory, then in global memory.
#include "tests/programs/program.h"

using namespace program;  // NOLINT

__global__ void Count(const unsigned char* bytes, int count, unsigned* bins) {
  COUNT_LAUNCH();
  __shared__ unsigned local[256];
  local[threadIdx.x] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
    atomicAdd(&local[bytes[i]], 1u);
  }
  __syncthreads();
  if (local[threadIdx.x]) atomicAdd(&bins[threadIdx.x], local[threadIdx.x]);
}

int main(int argc, char** argv) {
  const int count = Scale(argc, argv) * 500000 + 9;
  Random random(8);
  std::vector<unsigned char> bytes(count);
  std::vector<unsigned> expected(256);
  for (auto& b : bytes) {
    b = static_cast<unsigned char>(random.Below(256) & random.Below(256));  // uneven
    ++expected[b];
  }
  Buffer<unsigned char> device(bytes);
  Buffer<unsigned> bins(256);
  CUDA_OK(cudaMemset(bins.get(), 0, bins.bytes()));
  Count<<<32, 256>>>(device.get(), count, bins.get());
  const auto result = bins.Download();
  ExpectEqual(result, expected);
  return Finish(result, 1);
}
