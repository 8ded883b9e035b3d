// SPDX-License-Identifier: Apache-2.0
// Sum, minimum and maximum: warp shuffles within a block, then a second kernel over the blocks'
// results.
#include "tests/programs/program.h"

using namespace program;  // NOLINT

struct Summary {
  long long sum;
  int low, high;
};

__device__ Summary Combine(Summary a, Summary b) {
  return {a.sum + b.sum, min(a.low, b.low), max(a.high, b.high)};
}

__device__ Summary OverWarp(Summary s) {
  for (int step = 16; step > 0; step /= 2) {
    Summary other;
    other.sum = __shfl_down_sync(~0u, s.sum, step);
    other.low = __shfl_down_sync(~0u, s.low, step);
    other.high = __shfl_down_sync(~0u, s.high, step);
    s = Combine(s, other);
  }
  return s;
}

__device__ void OverBlock(Summary s, Summary* out) {
  __shared__ Summary warps[32];
  s = OverWarp(s);
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = s;
  __syncthreads();
  if (threadIdx.x < 32) {
    const Summary nothing = {0, INT32_MAX, INT32_MIN};
    s = threadIdx.x < blockDim.x / 32 ? warps[threadIdx.x] : nothing;
    s = OverWarp(s);
    if (threadIdx.x == 0) *out = s;
  }
}

__global__ void Reduce(const int* values, int count, Summary* out) {
  COUNT_LAUNCH();
  Summary s = {0, INT32_MAX, INT32_MIN};
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
    s = Combine(s, {values[i], values[i], values[i]});
  }
  OverBlock(s, &out[blockIdx.x]);
}

__global__ void ReduceSummaries(const Summary* in, int count, Summary* out) {
  COUNT_LAUNCH();
  Summary s = {0, INT32_MAX, INT32_MIN};
  if (threadIdx.x < count) s = in[threadIdx.x];
  OverBlock(s, out);
}

int main(int argc, char** argv) {
  const int count = Scale(argc, argv) * 1000000 + 3, blocks = 64;
  Random random(4);
  std::vector<int> values(count);
  for (int& v : values) v = static_cast<int>(random.Next());
  Buffer<int> device_values(values);
  Buffer<Summary> partial(blocks), total(1);
  Reduce<<<blocks, 256>>>(device_values.get(), count, partial.get());
  ReduceSummaries<<<1, 64>>>(partial.get(), blocks, total.get());
  long long sum = 0;
  int low = INT32_MAX, high = INT32_MIN;
  for (int v : values) {
    sum += v;
    low = std::min(low, v);
    high = std::max(high, v);
  }
  const Summary result = total.Download()[0];
  EXPECT(result.sum == sum);
  EXPECT(result.low == low && result.high == high);
  return Finish(std::vector<long long>{result.sum, result.low, result.high}, 2);
}
