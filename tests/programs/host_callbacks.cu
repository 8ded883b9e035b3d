// SPDX-License-Identifier: Apache-2.0
// Host functions in stream order: each sees what the copies before it brought, and feeds the copies
// after it.
#include <atomic>

#include "tests/programs/program.h"

using namespace program;  // NOLINT

constexpr int kCount = 4096, kRounds = 6;

__global__ void Double(int* values) {
  COUNT_LAUNCH();
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  values[i] *= 2;
}

struct Shared {
  int* host;
  std::atomic<int> functions{0}, callbacks{0};
};

void AddOne(void* user) {
  auto* shared = static_cast<Shared*>(user);
  for (int i = 0; i < kCount; ++i) shared->host[i] += 1;
  ++shared->functions;
}

void CUDART_CB Count(cudaStream_t, cudaError_t status, void* user) {
  if (status == cudaSuccess) ++static_cast<Shared*>(user)->callbacks;
}

int main() {
  const size_t bytes = kCount * sizeof(int);
  Shared shared;
  CUDA_OK(cudaMallocHost(&shared.host, bytes));
  for (int i = 0; i < kCount; ++i) shared.host[i] = i;
  cudaStream_t stream;
  CUDA_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  Buffer<int> device(kCount);
  CUDA_OK(cudaDeviceSynchronize());
  for (int r = 0; r < kRounds; ++r) {
    CUDA_OK(cudaMemcpyAsync(device.get(), shared.host, bytes, cudaMemcpyHostToDevice, stream));
    Double<<<kCount / 256, 256, 0, stream>>>(device.get());
    CUDA_OK(cudaMemcpyAsync(shared.host, device.get(), bytes, cudaMemcpyDeviceToHost, stream));
    CUDA_OK(cudaLaunchHostFunc(stream, AddOne, &shared));
    CUDA_OK(cudaStreamAddCallback(stream, Count, &shared, 0));
  }
  CUDA_OK(cudaStreamSynchronize(stream));
  EXPECT(shared.functions == kRounds && shared.callbacks == kRounds);
  const std::vector<int> result(shared.host, shared.host + kCount);
  for (int i = 0; i < kCount; ++i) {
    int v = i;
    for (int r = 0; r < kRounds; ++r) v = v * 2 + 1;
    EXPECT(result[i] == v);
  }
  CUDA_OK(cudaStreamDestroy(stream));
  CUDA_OK(cudaFreeHost(shared.host));
  return Finish(result, kRounds);
}
