// SPDX-License-Identifier: Apache-2.0
// Matrix product C = op(A) op(B) (+ bias per column) (+ residual). Row-major.
// A block computes 32 x 128 of C with four warps; a warp owns 8 rows, a lane 4 columns of each. So
// every value of B in shared memory is read by consecutive lanes and every value of A by all lanes
// at once, and 32 of about 40 instructions per step multiply. The order of additions depends on the
// shape only.
#pragma once

#include <cuda_runtime.h>

namespace example {

inline constexpr int kTileRows = 32, kTileColumns = 128, kTileDepth = 16, kGemmThreads = 128;
inline constexpr int kRowsPerWarp = 8, kColumnsPerLane = 4;

// op(A) is rows x depth: A itself, or the transpose of a depth x rows matrix. Likewise for B.
template <bool kTransposeA, bool kTransposeB>
__global__ void __launch_bounds__(kGemmThreads)
    Gemm(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, int rows,
         int columns, int depth, const float* __restrict__ bias, const float* residual) {
  __shared__ __align__(16) float tile_a[kTileDepth][kTileRows + 4];
  __shared__ float tile_b[kTileDepth][kTileColumns + 1];
  const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
  const int row0 = blockIdx.y * kTileRows, column0 = blockIdx.x * kTileColumns;
  float sum[kRowsPerWarp][kColumnsPerLane] = {};

  for (int k0 = 0; k0 < depth; k0 += kTileDepth) {
#pragma unroll
    for (int i = 0; i < kTileDepth * kTileRows / kGemmThreads; ++i) {
      const int at = thread + i * kGemmThreads;
      // Consecutive threads read consecutive addresses in either layout.
      const int k = kTransposeA ? at / kTileRows : at % kTileDepth;
      const int r = kTransposeA ? at % kTileRows : at / kTileDepth;
      const bool inside = row0 + r < rows && k0 + k < depth;
      const size_t from =
          kTransposeA ? size_t(k0 + k) * rows + row0 + r : size_t(row0 + r) * depth + k0 + k;
      tile_a[k][r] = inside ? a[from] : 0.0f;
    }
#pragma unroll
    for (int i = 0; i < kTileDepth * kTileColumns / kGemmThreads; ++i) {
      const int at = thread + i * kGemmThreads;
      const int k = kTransposeB ? at % kTileDepth : at / kTileColumns;
      const int n = kTransposeB ? at / kTileDepth : at % kTileColumns;
      const bool inside = column0 + n < columns && k0 + k < depth;
      const size_t from = kTransposeB ? size_t(column0 + n) * depth + k0 + k
                                      : size_t(k0 + k) * columns + column0 + n;
      tile_b[k][n] = inside ? b[from] : 0.0f;
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < kTileDepth; ++k) {
      float from_a[kRowsPerWarp], from_b[kColumnsPerLane];
#pragma unroll
      for (int r = 0; r < kRowsPerWarp; r += 4) {
        *reinterpret_cast<float4*>(&from_a[r]) =
            *reinterpret_cast<const float4*>(&tile_a[k][warp * kRowsPerWarp + r]);
      }
#pragma unroll
      for (int j = 0; j < kColumnsPerLane; ++j) from_b[j] = tile_b[k][lane + 32 * j];
#pragma unroll
      for (int r = 0; r < kRowsPerWarp; ++r) {
#pragma unroll
        for (int j = 0; j < kColumnsPerLane; ++j) {
          sum[r][j] = fmaf(from_a[r], from_b[j], sum[r][j]);
        }
      }
    }
    __syncthreads();
  }

#pragma unroll
  for (int j = 0; j < kColumnsPerLane; ++j) {
    const int column = column0 + lane + 32 * j;
    if (column >= columns) continue;
    const float offset = bias ? bias[column] : 0.0f;
#pragma unroll
    for (int r = 0; r < kRowsPerWarp; ++r) {
      const int row = row0 + warp * kRowsPerWarp + r;
      if (row >= rows) continue;
      const size_t to = size_t(row) * columns + column;
      const float value = sum[r][j] + offset;
      c[to] = residual ? value + residual[to] : value;
    }
  }
}

template <bool kTransposeA, bool kTransposeB>
void RunGemm(const float* a, const float* b, float* c, int rows, int columns, int depth,
             const float* bias = nullptr, const float* residual = nullptr) {
  const dim3 grid((columns + kTileColumns - 1) / kTileColumns, (rows + kTileRows - 1) / kTileRows);
  Gemm<kTransposeA, kTransposeB>
      <<<grid, kGemmThreads>>>(a, b, c, rows, columns, depth, bias, residual);
}

}  // namespace example
