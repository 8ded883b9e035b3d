// SPDX-License-Identifier: Apache-2.0
// Causal multi-head attention, forward and backward. q, k and v of a token lie behind each other in
// one row of `qkv` (3 * width); `weights` holds the softmax, batch x heads x sequence x sequence.
#pragma once

#include "examples/transformer/kernels.cuh"

namespace example {

struct AttentionShape {
  int sequence, heads, head_width;
  float scale;  // 1 / sqrt(head_width)

  __device__ int width() const { return heads * head_width; }
  // The row of token `t` in sequence `b`, at part 0 (q), 1 (k) or 2 (v) of head `h`.
  __device__ size_t Qkv(int b, int t, int part, int h) const {
    return (size_t(b) * sequence + t) * 3 * width() + size_t(part) * width() + h * head_width;
  }
  __device__ size_t Out(int b, int t, int h) const {
    return (size_t(b) * sequence + t) * width() + h * head_width;
  }
  __device__ size_t Weights(int b, int h, int t) const {
    return ((size_t(b) * heads + h) * sequence + t) * sequence;
  }
};

__device__ inline float Dot(const float* a, const float* b, int count) {
  float sum = 0;
  for (int i = 0; i < count; ++i) sum = fmaf(a[i], b[i], sum);
  return sum;
}

// One block a query: grid (sequence, heads, batch).
__global__ void __launch_bounds__(kRowThreads)
    Attend(const float* qkv, float* weights, float* out, AttentionShape shape) {
  __shared__ float scratch[kRowThreads];
  const int t = blockIdx.x, h = blockIdx.y, b = blockIdx.z;
  const float* q = qkv + shape.Qkv(b, t, 0, h);
  float* row = weights + shape.Weights(b, h, t);
  float top = -INFINITY;
  for (int s = threadIdx.x; s <= t; s += kRowThreads) {
    row[s] = Dot(q, qkv + shape.Qkv(b, s, 1, h), shape.head_width) * shape.scale;
    top = fmaxf(top, row[s]);
  }
  top = OverBlock<true>(top, scratch);
  float sum = 0;
  for (int s = threadIdx.x; s <= t; s += kRowThreads) {
    row[s] = expf(row[s] - top);
    sum += row[s];
  }
  sum = OverBlock<false>(sum, scratch);
  for (int s = threadIdx.x; s < shape.sequence; s += kRowThreads)
    row[s] = s <= t ? row[s] / sum : 0;
  __syncthreads();
  for (int i = threadIdx.x; i < shape.head_width; i += kRowThreads) {
    float value = 0;
    for (int s = 0; s <= t; ++s) value = fmaf(row[s], qkv[shape.Qkv(b, s, 2, h) + i], value);
    out[shape.Out(b, t, h) + i] = value;
  }
}

// Gradients of the scores (before softmax, into d_scores) and of q. One block a query.
__global__ void __launch_bounds__(kRowThreads)
    AttendBackwardQueries(const float* qkv, const float* weights, const float* d_out,
                          float* d_scores, float* d_qkv, AttentionShape shape) {
  __shared__ float scratch[kRowThreads];
  const int t = blockIdx.x, h = blockIdx.y, b = blockIdx.z;
  const float* row = weights + shape.Weights(b, h, t);
  const float* d = d_out + shape.Out(b, t, h);
  float* d_row = d_scores + shape.Weights(b, h, t);
  float sum = 0;
  for (int s = threadIdx.x; s <= t; s += kRowThreads) {
    d_row[s] = Dot(d, qkv + shape.Qkv(b, s, 2, h), shape.head_width);
    sum += row[s] * d_row[s];
  }
  sum = OverBlock<false>(sum, scratch);
  for (int s = threadIdx.x; s <= t; s += kRowThreads) {
    d_row[s] = row[s] * (d_row[s] - sum) * shape.scale;
  }
  __syncthreads();
  for (int i = threadIdx.x; i < shape.head_width; i += kRowThreads) {
    float value = 0;
    for (int s = 0; s <= t; ++s) value = fmaf(d_row[s], qkv[shape.Qkv(b, s, 1, h) + i], value);
    d_qkv[shape.Qkv(b, t, 0, h) + i] = value;
  }
}

// Gradients of k and v. One block a key.
__global__ void __launch_bounds__(kRowThreads)
    AttendBackwardKeys(const float* qkv, const float* weights, const float* d_out,
                       const float* d_scores, float* d_qkv, AttentionShape shape) {
  const int s = blockIdx.x, h = blockIdx.y, b = blockIdx.z;
  for (int i = threadIdx.x; i < shape.head_width; i += kRowThreads) {
    float key = 0, value = 0;
    for (int t = s; t < shape.sequence; ++t) {
      const size_t at = shape.Weights(b, h, t) + s;
      key = fmaf(d_scores[at], qkv[shape.Qkv(b, t, 0, h) + i], key);
      value = fmaf(weights[at], d_out[shape.Out(b, t, h) + i], value);
    }
    d_qkv[shape.Qkv(b, s, 1, h) + i] = key;
    d_qkv[shape.Qkv(b, s, 2, h) + i] = value;
  }
}

}  // namespace example
