// SPDX-License-Identifier: Apache-2.0
// Bitonic sort: many short launches with power-of-two strides.
#include <algorithm>

#include "tests/programs/program.h"

using namespace program;  // NOLINT

__global__ void CompareExchange(unsigned* keys, int distance, int run) {
  COUNT_LAUNCH();
  const int i = blockIdx.x * blockDim.x + threadIdx.x, partner = i ^ distance;
  if (partner < i) return;
  const bool ascending = (i & run) == 0;
  const unsigned a = keys[i], b = keys[partner];
  if ((a > b) == ascending) {
    keys[i] = b;
    keys[partner] = a;
  }
}

int main() {
  const int count = 1 << 14;
  Random random(6);
  std::vector<unsigned> keys(count);
  for (unsigned& k : keys) k = random.Next();
  Buffer<unsigned> device(keys);
  unsigned launches = 0;
  for (int run = 2; run <= count; run *= 2) {
    for (int distance = run / 2; distance > 0; distance /= 2, ++launches) {
      CompareExchange<<<count / 256, 256>>>(device.get(), distance, run);
    }
  }
  std::sort(keys.begin(), keys.end());
  const auto result = device.Download();
  ExpectEqual(result, keys);
  return Finish(result, launches);
}
