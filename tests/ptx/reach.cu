// SPDX-License-Identifier: Apache-2.0
// Kernels whose addresses reach_test.cc follows in their PTX. None is ever run.
#include <cstdint>

extern "C" __global__ void Add(const float* a, const float* b, float* c, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}

extern "C" __global__ void GridStride(const float4* in, float4* out, size_t count) {
  for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < count;
       i += size_t(gridDim.x) * blockDim.x) {
    out[i] = in[i];
  }
}

// c[m x n] = a[m x k] b[k x n], tiles of 16.
extern "C" __global__ void Multiply(const float* a, const float* b, float* c, int m, int n, int k) {
  __shared__ float tile_a[16][16], tile_b[16][17];
  const int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * 16 + y,
            column = blockIdx.x * 16 + x;
  float sum = 0;
  for (int t = 0; t < k; t += 16) {
    tile_a[y][x] = row < m && t + x < k ? a[row * k + t + x] : 0;
    tile_b[y][x] = column < n && t + y < k ? b[(t + y) * n + column] : 0;
    __syncthreads();
    for (int j = 0; j < 16; ++j) sum += tile_a[y][j] * tile_b[j][x];
    __syncthreads();
  }
  if (row < m && column < n) c[row * n + column] = sum;
}

// Row `place` of a cache with rows of `width`.
extern "C" __global__ void Append(const float* row, float* cache, int place, int width) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < width) cache[size_t(place) * width + i] = row[i];
}

// One block a head; `length` rows of the cache.
extern "C" __global__ void Attend(const float* query, const float* cache, float* out, int length,
                                  int head_width) {
  __shared__ float scratch[64];
  const int width = gridDim.x * head_width, first = blockIdx.x * head_width;
  float top = -1e30f;
  for (int s = threadIdx.x; s < length; s += blockDim.x) {
    float dot = 0;
    for (int i = 0; i < head_width; ++i)
      dot += query[first + i] * cache[size_t(s) * width + first + i];
    if (dot > top) top = dot;
  }
  scratch[threadIdx.x] = top;
  __syncthreads();
  if (threadIdx.x < head_width) out[first + threadIdx.x] = scratch[threadIdx.x];
}

// The rows that are taken are data.
extern "C" __global__ void Gather(const int* rows, const float* table, float* out, int width) {
  for (int i = threadIdx.x; i < width; i += blockDim.x) {
    out[size_t(blockIdx.x) * width + i] = table[size_t(rows[blockIdx.x]) * width + i];
  }
}

// As fused optimizers pass their tensors: by value, and found by a table.
struct Tensors {
  float* address[16];
  int size[16];
  unsigned char tensor_of_block[64];
};
extern "C" __global__ void Scale(Tensors tensors, float factor) {
  const int t = tensors.tensor_of_block[blockIdx.x];
  for (int i = threadIdx.x; i < tensors.size[t]; i += blockDim.x) tensors.address[t][i] *= factor;
}

// A pointer that is used only where data say so, and one that is not used at all.
extern "C" __global__ void Maybe(const float* in, float* out, float* rare, float* never, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float v = in[i];
  if (v > 100.0f) rare[i] = v;
  if (n < 0) never[i] = v;
  out[i] = v;
}

// Backwards from a pointer to the end of what it points into.
extern "C" __global__ void Backwards(const double* end, double* out, unsigned n) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = *(end - 1 - i);
}

// Tiles whose columns are put together from fields of thread and block numbers.
extern "C" __global__ void Columns(const float* in, float* out, int width) {
  const unsigned column = blockIdx.x << 7 | (threadIdx.x & 127);
  const unsigned row = (threadIdx.x >> 7) ^ ((threadIdx.x & 64) & (blockIdx.x & 1) & width);
  out[row * width + column] = in[row * width + column];
}

__device__ __noinline__ float Other(const float* p) { return *p; }
extern "C" __global__ void Calls(const float* in, float* out) { *out = Other(in); }

// Pointers that lie in memory, not among the parameters.
extern "C" __global__ void Indirect(float* const* list, const float* plain, float* out) {
  out[threadIdx.x] = list[blockIdx.x][threadIdx.x] + plain[threadIdx.x];
}
