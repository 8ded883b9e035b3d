// SPDX-License-Identifier: Apache-2.0
// The kernels of the decoder. One token of each of a few sequences goes through at a time, so
// everything is a matrix times a handful of vectors.
#pragma once

#include "examples/decode/config.h"
#include "examples/support/blocks.cuh"

namespace example {

__global__ void EmbedTokens(const int* tokens, const float* token_table, const float* place_row,
                            float* out, int width) {
  const int b = blockIdx.x;
  for (int i = threadIdx.x; i < width; i += blockDim.x) {
    out[b * width + i] = token_table[size_t(tokens[b]) * width + i] + place_row[i];
  }
}

// Division by the root of the mean square; one block a sequence.
__global__ void __launch_bounds__(kRowThreads)
    RmsNormalise(const float* in, float* out, int width) {
  __shared__ float scratch[kRowThreads];
  const float* row = in + size_t(blockIdx.x) * width;
  float squares = 0;
  for (int i = threadIdx.x; i < width; i += kRowThreads) squares += row[i] * row[i];
  const float mean = OverBlock<false>(squares, scratch) / width;
  const float factor = 1.0f / sqrtf(mean + kRmsEpsilon);
  for (int i = threadIdx.x; i < width; i += kRowThreads) {
    out[size_t(blockIdx.x) * width + i] = row[i] * factor;
  }
}

// What happens to a product before it is stored: rectified, or scaled for each sequence and added
// to what is there.
struct Finish {
  bool rectify = false, add = false;
  float scale[kMostSequences] = {1, 1, 1, 1, 1, 1, 1, 1};
};

// out[b][row] = matrix[row] . in[b]. One block a row; `columns4` are groups of four.
__global__ void __launch_bounds__(kRowThreads)
    MultiplyVectors(const float4* matrix, const float4* in, float* out, int columns4, int batch,
                    Finish finish) {
  __shared__ float scratch[kRowThreads];
  const float4* row = matrix + size_t(blockIdx.x) * columns4;
  float sums[kMostSequences] = {};
  for (int c = threadIdx.x; c < columns4; c += kRowThreads) {
    const float4 w = row[c];
#pragma unroll
    for (int b = 0; b < kMostSequences; ++b) {
      if (b >= batch) break;
      const float4 x = in[size_t(b) * columns4 + c];
      sums[b] += w.x * x.x + w.y * x.y + w.z * x.z + w.w * x.w;
    }
  }
#pragma unroll
  for (int b = 0; b < kMostSequences; ++b) {
    if (b >= batch) break;
    float value = OverBlock<false>(sums[b], scratch);
    if (threadIdx.x != 0) continue;
    float* to = out + size_t(b) * gridDim.x + blockIdx.x;
    if (finish.rectify) value = fmaxf(value, 0.0f);
    *to = finish.add ? *to + finish.scale[b] * value : value;
  }
}

// Row `place` of the caches, each [place][sequence][width].
__global__ void AppendToCache(const float* qkv, float* keys, float* values, int place, int batch,
                              int width) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= batch * width) return;
  const float* row = qkv + size_t(i / width) * 3 * width + i % width;
  const size_t at = size_t(place) * batch * width + i;
  keys[at] = row[width];
  values[at] = row[2 * width];
}

// One block a head and sequence; `length` places of the caches. `scores` has room for all of them.
__global__ void __launch_bounds__(kRowThreads)
    AttendCache(const float* qkv, const float* keys, const float* values, float* scores, float* out,
                int length, int context, int head_width) {
  __shared__ float scratch[kRowThreads];
  const int head = blockIdx.x, b = blockIdx.y, width = gridDim.x * head_width;
  const float* query = qkv + size_t(b) * 3 * width + head * head_width;
  float* row = scores + (size_t(b) * gridDim.x + head) * context;
  const size_t first = size_t(b) * width + head * head_width, stride = size_t(gridDim.y) * width;
  const float scale = 1.0f / sqrtf(float(head_width));
  float top = -INFINITY, sum = 0;
  for (int s = threadIdx.x; s < length; s += kRowThreads) {
    float dot = 0;
    for (int i = 0; i < head_width; ++i) dot += query[i] * keys[first + s * stride + i];
    row[s] = dot * scale;
    top = fmaxf(top, row[s]);
  }
  top = OverBlock<true>(top, scratch);
  for (int s = threadIdx.x; s < length; s += kRowThreads) {
    row[s] = expf(row[s] - top);
    sum += row[s];
  }
  sum = OverBlock<false>(sum, scratch);
  for (int i = threadIdx.x; i < head_width; i += kRowThreads) {
    float value = 0;
    for (int s = 0; s < length; ++s) value += row[s] * values[first + s * stride + i];
    out[first + i] = value / sum;
  }
}

// Draws the next token of each sequence: the greatest of logit + Gumbel noise, which depends on
// seed, place and sequence only. One thread a sequence.
__global__ void Draw(const float* logits, int* tokens, uint32_t seed, int place) {
  const int b = threadIdx.x;
  float most = -INFINITY;
  for (int v = 0; v < kTokens; ++v) {
    const uint32_t index = (uint32_t(place) * kMostSequences + b) * kTokens + v;
    const float even = 0.5f + Uniform(seed, index, 0.499999f);
    const float value = logits[b * kTokens + v] - logf(-logf(even));
    if (value > most) {
      most = value;
      tokens[b] = v;
    }
  }
}

}  // namespace example
