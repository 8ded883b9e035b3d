// SPDX-License-Identifier: Apache-2.0
// Attention with a running softmax: one warp a query, keys and values read once.
#include "tests/programs/program.h"

using namespace program;  // NOLINT

constexpr int kQueries = 64, kKeys = 96, kWidth = 64;

__device__ float OverWarp(float v) {
  for (int step = 16; step > 0; step /= 2) v += __shfl_xor_sync(~0u, v, step);
  return v;
}

__global__ void Attend(const float* q, const float* k, const float* v, float* out) {
  COUNT_LAUNCH();
  const int lane = threadIdx.x, row = blockIdx.x;
  const float q0 = q[row * kWidth + lane], q1 = q[row * kWidth + lane + 32];
  float top = -INFINITY, total = 0, out0 = 0, out1 = 0;
  for (int s = 0; s < kKeys; ++s) {
    const float score =
        OverWarp(q0 * k[s * kWidth + lane] + q1 * k[s * kWidth + lane + 32]) / sqrtf(kWidth);
    const float new_top = fmaxf(top, score);
    const float shrink = expf(top - new_top), weight = expf(score - new_top);
    total = total * shrink + weight;
    out0 = out0 * shrink + weight * v[s * kWidth + lane];
    out1 = out1 * shrink + weight * v[s * kWidth + lane + 32];
    top = new_top;
  }
  out[row * kWidth + lane] = out0 / total;
  out[row * kWidth + lane + 32] = out1 / total;
}

int main() {
  Random random(15);
  const auto q = random.Floats(kQueries * kWidth, -2, 2), k = random.Floats(kKeys * kWidth, -2, 2);
  const auto v = random.Floats(kKeys * kWidth, -1, 1);
  Buffer<float> device_q(q), device_k(k), device_v(v), out(q.size());
  Attend<<<kQueries, 32>>>(device_q.get(), device_k.get(), device_v.get(), out.get());
  std::vector<float> expected(q.size());
  for (int r = 0; r < kQueries; ++r) {
    std::vector<double> weights(kKeys);
    double total = 0;
    for (int s = 0; s < kKeys; ++s) {
      double score = 0;
      for (int i = 0; i < kWidth; ++i) score += double(q[r * kWidth + i]) * k[s * kWidth + i];
      total += weights[s] = std::exp(score / std::sqrt(double(kWidth)));
    }
    for (int i = 0; i < kWidth; ++i) {
      double sum = 0;
      for (int s = 0; s < kKeys; ++s) sum += weights[s] / total * v[s * kWidth + i];
      expected[r * kWidth + i] = float(sum);
    }
  }
  const auto result = out.Download();
  ExpectNear(result, expected, 1e-4);
  return Finish(result, 1);
}
