// SPDX-License-Identifier: Apache-2.0
// Small kernels in the manner of real programs, compiled to PTX and run by kernels_test.cc against
// CPU references.
#include <cooperative_groups.h>

#include <cassert>
#include <cstdint>
#include <cstdio>

__device__ float table[4] = {1.0f, 2.0f, 4.0f, 8.0f};
__constant__ float factors[8];
__device__ unsigned counter;
__device__ const float* pointer_to_table = &table[1];

extern "C" __global__ void VectorAdd(const float* a, const float* b, float* c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}

extern "C" __global__ void Sgemm(const float* a, const float* b, float* c, int n) {
  __shared__ float tile_a[16][16], tile_b[16][16];
  int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * 16 + y, col = blockIdx.x * 16 + x;
  float sum = 0;
  for (int t = 0; t < n; t += 16) {
    tile_a[y][x] = a[row * n + t + x];
    tile_b[y][x] = b[(t + y) * n + col];
    __syncthreads();
    for (int k = 0; k < 16; ++k) sum += tile_a[y][k] * tile_b[k][x];
    __syncthreads();
  }
  c[row * n + col] = sum;
}

extern "C" __global__ void Elementwise(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float v = x[i];
  out[8 * i + 0] = expf(v);
  out[8 * i + 1] = logf(fabsf(v) + 0.1f);
  out[8 * i + 2] = tanhf(v);
  out[8 * i + 3] = rsqrtf(fabsf(v) + 0.5f);
  out[8 * i + 4] = sqrtf(fabsf(v));
  out[8 * i + 5] = v / (1.0f + fabsf(v));
  out[8 * i + 6] = sinf(v) + cosf(v);
  out[8 * i + 7] = powf(fabsf(v) + 0.01f, 1.7f);
}

extern "C" __global__ void Softmax(const float* x, float* out, int columns) {
  __shared__ float scratch[32];
  const float* row = x + blockIdx.x * columns;
  float largest = -INFINITY;
  for (int i = threadIdx.x; i < columns; i += blockDim.x) largest = fmaxf(largest, row[i]);
  for (int d = 16; d > 0; d /= 2)
    largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, d));
  if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = largest;
  __syncthreads();
  largest = scratch[0];
  for (int w = 1; w < blockDim.x / 32; ++w) largest = fmaxf(largest, scratch[w]);
  __syncthreads();
  float sum = 0;
  for (int i = threadIdx.x; i < columns; i += blockDim.x) sum += expf(row[i] - largest);
  for (int d = 16; d > 0; d /= 2) sum += __shfl_down_sync(0xffffffffu, sum, d);
  if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = sum;
  __syncthreads();
  sum = 0;
  for (int w = 0; w < blockDim.x / 32; ++w) sum += scratch[w];
  for (int i = threadIdx.x; i < columns; i += blockDim.x)
    out[blockIdx.x * columns + i] = expf(row[i] - largest) / sum;
}

extern "C" __global__ void Scatter(const unsigned* data, unsigned* bins, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(&bins[data[i]], 1u);
}

extern "C" __global__ void Histogram(const uint8_t* data, unsigned* bins, int n) {
  __shared__ unsigned local[256];
  for (int i = threadIdx.x; i < 256; i += blockDim.x) local[i] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    atomicAdd(&local[data[i]], 1u);
  __syncthreads();
  for (int i = threadIdx.x; i < 256; i += blockDim.x) atomicAdd(&bins[i], local[i]);
}

__device__ __noinline__ int Fibonacci(int n) {
  return n < 2 ? n : Fibonacci(n - 1) + Fibonacci(n - 2);
}
extern "C" __global__ void Recursion(int* out) { out[threadIdx.x] = Fibonacci(threadIdx.x % 12); }

__device__ __noinline__ int AddOne(int x) { return x + 1; }
__device__ __noinline__ int Twice(int x) { return 2 * x; }
__device__ __noinline__ int Square(int x) { return x * x; }
typedef int (*Function)(int);
__device__ Function functions[3] = {AddOne, Twice, Square};
extern "C" __global__ void IndirectCalls(int* out) {
  out[threadIdx.x] = functions[threadIdx.x % 3](threadIdx.x);
}

extern "C" __global__ void LocalArrays(const int* in, int* out, int n) {
  int values[32];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  for (int k = 0; k < 32; ++k) values[k] = in[(i * 7 + k * 13) % n];
  for (int k = 1; k < 32;
       ++k) {  // insertion sort: dynamic indexing keeps the array in local memory
    int v = values[k], j = k;
    while (j > 0 && values[j - 1] > v) values[j] = values[j - 1], --j;
    values[j] = v;
  }
  out[i] = values[i % 32];
}

extern "C" __global__ void Globals(float* out) {
  extern __shared__ float dynamic[];
  dynamic[threadIdx.x] = factors[threadIdx.x % 8] * table[threadIdx.x % 4];
  __syncthreads();
  out[threadIdx.x] = dynamic[blockDim.x - 1 - threadIdx.x] + pointer_to_table[0];
  if (threadIdx.x == 0) atomicInc(&counter, 100u);
}

struct alignas(16) Packed {
  float4 a;
  int2 b;
  short c;
  char d;
  double e;
};
extern "C" __global__ void Structs(Packed p, const float4* in, float4* out, double* extra) {
  int i = threadIdx.x;
  float4 v = in[i];
  v.x += p.a.w, v.y *= p.b.y, v.z -= p.c, v.w += p.d;
  out[i] = v;
  extra[i] = p.e * i + p.a.x;
}

extern "C" __global__ void Integers(const int* a, const int* b, long long* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  long long x = a[i], y = b[i] ? b[i] : 1;
  unsigned long long u = (unsigned long long)x * 0x9e3779b97f4a7c15ull;
  long long* o = out + 10 * (long long)i;
  o[0] = x / y, o[1] = x % y, o[2] = (long long)(u / (unsigned long long)(y | 1)),
  o[3] = __mulhi(a[i], b[i]);
  o[4] = __popc(a[i]) + __clz(b[i]) * 100 + __ffs(a[i]) * 10000, o[5] = __brev(a[i]),
  o[6] = __byte_perm(a[i], b[i], 0x6240);
  o[7] = __funnelshift_l(a[i], b[i], i), o[8] = __dp4a(a[i], b[i], 7),
  o[9] = (long long)__umul64hi(u, u ^ x);
}

// Lanes take different paths with loops of different length, then meet again.
extern "C" __global__ void Divergence(const int* in, int* out) {
  int i = threadIdx.x, v = in[i], steps = 0;
  while (v != 1 && steps < 1000) {
    v = v % 2 ? 3 * v + 1 : v / 2;
    ++steps;
  }
  unsigned here = __ballot_sync(0xffffffffu, steps % 2);
  switch (i % 5) {
    case 0:
      steps += 1;
      break;
    case 1:
      steps *= 2;
      break;
    case 2:
      steps -= 3;
      break;
    case 3:
      steps ^= 5;
      break;
    default:
      break;
  }
  out[i] = steps + __shfl_sync(0xffffffffu, steps, (i + 1) % 32) + __popc(here);
}

extern "C" __global__ void WarpOperations(const int* in, int* out) {
  int i = threadIdx.x, v = in[i];
  int sum = __reduce_add_sync(0xffffffffu, v), low = __reduce_min_sync(0xffffffffu, v);
  int up = __shfl_up_sync(0xffffffffu, v, 3, 16), any = __any_sync(0xffffffffu, v > 90),
      all = __all_sync(0xffffffffu, v >= 0);
  unsigned same = __match_any_sync(0xffffffffu, v % 4);
  int pred;
  unsigned every = __match_all_sync(0xffffffffu, 5, &pred);
  out[i] = sum + 3 * low + 5 * up + 7 * any + 11 * all + 13 * (int)__popc(same) + 17 * pred +
           (int)(every & 1);
}

extern "C" __global__ void Barriers(int* out) {
  int odd = __syncthreads_count(threadIdx.x % 3 == 0), all = __syncthreads_and(threadIdx.x < 1000),
      any = __syncthreads_or(0);
  out[threadIdx.x] = odd * 100 + all * 10 + any;
}

extern "C" __global__ void PrintAndAssert(int limit) {
  if (threadIdx.x < 2)
    printf("block %d thread %d: %s %.2f %lld %c\n", blockIdx.x, threadIdx.x, "text",
           1.5 * threadIdx.x, 1ll << 40, 'x');
  assert((int)threadIdx.x < limit);
}

// A lock taken by each lane in turn: needs lanes that wait to let the owner run.
extern "C" __global__ void SpinLock(int* lock, int* value) {
  while (atomicCAS(lock, 0, 1) != 0) {
  }
  __threadfence();
  *(volatile int*)value = *(volatile int*)value + 1;
  __threadfence();
  atomicExch(lock, 0);
}

// Block i waits for block i + 1: earlier blocks have to let later ones run.
extern "C" __global__ void WaitForNext(volatile int* flags, int* out) {
  if (threadIdx.x == 0) {
    if (blockIdx.x + 1 < gridDim.x) {
      while (flags[blockIdx.x + 1] == 0) {
      }
    }
    out[blockIdx.x] = blockIdx.x + 1 < gridDim.x ? flags[blockIdx.x + 1] + 1 : 1;
    __threadfence();
    flags[blockIdx.x] = out[blockIdx.x];
  }
}

extern "C" __global__ void GridSync(int* data, int rounds) {
  cooperative_groups::grid_group grid = cooperative_groups::this_grid();
  int i = grid.thread_rank(), n = grid.size();
  for (int r = 0; r < rounds; ++r) {
    int next = data[(i + 1) % n];
    grid.sync();
    data[i] = next + 1;
    grid.sync();
  }
}

extern "C" __global__ void DeviceHeap(int* out) {
  int* mine = (int*)malloc(4 * sizeof(int));
  for (int k = 0; k < 4; ++k) mine[k] = threadIdx.x * k;
  out[threadIdx.x] = mine[0] + mine[1] + mine[2] + mine[3];
  free(mine);
}

extern "C" __global__ void Wild(float* p, long long offset) { p[offset + threadIdx.x] = 1.0f; }
extern "C" __global__ void Misaligned(char* p) { *(float*)(p + 2) = 1.0f; }
extern "C" __global__ void WildShared(int* out, int index) {
  __shared__ int tile[32];
  tile[threadIdx.x] = threadIdx.x;
  __syncthreads();
  out[threadIdx.x] = tile[index + threadIdx.x];
}
extern "C" __global__ void Trap() { __trap(); }
extern "C" __global__ void Forever(volatile int* p) {
  while (*p == 0) {
  }
}

extern "C" __global__ void Fill(float* p, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) p[i] = 2.0f;
}
extern "C" __global__ void Scale(float* p, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) p[i] *= 2.0f;
}
extern "C" __global__ void FillThenScale(float* p, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  p[i] = 2.0f;
  __syncthreads();
  p[i] = ((volatile float*)p)[i] * 2.0f;
}
extern "C" __global__ void FloatAtomics(float* sum, double* wide, const float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    atomicAdd(sum, x[i]);
    atomicAdd(wide, (double)x[i]);
  }
}
