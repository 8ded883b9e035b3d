// SPDX-License-Identifier: Apache-2.0
// Managed memory that host and device write in turns, without hints.
#include "tests/programs/program.h"

using namespace program;  // NOLINT

constexpr int kRounds = 4;

__global__ void Step(unsigned* values) {
  COUNT_LAUNCH();
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  values[i] = values[i] * 5 + 1;
}

int main(int argc, char** argv) {
  const int count = Scale(argc, argv) * (1 << 19);
  unsigned* values;
  CUDA_OK(cudaMallocManaged(&values, count * sizeof(unsigned)));
  Footprint() += count * sizeof(unsigned);
  for (int i = 0; i < count; ++i) values[i] = i;
  for (int r = 0; r < kRounds; ++r) {
    Step<<<count / 256, 256>>>(values);
    CUDA_OK(cudaDeviceSynchronize());
    for (int i = r; i < count; i += 1000) values[i] ^= 0xff;  // touches nearly every page
  }
  std::vector<unsigned> expected(count);
  for (int i = 0; i < count; ++i) {
    unsigned v = i;
    for (int r = 0; r < kRounds; ++r) {
      v = v * 5 + 1;
      if (i >= r && (i - r) % 1000 == 0) v ^= 0xff;
    }
    expected[i] = v;
  }
  const std::vector<unsigned> result(values, values + count);
  ExpectEqual(result, expected);
  CUDA_OK(cudaFree(values));
  return Finish(result, kRounds);
}
