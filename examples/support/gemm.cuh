// SPDX-License-Identifier: Apache-2.0
// Matrix product C = op(A) op(B) (+ bias per column) (+ residual, which may be C). Row-major.
// A block computes 32 x 128 of C with four warps; a warp owns 8 rows, a lane 4 columns of each. So
// every value of B in shared memory is read by consecutive lanes and every value of A by all lanes
// at once, and 32 of about 40 instructions per step multiply. The order of additions depends on the
// shape only.
#pragma once

#include <cuda_runtime.h>

namespace example {

inline constexpr int kTileRows = 32, kTileColumns = 128, kTileDepth = 16, kGemmThreads = 128;
inline constexpr int kRowsPerWarp = 8, kColumnsPerLane = 4;

// Copies kTileDepth x kSpan of a matrix into shared memory, zeros where the matrix ends.
// kDepthFirst: the matrix is spans x depth, else depth x spans; either way consecutive threads read
// consecutive addresses.
template <bool kDepthFirst, int kSpan, int kPitch>
__device__ inline void LoadTile(const float* __restrict__ matrix, float (*tile)[kPitch], int span0,
                                int spans, int k0, int depth) {
  constexpr int kCount = kTileDepth * kSpan / kGemmThreads;
  constexpr int kAlong = kDepthFirst ? kTileDepth : kSpan;
  constexpr int kApart = kGemmThreads / kAlong;
  const int along = threadIdx.x % kAlong, across = threadIdx.x / kAlong;
  const int k = kDepthFirst ? along : across, s = kDepthFirst ? across : along;
  const int pitch = kDepthFirst ? depth : spans;
  const float* from = matrix + (kDepthFirst ? size_t(span0 + s) * pitch + k0 + k
                                            : size_t(k0 + k) * pitch + span0 + s);
  if (span0 + kSpan <= spans && k0 + kTileDepth <= depth) {
#pragma unroll
    for (int i = 0; i < kCount; ++i, from += kApart * pitch) {
      tile[kDepthFirst ? k : k + i * kApart][kDepthFirst ? s + i * kApart : s] = *from;
    }
    return;
  }
  for (int i = 0; i < kCount; ++i, from += kApart * pitch) {
    const int at_k = kDepthFirst ? k : k + i * kApart, at_s = kDepthFirst ? s + i * kApart : s;
    tile[at_k][at_s] = k0 + at_k < depth && span0 + at_s < spans ? *from : 0.0f;
  }
}

template <bool kWhole>
__device__ inline void StoreTile(const float (&sum)[kRowsPerWarp][kColumnsPerLane], float* c,
                                 int row, int column, int rows, int columns, const float* bias,
                                 const float* residual) {
#pragma unroll
  for (int j = 0; j < kColumnsPerLane; ++j, column += 32) {
    if (!kWhole && column >= columns) return;
    const float offset = bias ? bias[column] : 0.0f;
    size_t to = size_t(row) * columns + column;
#pragma unroll
    for (int r = 0; r < kRowsPerWarp; ++r, to += columns) {
      if (!kWhole && row + r >= rows) break;
      const float value = sum[r][j] + offset;
      c[to] = residual ? value + residual[to] : value;
    }
  }
}

// op(A) is rows x depth: A itself, or the transpose of a depth x rows matrix. Likewise for B.
template <bool kTransposeA, bool kTransposeB>
__global__ void __launch_bounds__(kGemmThreads)
    Gemm(const float* __restrict__ a, const float* __restrict__ b, float* c, int rows, int columns,
         int depth, const float* __restrict__ bias, const float* residual) {
  __shared__ __align__(16) float tile_a[kTileDepth][kTileRows + 4];
  __shared__ float tile_b[kTileDepth][kTileColumns + 1];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int row0 = blockIdx.y * kTileRows, column0 = blockIdx.x * kTileColumns;
  float sum[kRowsPerWarp][kColumnsPerLane] = {};

  for (int k0 = 0; k0 < depth; k0 += kTileDepth) {
    LoadTile<!kTransposeA, kTileRows>(a, tile_a, row0, rows, k0, depth);
    LoadTile<kTransposeB, kTileColumns>(b, tile_b, column0, columns, k0, depth);
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

  const int row = row0 + warp * kRowsPerWarp, column = column0 + lane;
  if (row0 + kTileRows <= rows && column0 + kTileColumns <= columns) {
    StoreTile<true>(sum, c, row, column, rows, columns, bias, residual);
  } else {
    StoreTile<false>(sum, c, row, column, rows, columns, bias, residual);
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
