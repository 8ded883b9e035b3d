// SPDX-License-Identifier: Apache-2.0
// Tiled matrix product through shared memory, with edges that do not fill a tile.
#include "tests/programs/program.h"

using namespace program;  // NOLINT

constexpr int kTile = 16;

__global__ void Multiply(const float* a, const float* b, float* c, int m, int n, int k) {
  COUNT_LAUNCH();
  __shared__ float tile_a[kTile][kTile], tile_b[kTile][kTile];
  const int row = blockIdx.y * kTile + threadIdx.y, column = blockIdx.x * kTile + threadIdx.x;
  float sum = 0;
  for (int k0 = 0; k0 < k; k0 += kTile) {
    const int ka = k0 + threadIdx.x, kb = k0 + threadIdx.y;
    tile_a[threadIdx.y][threadIdx.x] = row < m && ka < k ? a[row * k + ka] : 0;
    tile_b[threadIdx.y][threadIdx.x] = column < n && kb < k ? b[kb * n + column] : 0;
    __syncthreads();
    for (int i = 0; i < kTile; ++i) sum += tile_a[threadIdx.y][i] * tile_b[i][threadIdx.x];
    __syncthreads();
  }
  if (row < m && column < n) c[row * n + column] = sum;
}

int main() {
  const int m = 130, n = 150, k = 170;
  Random random(3);
  const auto a = random.Floats(m * k, -1, 1), b = random.Floats(k * n, -1, 1);
  Buffer<float> device_a(a), device_b(b), device_c(m * n);
  Multiply<<<dim3(Blocks(n, kTile), Blocks(m, kTile)), dim3(kTile, kTile)>>>(
      device_a.get(), device_b.get(), device_c.get(), m, n, k);
  std::vector<float> expected(m * n);
  for (int i = 0; i < m; ++i) {
    for (int j = 0; j < n; ++j) {
      double sum = 0;
      for (int l = 0; l < k; ++l) sum += double(a[i * k + l]) * b[l * n + j];
      expected[i * n + j] = float(sum);
    }
  }
  const auto c = device_c.Download();
  ExpectNear(c, expected, 1e-5);
  return Finish(c, 1);
}
