// SPDX-License-Identifier: Apache-2.0
// Dynamic shared memory: sized at launch, and beyond 48 KiB after asking for it.
#include "tests/programs/program.h"

using namespace program;  // NOLINT

__global__ void ReversePieces(const int* in, int* out, int piece) {
  COUNT_LAUNCH();
  extern __shared__ int shared[];
  const int base = blockIdx.x * piece;
  for (int i = threadIdx.x; i < piece; i += blockDim.x) shared[i] = in[base + i];
  __syncthreads();
  for (int i = threadIdx.x; i < piece; i += blockDim.x) out[base + i] = shared[piece - 1 - i];
}

int main() {
  const int small = 1000, large = 15000, count = 30000;  // large: 60,000 bytes
  Random random(17);
  std::vector<int> values(count), expected(count);
  for (int& v : values) v = static_cast<int>(random.Next());
  Buffer<int> in(values), middle(count), out(count);
  ReversePieces<<<count / small, 256, small * sizeof(int)>>>(in.get(), middle.get(), small);

  const void* kernel = reinterpret_cast<const void*>(ReversePieces);
  cudaFuncAttributes attributes;
  CUDA_OK(cudaFuncGetAttributes(&attributes, kernel));
  EXPECT(attributes.maxDynamicSharedSizeBytes <= 48 * 1024);
  ReversePieces<<<count / large, 256, large * sizeof(int)>>>(middle.get(), out.get(), large);
  EXPECT(cudaGetLastError() == cudaErrorInvalidValue);  // too much, not asked for
  CUDA_OK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               large * sizeof(int)));
  ReversePieces<<<count / large, 256, large * sizeof(int)>>>(middle.get(), out.get(), large);

  for (int i = 0; i < count; ++i) {
    const int once = i / large * large + large - 1 - i % large;
    expected[i] = values[once / small * small + small - 1 - once % small];
  }
  const auto result = out.Download();
  ExpectEqual(result, expected);
  return Finish(result, 2);
}
