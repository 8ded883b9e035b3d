// SPDX-License-Identifier: Apache-2.0
// What kernels of several examples share: sums over a block in a fixed order, initial values, loss,
// update. No float atomics anywhere, so that results are the same to the bit in every run.
#pragma once

#include <cuda_runtime.h>

#include "examples/support/momentum.h"
#include "examples/support/random.h"

namespace example {

inline constexpr int kRowThreads = 128;   // threads that share a row
inline constexpr int kFlatThreads = 256;  // threads of elementwise kernels

inline int Blocks(size_t count, int threads) {
  return static_cast<int>((count + threads - 1) / threads);
}

// Sum or maximum over the block; every thread gets it. `scratch` holds kRowThreads values.
template <bool kMaximum>
__device__ inline float OverBlock(float value, float* scratch) {
  const int thread = threadIdx.x;
  scratch[thread] = value;
  __syncthreads();
  for (int step = kRowThreads / 2; step > 0; step /= 2) {
    if (thread < step) {
      const float other = scratch[thread + step];
      scratch[thread] = kMaximum ? fmaxf(scratch[thread], other) : scratch[thread] + other;
    }
    __syncthreads();
  }
  const float result = scratch[0];
  __syncthreads();
  return result;
}

__global__ void Initialise(float* values, size_t count, uint32_t seed, float scale, float initial) {
  const size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) values[i] = scale > 0 ? Uniform(seed, static_cast<uint32_t>(i), scale) : initial;
}

// Gradient of a bias: the sum of each column.
__global__ void SumColumns(const float* in, float* out, int rows, int columns) {
  const int c = blockIdx.x * blockDim.x + threadIdx.x;
  if (c >= columns) return;
  float sum = 0;
  for (int n = 0; n < rows; ++n) sum += in[size_t(n) * columns + c];
  out[c] = sum;
}

// Loss of each row of `classes` logits, and the gradient of its mean in the place of the logits.
__global__ void __launch_bounds__(kRowThreads)
    CrossEntropy(float* logits, const int* targets, float* losses, int rows, int classes) {
  __shared__ float scratch[kRowThreads];
  float* row = logits + size_t(blockIdx.x) * classes;
  float top = -INFINITY, sum = 0;
  for (int v = threadIdx.x; v < classes; v += kRowThreads) top = fmaxf(top, row[v]);
  top = OverBlock<true>(top, scratch);
  for (int v = threadIdx.x; v < classes; v += kRowThreads) sum += expf(row[v] - top);
  sum = OverBlock<false>(sum, scratch);
  const int target = targets[blockIdx.x];
  if (threadIdx.x == 0) losses[blockIdx.x] = logf(sum) - (row[target] - top);
  __syncthreads();
  for (int v = threadIdx.x; v < classes; v += kRowThreads) {
    row[v] = (expf(row[v] - top) / sum - (v == target ? 1.0f : 0.0f)) / rows;
  }
}

__global__ void __launch_bounds__(kRowThreads) Mean(const float* values, float* mean, int count) {
  __shared__ float scratch[kRowThreads];
  float sum = 0;
  for (int i = threadIdx.x; i < count; i += kRowThreads) sum += values[i];
  sum = OverBlock<false>(sum, scratch);
  if (threadIdx.x == 0) *mean = sum / count;
}

__global__ void MomentumUpdate(float* weights, const float* gradients, float* velocity,
                               size_t count, Momentum step) {
  const size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const float v = step.keep * velocity[i] + gradients[i];
  velocity[i] = v;
  weights[i] -= step.learning_rate * v;
}

}  // namespace example
