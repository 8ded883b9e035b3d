// SPDX-License-Identifier: Apache-2.0
// Stream-ordered allocation: buffers live for a few launches; a pool keeps or gives back what was
// freed.
#include "tests/programs/program.h"

using namespace program;  // NOLINT

constexpr int kRounds = 8;

__global__ void Fill(unsigned* out, unsigned seed, unsigned count) {
  COUNT_LAUNCH();
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) out[i] = i * 2654435761u ^ seed;
}

__global__ void Accumulate(unsigned* sum, const unsigned* in, unsigned count) {
  COUNT_LAUNCH();
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) sum[i] += in[i];
}

int main(int argc, char** argv) {
  const unsigned count = Scale(argc, argv) * 100000u;
  Footprint() = 2 * count * sizeof(unsigned);
  cudaStream_t stream;
  CUDA_OK(cudaStreamCreate(&stream));
  cudaMemPool_t pool;
  CUDA_OK(cudaDeviceGetDefaultMemPool(&pool, 0));
  uint64_t keep = UINT64_MAX;
  CUDA_OK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep));
  unsigned* sum;
  CUDA_OK(cudaMallocAsync(&sum, count * sizeof(unsigned), stream));
  CUDA_OK(cudaMemsetAsync(sum, 0, count * sizeof(unsigned), stream));
  for (int r = 0; r < kRounds; ++r) {
    unsigned* piece;
    CUDA_OK(cudaMallocAsync(&piece, count * sizeof(unsigned), stream));
    Fill<<<Blocks(count, 256), 256, 0, stream>>>(piece, r, count);
    Accumulate<<<Blocks(count, 256), 256, 0, stream>>>(sum, piece, count);
    CUDA_OK(cudaFreeAsync(piece, stream));
  }
  std::vector<unsigned> result(count), expected(count);
  CUDA_OK(cudaMemcpyAsync(result.data(), sum, count * sizeof(unsigned), cudaMemcpyDeviceToHost,
                          stream));
  CUDA_OK(cudaFreeAsync(sum, stream));
  CUDA_OK(cudaStreamSynchronize(stream));
  for (unsigned i = 0; i < count; ++i) {
    for (int r = 0; r < kRounds; ++r) expected[i] += i * 2654435761u ^ unsigned(r);
  }
  ExpectEqual(result, expected);
  uint64_t used = 1, reserved = 0;
  CUDA_OK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used));
  CUDA_OK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &reserved));
  EXPECT(used == 0 && reserved > 0);
  CUDA_OK(cudaMemPoolTrimTo(pool, 0));
  CUDA_OK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &reserved));
  EXPECT(reserved == 0);
  CUDA_OK(cudaStreamDestroy(stream));
  return Finish(result, 2 * kRounds);
}
