// SPDX-License-Identifier: Apache-2.0
// Tensor-core, half-precision and asynchronous-copy kernels, compiled to PTX for matrix_test.cc.
#include <cooperative_groups.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <mma.h>

#include <cstdint>
#include <cuda/barrier>

using namespace nvcuda;

// c = a * b + c for 16x16 tiles; b column-major.
extern "C" __global__ void WmmaHalf(const half* a, const half* b, float* c) {
  wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> fb;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc;
  wmma::load_matrix_sync(fa, a, 16);
  wmma::load_matrix_sync(fb, b, 16);
  wmma::load_matrix_sync(fc, c, 16, wmma::mem_row_major);
  wmma::mma_sync(fc, fa, fb, fc);
  for (int i = 0; i < fc.num_elements; ++i) fc.x[i] *= 2.0f;
  wmma::store_matrix_sync(c, fc, 16, wmma::mem_row_major);
}

extern "C" __global__ void WmmaBytes(const signed char* a, const signed char* b, int* c) {
  __shared__ signed char tile[32 * 16];
  for (int i = threadIdx.x; i < 512; i += 32) tile[i] = a[i];
  __syncwarp();
  wmma::fragment<wmma::matrix_a, 32, 8, 16, signed char, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, 32, 8, 16, signed char, wmma::row_major> fb;
  wmma::fragment<wmma::accumulator, 32, 8, 16, int> fc;
  wmma::load_matrix_sync(fa, tile, 16);
  wmma::load_matrix_sync(fb, b, 8);
  wmma::fill_fragment(fc, 3);
  wmma::mma_sync(fc, fa, fb, fc);
  wmma::store_matrix_sync(c, fc, 32, wmma::mem_col_major);
}

// One warp, m16n8k16: a row-major 16x16 and b stored as 8 columns of 16, both brought in by
// ldmatrix.
extern "C" __global__ void MmaHalf(const half* a, const half* b, float* c) {
  __shared__ __align__(16) half sa[16 * 16], sb[8 * 16];
  for (int i = threadIdx.x; i < 256; i += 32) sa[i] = a[i];
  for (int i = threadIdx.x; i < 128; i += 32) sb[i] = b[i];
  __syncwarp();
  int l = threadIdx.x;
  unsigned ra[4], rb[2];
  unsigned pa = (unsigned)__cvta_generic_to_shared(&sa[(l % 16) * 16 + l / 16 * 8]);
  unsigned pb = (unsigned)__cvta_generic_to_shared(&sb[(l % 8) * 16 + l / 8 % 2 * 8]);
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(ra[0]), "=r"(ra[1]), "=r"(ra[2]), "=r"(ra[3])
               : "r"(pa));
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];"
               : "=r"(rb[0]), "=r"(rb[1])
               : "r"(pb));
  int g = l / 4, t = l % 4;
  float d[4] = {c[g * 8 + t * 2], c[g * 8 + t * 2 + 1], c[(g + 8) * 8 + t * 2],
                c[(g + 8) * 8 + t * 2 + 1]};
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(ra[0]), "r"(ra[1]), "r"(ra[2]), "r"(ra[3]), "r"(rb[0]), "r"(rb[1]));
  c[g * 8 + t * 2] = d[0], c[g * 8 + t * 2 + 1] = d[1], c[(g + 8) * 8 + t * 2] = d[2],
                c[(g + 8) * 8 + t * 2 + 1] = d[3];
}

// m16n8k32 on bytes and m16n8k8 on tf32; operands are read by hand in the layout of the manual.
extern "C" __global__ void MmaBytes(const signed char* a, const signed char* b, int* c) {
  int l = threadIdx.x, g = l / 4, t = l % 4;
  auto row = [&](int r, int k) { return *(const unsigned*)(a + r * 32 + k); };
  auto column = [&](int n, int k) { return *(const unsigned*)(b + n * 32 + k); };
  unsigned a0 = row(g, t * 4), a1 = row(g + 8, t * 4), a2 = row(g, t * 4 + 16),
           a3 = row(g + 8, t * 4 + 16);
  unsigned b0 = column(g, t * 4), b1 = column(g, t * 4 + 16);
  int d0 = 1, d1 = 2, d2 = 3, d3 = 4;
  asm volatile(
      "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+r"(d0), "+r"(d1), "+r"(d2), "+r"(d3)
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
  c[g * 8 + t * 2] = d0 - 1, c[g * 8 + t * 2 + 1] = d1 - 2, c[(g + 8) * 8 + t * 2] = d2 - 3,
                c[(g + 8) * 8 + t * 2 + 1] = d3 - 4;
}
extern "C" __global__ void MmaTf32(const float* a, const float* b, float* c) {
  int l = threadIdx.x, g = l / 4, t = l % 4;
  auto bits = [](float f) {
    unsigned r;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(r) : "f"(f));
    return r;
  };
  unsigned a0 = bits(a[g * 8 + t]), a1 = bits(a[(g + 8) * 8 + t]), a2 = bits(a[g * 8 + t + 4]),
           a3 = bits(a[(g + 8) * 8 + t + 4]);
  unsigned b0 = bits(b[g * 8 + t]), b1 = bits(b[g * 8 + t + 4]);
  float d0 = 0, d1 = 0, d2 = 0, d3 = 0;
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3)
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
  c[g * 8 + t * 2] = d0, c[g * 8 + t * 2 + 1] = d1, c[(g + 8) * 8 + t * 2] = d2,
                c[(g + 8) * 8 + t * 2 + 1] = d3;
}
extern "C" __global__ void MmaDouble(const double* a, const double* b, double* c) {
  int l = threadIdx.x, g = l / 4, t = l % 4;
  double d0 = 0, d1 = 0;
  asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};"
               : "+d"(d0), "+d"(d1)
               : "d"(a[g * 4 + t]), "d"(b[g * 4 + t]));
  c[g * 8 + t * 2] = d0, c[g * 8 + t * 2 + 1] = d1;
}

extern "C" __global__ void HalfArithmetic(const half* x, const half* y, half* out,
                                          const __nv_bfloat16* u, const __nv_bfloat16* v,
                                          __nv_bfloat16* bout) {
  int i = threadIdx.x + blockIdx.x * blockDim.x;
  half a = x[i], b = y[i];
  half* o = out + 8 * i;
  o[0] = __hadd_rn(a, b), o[1] = __hmul_rn(a, b), o[2] = __hfma(a, b, a), o[3] = __hmax(a, b),
  o[4] = __hneg(a);
  half2 pair = __hfma2(__halves2half2(a, b), __halves2half2(b, b), __halves2half2(a, a));
  o[5] = __low2half(pair), o[6] = __high2half(pair), o[7] = __float2half((float)a * 1.001f);
  __nv_bfloat16* w = bout + 4 * i;
  w[0] = __hadd_rn(u[i], v[i]), w[1] = __hmul_rn(u[i], v[i]), w[2] = __hfma(u[i], v[i], u[i]),
  w[3] = __float2bfloat16(__bfloat162float(u[i]) * 1.001f);
}

// Copies by cp.async, waiting once by group and once through an mbarrier.
extern "C" __global__ void AsyncCopies(const float4* in, float4* out) {
  __shared__ float4 tile[64];
  __pipeline_memcpy_async(&tile[threadIdx.x], &in[threadIdx.x], 16);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncthreads();
  out[threadIdx.x] = tile[63 - threadIdx.x];
}
extern "C" __global__ void BarrierObject(int* out, int rounds) {
  __shared__ cuda::barrier<cuda::thread_scope_block> barrier;
  __shared__ int values[64];
  if (threadIdx.x == 0) init(&barrier, blockDim.x);
  __syncthreads();
  int mine = threadIdx.x;
  for (int r = 0; r < rounds; ++r) {
    values[threadIdx.x] = mine;
    barrier.arrive_and_wait();
    mine = values[(threadIdx.x + 1) % blockDim.x] + 1;
    barrier.arrive_and_wait();
  }
  out[threadIdx.x] = mine;
}
