// SPDX-License-Identifier: Apache-2.0
// Inclusive prefix sums: per block in shared memory, then the sums of the blocks, then their
// offsets added.
#include "tests/programs/program.h"

using namespace program;  // NOLINT

constexpr int kThreads = 512;

__global__ void ScanBlocks(const unsigned* in, unsigned* out, unsigned* sums, int count) {
  COUNT_LAUNCH();
  __shared__ unsigned buffer[2][kThreads];
  const int i = blockIdx.x * kThreads + threadIdx.x;
  int current = 0;
  buffer[0][threadIdx.x] = i < count ? in[i] : 0;
  __syncthreads();
  for (int step = 1; step < kThreads; step *= 2) {
    const unsigned own = buffer[current][threadIdx.x];
    const unsigned other = threadIdx.x >= step ? buffer[current][threadIdx.x - step] : 0;
    buffer[1 - current][threadIdx.x] = own + other;
    current = 1 - current;
    __syncthreads();
  }
  if (i < count) out[i] = buffer[current][threadIdx.x];
  if (threadIdx.x == kThreads - 1 && sums) sums[blockIdx.x] = buffer[current][threadIdx.x];
}

__global__ void AddOffsets(unsigned* values, const unsigned* sums, int count) {
  COUNT_LAUNCH();
  const int i = blockIdx.x * kThreads + threadIdx.x;
  if (blockIdx.x > 0 && i < count) values[i] += sums[blockIdx.x - 1];
}

int main(int argc, char** argv) {
  const int count = Scale(argc, argv) * 200000 + 1, blocks = Blocks(count, kThreads);
  Random random(5);
  std::vector<unsigned> values(count), expected(count);
  unsigned sum = 0;
  for (int i = 0; i < count; ++i) expected[i] = sum += values[i] = random.Below(1000);
  const int upper = Blocks(blocks, kThreads);
  EXPECT(upper <= kThreads);
  Buffer<unsigned> in(values), out(count), sums(blocks), upper_sums(upper);
  ScanBlocks<<<blocks, kThreads>>>(in.get(), out.get(), sums.get(), count);
  ScanBlocks<<<upper, kThreads>>>(sums.get(), sums.get(), upper_sums.get(), blocks);
  ScanBlocks<<<1, kThreads>>>(upper_sums.get(), upper_sums.get(), nullptr, upper);
  AddOffsets<<<upper, kThreads>>>(sums.get(), upper_sums.get(), blocks);
  AddOffsets<<<blocks, kThreads>>>(out.get(), sums.get(), count);
  const auto result = out.Download();
  ExpectEqual(result, expected);
  return Finish(result, 5);
}
