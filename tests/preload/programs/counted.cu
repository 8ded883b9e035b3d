// SPDX-License-Identifier: Apache-2.0
// Calls a known number of runtime functions, so that a test can compare how often each hook was
// entered. Knows nothing of the hooks.
#include <cuda_runtime.h>

#include <cstdio>

#define CHECK(call)                                                           \
  do {                                                                        \
    const cudaError_t error = (call);                                         \
    if (error != cudaSuccess) {                                               \
      std::printf("FAIL line %d: %s\n", __LINE__, cudaGetErrorString(error)); \
      return 1;                                                               \
    }                                                                         \
  } while (0)

__global__ void Add(float* to, const float* from, float value, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) to[i] = from[i] + value;
}

int main() {
  constexpr int kCount = 1 << 20;
  float *a, *b, *small, *in_order;
  static float host[kCount];
  cudaStream_t stream;
  cudaEvent_t event;
  CHECK(cudaStreamCreate(&stream));
  CHECK(cudaEventCreate(&event));
  CHECK(cudaMalloc(&a, kCount * sizeof(float)));
  CHECK(cudaMalloc(&b, kCount * sizeof(float)));
  CHECK(cudaMalloc(&small, 256));
  CHECK(cudaMallocAsync(reinterpret_cast<void**>(&in_order), 4096, stream));
  CHECK(cudaMemset(a, 0, kCount * sizeof(float)));
  CHECK(cudaMemsetAsync(b, 0, kCount * sizeof(float), stream));
  for (int i = 0; i < 5; ++i) Add<<<kCount / 256, 256>>>(b, a, 1.0f, kCount);
  for (int i = 0; i < 3; ++i) Add<<<kCount / 256, 256, 0, stream>>>(a, b, 1.0f, kCount);
  CHECK(cudaMemcpyAsync(b, a, kCount * sizeof(float), cudaMemcpyDeviceToDevice, stream));
  CHECK(cudaEventRecord(event, stream));
  CHECK(cudaEventSynchronize(event));
  CHECK(cudaStreamSynchronize(stream));
  CHECK(cudaMemcpy(host, b, kCount * sizeof(float), cudaMemcpyDeviceToHost));
  CHECK(cudaMemcpy(a, host, kCount * sizeof(float), cudaMemcpyHostToDevice));
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaFreeAsync(in_order, stream));
  CHECK(cudaFree(small));
  CHECK(cudaFree(b));
  CHECK(cudaFree(a));
  CHECK(cudaStreamDestroy(stream));
  // 5 launches leave 1 in b each time; 3 launches then add 1 to that.
  for (float value : host) {
    if (value != 2.0f) {
      std::printf("FAIL value %g\n", value);
      return 1;
    }
  }
  std::printf("PASS\n");
  return 0;
}
