// SPDX-License-Identifier: Apache-2.0
// LU factorisation in place without pivoting (the matrix is diagonally dominant): a shrinking
// working set.
#include "tests/programs/program.h"

using namespace program;  // NOLINT

constexpr int kSide = 96;

__global__ void DivideColumn(float* a, int k) {
  COUNT_LAUNCH();
  const int row = k + 1 + blockIdx.x * blockDim.x + threadIdx.x;
  if (row < kSide) a[row * kSide + k] /= a[k * kSide + k];
}

__global__ void UpdateRest(float* a, int k) {
  COUNT_LAUNCH();
  const int column = k + 1 + blockIdx.x * blockDim.x + threadIdx.x;
  const int row = k + 1 + blockIdx.y * blockDim.y + threadIdx.y;
  if (row < kSide && column < kSide) {
    a[row * kSide + column] -= a[row * kSide + k] * a[k * kSide + column];
  }
}

int main() {
  Random random(13);
  auto matrix = random.Floats(kSide * kSide, -1, 1);
  for (int i = 0; i < kSide; ++i) matrix[i * kSide + i] += kSide;
  Buffer<float> device(matrix);
  unsigned launches = 0;
  for (int k = 0; k + 1 < kSide; ++k, launches += 2) {
    const int rest = kSide - k - 1;
    DivideColumn<<<Blocks(rest, 64), 64>>>(device.get(), k);
    UpdateRest<<<dim3(Blocks(rest, 16), Blocks(rest, 16)), dim3(16, 16)>>>(device.get(), k);
  }
  const auto lu = device.Download();
  std::vector<float> product(matrix.size());
  for (int i = 0; i < kSide; ++i) {
    for (int j = 0; j < kSide; ++j) {
      double sum = 0;
      for (int k = 0; k <= std::min(i, j); ++k) {
        sum += (k == i ? 1.0 : double(lu[i * kSide + k])) * lu[k * kSide + j];
      }
      product[i * kSide + j] = float(sum);
    }
  }
  ExpectNear(product, matrix, 1e-5);
  return Finish(lu, launches);
}
