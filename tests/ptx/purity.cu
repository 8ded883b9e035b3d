// SPDX-License-Identifier: Apache-2.0
// Kernels of which purity_test.cc says whether they may run again. None is ever run.
#include <cstdint>
#include <cstdio>

// The largest of each window of 2 x 2: rows and columns by division.
extern "C" __global__ void Pool(const float* in, float* out, int width, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const int half = width / 2, row = i / half, column = i % half;
  const float* window = in + (2 * row) * width + 2 * column;
  out[i] = fmaxf(fmaxf(window[0], window[1]), fmaxf(window[width], window[width + 1]));
}

// One block a row, in shared memory and by shuffles.
extern "C" __global__ void Softmax(const float* in, float* out, int width) {
  __shared__ float part[32];
  const float* row = in + size_t(blockIdx.x) * width;
  float sum = 0;
  for (int i = threadIdx.x; i < width; i += blockDim.x) sum += expf(row[i]);
  for (int k = 16; k > 0; k /= 2) sum += __shfl_xor_sync(~0u, sum, k);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = sum;
  __syncthreads();
  sum = 0;
  for (int k = 0; k < blockDim.x / 32; ++k) sum += part[k];
  for (int i = threadIdx.x; i < width; i += blockDim.x) {
    out[size_t(blockIdx.x) * width + i] = expf(row[i]) / sum;
  }
}

extern "C" __global__ void Transpose(const float* in, float* out, int width, int height) {
  const int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
  if (x < width && y < height) out[x * height + y] = in[y * width + x];
}

extern "C" __global__ void AddBias(const float* in, const float* bias, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = bias != nullptr ? in[i] + bias[i] : in[i];
}

// A dropout whose numbers come from its arguments alone.
extern "C" __global__ void Dropout(const float* in, float* out, unsigned seed, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned x = (seed ^ i) * 2654435761u;
  x ^= x >> 15;
  out[i] = x & 1 ? in[i] * 2 : 0;
}

extern "C" __global__ void Halves(const float* in, float* low, float* high, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) low[i] = in[i], high[i] = -in[i];
}

extern "C" __global__ void InPlace(float* x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= 2;
}

extern "C" __global__ void EverySecond(const float* in, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[2 * i] = in[i];
}

extern "C" __global__ void AllToOne(const float* in, float* out) { out[0] = in[threadIdx.x]; }

extern "C" __global__ void WhereAligned(const float* in, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = (reinterpret_cast<uintptr_t>(out) & 64) != 0 ? in[i] : 0;
  if (i < n && (reinterpret_cast<uintptr_t>(in) & 64) != 0) out[i] = in[i];
}

extern "C" __global__ void OnlyPositive(const float* in, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && in[i] > 0) out[i] = in[i];
}

extern "C" __global__ void Scatter(const int* to, const float* in, float* out) {
  out[to[threadIdx.x]] = in[threadIdx.x];
}

extern "C" __global__ void Sum(const float* in, float* out) { atomicAdd(out, in[threadIdx.x]); }

extern "C" __global__ void SumInShared(const int* in, int* out) {
  __shared__ int sum;
  sum = 0;
  __syncthreads();
  atomicAdd(&sum, in[threadIdx.x]);
  __syncthreads();
  if (threadIdx.x == 0) *out = sum;
}

extern "C" __global__ void Clock(long long* out) { out[threadIdx.x] = clock64(); }

extern "C" __global__ void Volatile(const volatile float* in, float* out) {
  out[threadIdx.x] = in[threadIdx.x];
}

extern "C" __global__ void Fence(const float* in, float* out) {
  out[threadIdx.x] = in[threadIdx.x];
  __threadfence();
}

extern "C" __global__ void Print(const float* in, float* out) {
  out[threadIdx.x] = in[threadIdx.x];
  if (threadIdx.x == 0) printf("%f\n", in[0]);
}

__device__ float state[256];
extern "C" __global__ void State(const float* in, float* out) {
  out[threadIdx.x] = in[threadIdx.x] + state[threadIdx.x];
  state[threadIdx.x] = in[threadIdx.x];
}

__constant__ float table[256];
extern "C" __global__ void Table(const float* in, float* out) {
  out[threadIdx.x] = in[threadIdx.x] + table[threadIdx.x];
}

extern "C" __global__ void Texture(cudaTextureObject_t in, float* out) {
  out[threadIdx.x] = tex1Dfetch<float>(in, threadIdx.x);
}

extern "C" __global__ void Active(int* out) { out[threadIdx.x] = __activemask(); }
