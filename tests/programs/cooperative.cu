// SPDX-License-Identifier: Apache-2.0
// Cooperative launch: blocks wait for each other (grid synchronisation) in one kernel, tiles of a
// warp reduce by groups.
#include <cooperative_groups.h>

#include "tests/programs/program.h"

using namespace program;  // NOLINT
namespace cg = cooperative_groups;

constexpr int kBlocks = 8, kThreads = 128, kCount = kBlocks * kThreads, kRounds = 5;

// Every round each value becomes the sum of its own and its neighbours' values of the round before.
__global__ void Smooth(unsigned* values, unsigned* next, unsigned* block_sums) {
  COUNT_LAUNCH();
  cg::grid_group grid = cg::this_grid();
  const int i = static_cast<int>(grid.thread_rank());
  for (int r = 0; r < kRounds; ++r) {
    next[i] = values[i] + values[(i + 1) % kCount] + values[(i + kCount - 1) % kCount];
    grid.sync();
    values[i] = next[i];
    grid.sync();
  }
  auto tile = cg::tiled_partition<16>(cg::this_thread_block());
  unsigned sum = values[i];
  for (int step = 8; step > 0; step /= 2) sum += tile.shfl_down(sum, step);
  if (tile.thread_rank() == 0) block_sums[i / 16] = sum;
}

int main() {
  Random random(16);
  std::vector<unsigned> values(kCount), sums(kCount / 16);
  for (unsigned& v : values) v = random.Below(100);
  Buffer<unsigned> device(values), next(kCount), block_sums(kCount / 16);
  int fit = 0;
  CUDA_OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&fit, Smooth, kThreads, 0));
  EXPECT(fit > 0);
  unsigned *a = device.get(), *b = next.get(), *c = block_sums.get();
  void* arguments[] = {&a, &b, &c};
  CUDA_OK(cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(Smooth), kBlocks, kThreads,
                                      arguments, 0, nullptr));
  for (int r = 0; r < kRounds; ++r) {
    std::vector<unsigned> fresh(kCount);
    for (int i = 0; i < kCount; ++i) {
      fresh[i] = values[i] + values[(i + 1) % kCount] + values[(i + kCount - 1) % kCount];
    }
    values = fresh;
  }
  for (int i = 0; i < kCount; ++i) sums[i / 16] += values[i];
  ExpectEqual(block_sums.Download(), sums);
  const auto result = device.Download();
  ExpectEqual(result, values);
  return Finish(result, 1);
}
