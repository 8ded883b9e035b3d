// SPDX-License-Identifier: Apache-2.0
// Built for the per-thread default stream: host threads that each use "the default stream" and wait
// for their own only.
#include <thread>

#include "tests/programs/program.h"

using namespace program;  // NOLINT

constexpr int kThreads = 4, kCount = 1 << 14, kRounds = 5;

__global__ void Step(unsigned* values, unsigned thread) {
  COUNT_LAUNCH();
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  values[i] = values[i] * 7 + thread;
}

void Run(unsigned thread, std::vector<unsigned>* out) {
  const size_t bytes = kCount * sizeof(unsigned);
  out->resize(kCount);
  for (int i = 0; i < kCount; ++i) (*out)[i] = i;
  unsigned* device;
  CUDA_OK(cudaMalloc(&device, bytes));
  CUDA_OK(cudaMemcpyAsync(device, out->data(), bytes, cudaMemcpyHostToDevice));
  for (int r = 0; r < kRounds; ++r) Step<<<kCount / 256, 256>>>(device, thread);
  CUDA_OK(cudaMemcpyAsync(out->data(), device, bytes, cudaMemcpyDeviceToHost));
  CUDA_OK(cudaStreamSynchronize(nullptr));
  CUDA_OK(cudaFree(device));
}

int main() {
  std::vector<unsigned> results[kThreads];
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < kThreads; ++t) threads.emplace_back(Run, t, &results[t]);
  for (std::thread& t : threads) t.join();
  std::vector<unsigned> all;
  for (unsigned t = 0; t < kThreads; ++t) {
    std::vector<unsigned> expected(kCount);
    for (int i = 0; i < kCount; ++i) {
      expected[i] = i;
      for (int r = 0; r < kRounds; ++r) expected[i] = expected[i] * 7 + t;
    }
    ExpectEqual(results[t], expected);
    all.insert(all.end(), results[t].begin(), results[t].end());
  }
  return Finish(all, kThreads * kRounds);
}
