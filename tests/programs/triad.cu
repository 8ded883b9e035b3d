// SPDX-License-Identifier: Apache-2.0
// Streaming: a = b + s * c over 3 x 4 MiB.
#include "tests/programs/program.h"

using namespace program;  // NOLINT

__global__ void Triad(float* a, const float* b, const float* c, float s, int count) {
  COUNT_LAUNCH();
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) a[i] = b[i] + s * c[i];
}

int main(int argc, char** argv) {
  const int count = Scale(argc, argv) * (1 << 20) + 7;  // no multiple of the block
  Random random(1);
  const auto b = random.Floats(count), c = random.Floats(count, -1, 1);
  Buffer<float> device_a(count), device_b(b), device_c(c);
  Triad<<<Blocks(count, 256), 256>>>(device_a.get(), device_b.get(), device_c.get(), 3.0f, count);
  std::vector<float> expected(count);
  for (int i = 0; i < count; ++i) expected[i] = std::fma(3.0f, c[i], b[i]);
  const auto a = device_a.Download();
  ExpectNear(a, expected, 1e-6);
  return Finish(a, 1);
}
