// SPDX-License-Identifier: Apache-2.0
// Five-point stencil on a plate with fixed edges, two buffers that change roles.
#include "tests/programs/program.h"

using namespace program;  // NOLINT

constexpr int kWidth = 256;

__global__ void Step(const float* in, float* out, int height) {
  COUNT_LAUNCH();
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  const int at = y * kWidth + x;
  if (x == 0 || y == 0 || x == kWidth - 1 || y == height - 1) {
    out[at] = in[at];
    return;
  }
  const float around = in[at - 1] + in[at + 1] + in[at - kWidth] + in[at + kWidth];
  out[at] = in[at] + 0.2f * (around - 4.0f * in[at]);
}

int main(int argc, char** argv) {
  const int scale = Scale(argc, argv), height = scale * 256;
  const int steps = scale > 1 ? 4 : 20;  // even, so that the result lies in the first buffer
  Random random(2);
  std::vector<float> plate = random.Floats(kWidth * height);
  Buffer<float> a(plate), b(plate.size());
  for (int s = 0; s < steps; ++s) {
    Step<<<dim3(kWidth / 32, height / 8), dim3(32, 8)>>>(s % 2 ? b.get() : a.get(),
                                                         s % 2 ? a.get() : b.get(), height);
  }
  for (int s = 0; s < steps; ++s) {
    std::vector<float> next = plate;
    for (int y = 1; y < height - 1; ++y) {
      for (int x = 1; x < kWidth - 1; ++x) {
        const int at = y * kWidth + x;
        const float around =
            plate[at - 1] + plate[at + 1] + plate[at - kWidth] + plate[at + kWidth];
        next[at] = plate[at] + 0.2f * (around - 4.0f * plate[at]);
      }
    }
    plate = next;
  }
  const auto result = a.Download();
  ExpectNear(result, plate, 1e-5);
  return Finish(result, steps);
}
