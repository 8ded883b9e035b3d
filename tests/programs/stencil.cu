// SPDX-License-Identifier: Apache-2.0
// Five-point stencil on a plate with fixed edges, two buffers that change roles.
#include "tests/programs/program.h"

using namespace program;  // NOLINT

constexpr int kSide = 256, kSteps = 20;

__global__ void Step(const float* in, float* out) {
  COUNT_LAUNCH();
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  const int at = y * kSide + x;
  if (x == 0 || y == 0 || x == kSide - 1 || y == kSide - 1) {
    out[at] = in[at];
    return;
  }
  const float around = in[at - 1] + in[at + 1] + in[at - kSide] + in[at + kSide];
  out[at] = in[at] + 0.2f * (around - 4.0f * in[at]);
}

int main() {
  Random random(2);
  std::vector<float> plate = random.Floats(kSide * kSide);
  Buffer<float> a(plate), b(plate.size());
  for (int s = 0; s < kSteps; ++s) {
    Step<<<dim3(kSide / 32, kSide / 8), dim3(32, 8)>>>(s % 2 ? b.get() : a.get(),
                                                       s % 2 ? a.get() : b.get());
  }
  for (int s = 0; s < kSteps; ++s) {
    std::vector<float> next = plate;
    for (int y = 1; y < kSide - 1; ++y) {
      for (int x = 1; x < kSide - 1; ++x) {
        const int at = y * kSide + x;
        const float around = plate[at - 1] + plate[at + 1] + plate[at - kSide] + plate[at + kSide];
        next[at] = plate[at] + 0.2f * (around - 4.0f * plate[at]);
      }
    }
    plate = next;
  }
  const auto result = a.Download();
  ExpectNear(result, plate, 1e-5);
  return Finish(result, kSteps);
}
