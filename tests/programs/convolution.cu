// SPDX-License-Identifier: Apache-2.0
// Separable convolution, rows then columns, with the filter in constant memory.
#include <algorithm>

#include "tests/programs/program.h"

using namespace program;  // NOLINT

constexpr int kWidth = 320, kHeight = 200, kRadius = 4;

__constant__ float filter[2 * kRadius + 1];

__global__ void Convolve(const float* in, float* out, int dx, int dy) {
  COUNT_LAUNCH();
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= kWidth || y >= kHeight) return;
  float sum = 0;
  for (int i = -kRadius; i <= kRadius; ++i) {
    const int from_x = min(max(x + i * dx, 0), kWidth - 1);
    const int from_y = min(max(y + i * dy, 0), kHeight - 1);
    sum += filter[i + kRadius] * in[from_y * kWidth + from_x];
  }
  out[y * kWidth + x] = sum;
}

std::vector<float> ConvolveOnHost(const std::vector<float>& in, const std::vector<float>& weights,
                                  int dx, int dy) {
  std::vector<float> out(in.size());
  for (int y = 0; y < kHeight; ++y) {
    for (int x = 0; x < kWidth; ++x) {
      double sum = 0;
      for (int i = -kRadius; i <= kRadius; ++i) {
        const int from_x = std::clamp(x + i * dx, 0, kWidth - 1);
        const int from_y = std::clamp(y + i * dy, 0, kHeight - 1);
        sum += double(weights[i + kRadius]) * in[from_y * kWidth + from_x];
      }
      out[y * kWidth + x] = float(sum);
    }
  }
  return out;
}

int main() {
  Random random(11);
  const auto image = random.Floats(kWidth * kHeight), weights = random.Floats(2 * kRadius + 1);
  Buffer<float> in(image), middle(image.size()), out(image.size());
  CUDA_OK(cudaMemcpyToSymbol(filter, weights.data(), weights.size() * sizeof(float)));
  const dim3 grid(Blocks(kWidth, 32), Blocks(kHeight, 8)), block(32, 8);
  Convolve<<<grid, block>>>(in.get(), middle.get(), 1, 0);
  Convolve<<<grid, block>>>(middle.get(), out.get(), 0, 1);
  const auto result = out.Download();
  ExpectNear(result, ConvolveOnHost(ConvolveOnHost(image, weights, 1, 0), weights, 0, 1), 1e-5);
  return Finish(result, 2);
}
