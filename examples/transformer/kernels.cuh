// SPDX-License-Identifier: Apache-2.0
// The kernels of the transformer besides matrix products. No float atomics: every sum has one fixed
// order, so results are the same to the bit in every run.
#pragma once

#include <cuda_runtime.h>

#include "examples/support/blocks.cuh"
#include "examples/transformer/config.h"

namespace example {

__global__ void Embed(const int* tokens, const float* token_table, const float* position_table,
                      float* out, int sequence, int width) {
  const int n = blockIdx.x, position = n % sequence;
  for (int c = threadIdx.x; c < width; c += blockDim.x) {
    out[size_t(n) * width + c] =
        token_table[size_t(tokens[n]) * width + c] + position_table[size_t(position) * width + c];
  }
}

// One block a token value: it collects the gradients of all places where the value occurs.
__global__ void EmbedBackwardTokens(const int* tokens, const float* d_out, float* d_table,
                                    int count, int width) {
  const int value = blockIdx.x;
  for (int c = threadIdx.x; c < width; c += blockDim.x) {
    float sum = 0;
    for (int n = 0; n < count; ++n) {
      if (tokens[n] == value) sum += d_out[size_t(n) * width + c];
    }
    d_table[size_t(value) * width + c] = sum;
  }
}

// One block a row of the table; rows beyond the sequence get zeros.
__global__ void EmbedBackwardPositions(const float* d_out, float* d_table, int batch, int sequence,
                                       int width) {
  const int position = blockIdx.x;
  for (int c = threadIdx.x; c < width; c += blockDim.x) {
    float sum = 0;
    for (int b = 0; b < batch && position < sequence; ++b) {
      sum += d_out[(size_t(b) * sequence + position) * width + c];
    }
    d_table[size_t(position) * width + c] = sum;
  }
}

// Layer normalisation, one block a row.
__global__ void __launch_bounds__(kRowThreads)
    Normalise(const float* in, const float* gain, const float* shift, float* out, float* means,
              float* inverses, int width) {
  __shared__ float scratch[kRowThreads];
  const float* row = in + size_t(blockIdx.x) * width;
  float sum = 0;
  for (int c = threadIdx.x; c < width; c += kRowThreads) sum += row[c];
  const float mean = OverBlock<false>(sum, scratch) / width;
  float squares = 0;
  for (int c = threadIdx.x; c < width; c += kRowThreads) {
    squares += (row[c] - mean) * (row[c] - mean);
  }
  const float inverse = 1.0f / sqrtf(OverBlock<false>(squares, scratch) / width + kNormEpsilon);
  for (int c = threadIdx.x; c < width; c += kRowThreads) {
    out[size_t(blockIdx.x) * width + c] = (row[c] - mean) * inverse * gain[c] + shift[c];
  }
  if (threadIdx.x == 0) {
    means[blockIdx.x] = mean;
    inverses[blockIdx.x] = inverse;
  }
}

// Adds the gradient of the normalisation's input to d_in.
__global__ void __launch_bounds__(kRowThreads)
    NormaliseBackward(const float* in, const float* gain, const float* means, const float* inverses,
                      const float* d_out, float* d_in, int width) {
  __shared__ float scratch[kRowThreads];
  const size_t at = size_t(blockIdx.x) * width;
  const float mean = means[blockIdx.x], inverse = inverses[blockIdx.x];
  float sum = 0, product = 0;
  for (int c = threadIdx.x; c < width; c += kRowThreads) {
    const float d = d_out[at + c] * gain[c];
    sum += d;
    product += d * (in[at + c] - mean) * inverse;
  }
  sum = OverBlock<false>(sum, scratch) / width;
  product = OverBlock<false>(product, scratch) / width;
  for (int c = threadIdx.x; c < width; c += kRowThreads) {
    const float normal = (in[at + c] - mean) * inverse;
    d_in[at + c] += (d_out[at + c] * gain[c] - sum - normal * product) * inverse;
  }
}

// Gradients of gain and shift: one thread a column.
__global__ void NormaliseBackwardParameters(const float* in, const float* means,
                                            const float* inverses, const float* d_out,
                                            float* d_gain, float* d_shift, int rows, int width) {
  const int c = blockIdx.x * blockDim.x + threadIdx.x;
  if (c >= width) return;
  float gain = 0, shift = 0;
  for (int n = 0; n < rows; ++n) {
    const float d = d_out[size_t(n) * width + c];
    gain += d * (in[size_t(n) * width + c] - means[n]) * inverses[n];
    shift += d;
  }
  d_gain[c] = gain;
  d_shift[c] = shift;
}

// GELU in the form with tanh.
__global__ void Gelu(const float* in, float* out, size_t count) {
  const size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const float x = in[i];
  out[i] = 0.5f * x * (1.0f + tanhf(0.7978845608f * (x + 0.044715f * x * x * x)));
}

// Turns the gradient of the output into that of the input, in place.
__global__ void GeluBackward(const float* in, float* d, size_t count) {
  const size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const float x = in[i];
  const float t = tanhf(0.7978845608f * (x + 0.044715f * x * x * x));
  const float slope = 0.7978845608f * (1.0f + 3.0f * 0.044715f * x * x);
  d[i] *= 0.5f * (1.0f + t) + 0.5f * x * (1.0f - t * t) * slope;
}

struct AdamStep {
  float rate;  // learning rate / (1 - beta1^t)
  float keep;  // 1 - learning rate * decay
  float root;  // 1 / sqrt(1 - beta2^t)
  float beta1, beta2, epsilon;
};

__device__ inline void Adam(const AdamStep& s, float g, float* m, float* v, float* w) {
  *m = s.beta1 * *m + (1.0f - s.beta1) * g;
  *v = s.beta2 * *v + (1.0f - s.beta2) * g * g;
  *w = s.keep * *w - s.rate * *m / (sqrtf(*v) * s.root + s.epsilon);
}

// Four values a thread; `count` is a multiple of 4, as every parameter's size is.
__global__ void AdamUpdate(float4* weights, const float4* gradients, float4* first, float4* second,
                           size_t count4, AdamStep step) {
  const size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= count4) return;
  float4 w = weights[i], m = first[i], v = second[i];
  const float4 g = gradients[i];
  Adam(step, g.x, &m.x, &v.x, &w.x);
  Adam(step, g.y, &m.y, &v.y, &w.y);
  Adam(step, g.z, &m.z, &v.z, &w.z);
  Adam(step, g.w, &m.w, &v.w, &w.w);
  weights[i] = w;
  first[i] = m;
  second[i] = v;
}

}  // namespace example
