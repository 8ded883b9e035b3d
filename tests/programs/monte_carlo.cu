// SPDX-License-Identifier: Apache-2.0
// Monte Carlo estimate of pi with a generator per thread: hits are counted exactly, on both sides.
#include "tests/programs/program.h"

using namespace program;  // NOLINT

constexpr int kThreads = 4096, kSamples = 200;

__host__ __device__ unsigned Step(unsigned long long* state) {
  *state = *state * 6364136223846793005ull + 1442695040888963407ull;
  return static_cast<unsigned>(*state >> 40);  // 24 bits
}

__host__ __device__ unsigned Hits(unsigned thread) {
  unsigned long long state = thread * 0x9e3779b97f4a7c15ull + 1;
  unsigned hits = 0;
  for (int i = 0; i < kSamples; ++i) {
    const unsigned long long x = Step(&state), y = Step(&state);
    hits += x * x + y * y < (1ull << 48);
  }
  return hits;
}

__global__ void Estimate(unsigned* hits) {
  COUNT_LAUNCH();
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  hits[i] = Hits(i);
}

int main() {
  Buffer<unsigned> hits(kThreads);
  Estimate<<<kThreads / 128, 128>>>(hits.get());
  std::vector<unsigned> expected(kThreads);
  double total = 0;
  for (int i = 0; i < kThreads; ++i) total += expected[i] = Hits(i);
  const auto result = hits.Download();
  ExpectEqual(result, expected);
  EXPECT(std::fabs(4 * total / (double(kThreads) * kSamples) - M_PI) < 0.01);
  return Finish(result, 1);
}
