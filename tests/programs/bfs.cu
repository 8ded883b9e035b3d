// SPDX-License-Identifier: Apache-2.0
// Breadth-first search on a random graph: the host looks at a flag after every level.
#include <queue>

#include "tests/programs/program.h"

using namespace program;  // NOLINT

__global__ void Expand(const int* starts, const int* targets, int* levels, int level, int vertices,
                       int* found) {
  COUNT_LAUNCH();
  const int v = blockIdx.x * blockDim.x + threadIdx.x;
  if (v >= vertices || levels[v] != level) return;
  for (int e = starts[v]; e < starts[v + 1]; ++e) {
    if (atomicCAS(&levels[targets[e]], -1, level + 1) == -1) *found = 1;
  }
}

int main() {
  const int vertices = 20000, degree = 6;
  Random random(9);
  std::vector<int> starts(vertices + 1), targets;
  for (int v = 0; v < vertices; ++v) {
    starts[v] = static_cast<int>(targets.size());
    const int edges = random.Below(degree);
    for (int e = 0; e < edges; ++e) targets.push_back(random.Below(vertices));
  }
  starts[vertices] = static_cast<int>(targets.size());
  std::vector<int> levels(vertices, -1), expected(vertices, -1);
  levels[0] = 0;
  Buffer<int> device_starts(starts), device_targets(targets), device_levels(levels), found(1);
  unsigned launches = 0;
  for (int level = 0, more = 1; more; ++level, ++launches) {
    CUDA_OK(cudaMemset(found.get(), 0, sizeof(int)));
    Expand<<<Blocks(vertices, 256), 256>>>(device_starts.get(), device_targets.get(),
                                           device_levels.get(), level, vertices, found.get());
    more = found.Download()[0];
  }
  std::queue<int> queue({0});
  expected[0] = 0;
  for (; !queue.empty(); queue.pop()) {
    const int v = queue.front();
    for (int e = starts[v]; e < starts[v + 1]; ++e) {
      if (expected[targets[e]] >= 0) continue;
      expected[targets[e]] = expected[v] + 1;
      queue.push(targets[e]);
    }
  }
  const auto result = device_levels.Download();
  ExpectEqual(result, expected);
  EXPECT(launches > 3);
  return Finish(result, launches);
}
