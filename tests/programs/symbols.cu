// SPDX-License-Identifier: Apache-2.0
// Variables of a module: __device__, __constant__ and __managed__, by symbol, by address and from
// the host.
#include "tests/programs/program.h"

using namespace program;  // NOLINT

constexpr int kCount = 64;

__device__ int table[kCount] = {5, 4, 3};  // the rest is zero
__constant__ int offset;
__managed__ int total;

__global__ void Use(int* out) {
  COUNT_LAUNCH();
  out[threadIdx.x] = table[threadIdx.x] * 10 + offset;
  atomicAdd(&total, out[threadIdx.x]);
}

int main() {
  Buffer<int> out(kCount);
  int host[kCount];
  CUDA_OK(cudaMemcpyFromSymbol(host, table, sizeof(host)));
  EXPECT(host[0] == 5 && host[2] == 3 && host[3] == 0);
  const int seven = 7, hundred = 100;
  CUDA_OK(cudaMemcpyToSymbol(offset, &seven, sizeof(seven)));
  CUDA_OK(cudaMemcpyToSymbol(table, &hundred, sizeof(int), 4 * sizeof(int)));
  void* address = nullptr;
  size_t bytes = 0;
  CUDA_OK(cudaGetSymbolAddress(&address, table));
  CUDA_OK(cudaGetSymbolSize(&bytes, table));
  EXPECT(bytes == sizeof(host));
  CUDA_OK(cudaMemset(static_cast<int*>(address) + 5, 0, sizeof(int)));
  total = 1;
  Use<<<1, kCount>>>(out.get());
  CUDA_OK(cudaDeviceSynchronize());
  std::vector<int> expected(kCount, 7);
  expected[0] = 57, expected[1] = 47, expected[2] = 37, expected[4] = 1007;
  int sum = 1;
  for (int e : expected) sum += e;
  EXPECT(total == sum);
  const auto result = out.Download();
  ExpectEqual(result, expected);
  return Finish(result, 1);
}
