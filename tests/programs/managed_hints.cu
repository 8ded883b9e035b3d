// SPDX-License-Identifier: Apache-2.0
// Managed memory with prefetches in both directions and all kinds of advice: hints may change the
// time, never the result.
#include "tests/programs/program.h"

using namespace program;  // NOLINT

__global__ void Combine(const unsigned* table, unsigned* values, int count) {
  COUNT_LAUNCH();
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  values[i] += table[(17ll * i) % count];
}

int main(int argc, char** argv) {
  const int count = Scale(argc, argv) * (1 << 19);
  const size_t bytes = count * sizeof(unsigned);
  const cudaMemLocation device = {cudaMemLocationTypeDevice, 0};
  const cudaMemLocation host = {cudaMemLocationTypeHost, 0};
  unsigned *table, *values;
  CUDA_OK(cudaMallocManaged(&table, bytes));
  CUDA_OK(cudaMallocManaged(&values, bytes));
  Footprint() += 2 * bytes;
  std::vector<unsigned> expected(count);
  for (int i = 0; i < count; ++i) {
    table[i] = i * 3;
    values[i] = i;
  }
  cudaStream_t stream;
  CUDA_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CUDA_OK(cudaMemAdvise(table, bytes, cudaMemAdviseSetReadMostly, device));
  CUDA_OK(cudaMemAdvise(values, bytes, cudaMemAdviseSetPreferredLocation, device));
  CUDA_OK(cudaMemAdvise(values, bytes / 2, cudaMemAdviseSetAccessedBy, host));
  CUDA_OK(cudaMemPrefetchAsync(table, bytes, device, 0, stream));
  CUDA_OK(cudaMemPrefetchAsync(values, bytes, device, 0, stream));
  Combine<<<count / 256, 256, 0, stream>>>(table, values, count);
  CUDA_OK(cudaMemPrefetchAsync(values, bytes, host, 0, stream));
  CUDA_OK(cudaStreamSynchronize(stream));
  for (int i = 0; i < count; ++i) {
    expected[i] = i + (17ll * i) % count * 3;
    EXPECT(values[i] == expected[i]);
  }
  table[0] = 1000;  // a write to read-mostly memory makes the copies collapse
  Combine<<<count / 256, 256, 0, stream>>>(table, values, count);
  CUDA_OK(cudaStreamSynchronize(stream));
  for (int i = 0; i < count; ++i) expected[i] += table[(17ll * i) % count];
  CUDA_OK(cudaMemAdvise(table, bytes, cudaMemAdviseUnsetReadMostly, device));
  int mostly = 1;
  CUDA_OK(cudaMemRangeGetAttribute(&mostly, sizeof(mostly), cudaMemRangeAttributeReadMostly, table,
                                   bytes));
  EXPECT(mostly == 0);
  const std::vector<unsigned> result(values, values + count);
  ExpectEqual(result, expected);
  CUDA_OK(cudaStreamDestroy(stream));
  CUDA_OK(cudaFree(table));
  CUDA_OK(cudaFree(values));
  return Finish(result, 2);
}
