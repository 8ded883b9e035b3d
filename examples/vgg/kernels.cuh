// SPDX-License-Identifier: Apache-2.0
// The kernels of VGG-19 besides matrix products: images unfolded for convolutions, pooling, and the
// update. Images are channel by channel, row by row; convolutions pad with one pixel of zeros.
#pragma once

#include "examples/support/blocks.cuh"
#include "examples/vgg/config.h"

namespace example {

// Row (channel, tap) and column (pixel) of `columns` is what the tap sees there.
__global__ void Unfold(const float* image, float* columns, int channels, int size) {
  const size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x;
  const size_t pixels = size_t(size) * size;
  if (i >= pixels * channels * kTaps) return;
  const int pixel = int(i % pixels), tap = int(i / pixels % kTaps);
  const size_t channel = i / pixels / kTaps;
  const int y = pixel / size + tap / 3 - 1, x = pixel % size + tap % 3 - 1;
  const bool inside = y >= 0 && y < size && x >= 0 && x < size;
  columns[i] = inside ? image[channel * pixels + size_t(y) * size + x] : 0.0f;
}

// The transpose of Unfold: each pixel collects what its nine taps carry.
__global__ void Fold(const float* columns, float* image, int channels, int size) {
  const size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x;
  const size_t pixels = size_t(size) * size;
  if (i >= pixels * channels) return;
  const int pixel = int(i % pixels);
  const size_t channel = i / pixels;
  float sum = 0;
  for (int tap = 0; tap < kTaps; ++tap) {
    const int y = pixel / size - (tap / 3 - 1), x = pixel % size - (tap % 3 - 1);
    if (y < 0 || y >= size || x < 0 || x >= size) continue;
    sum += columns[(channel * kTaps + tap) * pixels + size_t(y) * size + x];
  }
  image[i] = sum;
}

// Adds the bias of each channel and rectifies, in place. `pixels` is 1 for fully connected layers.
__global__ void BiasRectify(float* values, const float* bias, size_t count, int channels,
                            size_t pixels, bool rectify) {
  const size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const float value = values[i] + bias[i / pixels % channels];
  values[i] = rectify ? fmaxf(value, 0.0f) : value;
}

__global__ void RectifyBackward(const float* values, float* d, size_t count) {
  const size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count && values[i] <= 0) d[i] = 0;
}

// One block a channel.
__global__ void __launch_bounds__(kRowThreads)
    BiasGradient(const float* d, float* out, int batch, int channels, size_t pixels) {
  __shared__ float scratch[kRowThreads];
  float sum = 0;
  for (int b = 0; b < batch; ++b) {
    const float* row = d + (size_t(b) * channels + blockIdx.x) * pixels;
    for (size_t p = threadIdx.x; p < pixels; p += kRowThreads) sum += row[p];
  }
  sum = OverBlock<false>(sum, scratch);
  if (threadIdx.x == 0) out[blockIdx.x] = sum;
}

// Where in its window of 2 x 2 the greatest value is: the first of equal ones.
EXAMPLE_BOTH inline size_t GreatestOf(const float* in, size_t corner, int size) {
  size_t best = corner;
  const size_t others[3] = {corner + 1, corner + size, corner + size + 1};
  for (size_t at : others) {
    if (in[at] > in[best]) best = at;
  }
  return best;
}

// `size` is the edge of the input; one thread a pixel of the output.
__global__ void Pool(const float* in, float* out, size_t count, int size) {
  const size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const size_t half = size / 2, plane = i / (half * half), y = i / half % half, x = i % half;
  out[i] = in[GreatestOf(in, plane * size * size + 2 * y * size + 2 * x, size)];
}

__global__ void PoolBackward(const float* in, const float* d_out, float* d_in, size_t count,
                             int size) {
  const size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const size_t half = size / 2, plane = i / (half * half), y = i / half % half, x = i % half;
  const size_t corner = plane * size * size + 2 * y * size + 2 * x;
  const size_t best = GreatestOf(in, corner, size);
  const size_t all[4] = {corner, corner + 1, corner + size, corner + size + 1};
  for (size_t at : all) d_in[at] = at == best ? d_out[i] : 0.0f;
}

}  // namespace example
