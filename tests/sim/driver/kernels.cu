// SPDX-License-Identifier: Apache-2.0
// Kernels of the driver's tests; built to PTX text and to the containers that nvcc makes.
#include <cstdio>

__device__ int counter = 5;
__constant__ float scale[2] = {2.0f, 3.0f};
__managed__ int shared_with_host = 7;

extern "C" __global__ void Add(const float* a, const float* b, float* c, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}

extern "C" __global__ void Fill(int* out, int value, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = value;
}

extern "C" __global__ void Increment(int* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] += 1;
}

extern "C" __global__ void UseVariables(int* out) {
  out[0] = counter++;
  out[1] = static_cast<int>(scale[0] * scale[1]);
  out[2] = shared_with_host++;
}

extern "C" __global__ void Store(int* out, int index) { out[index] = 1; }

extern "C" __global__ void Trap() { asm volatile("trap;"); }

extern "C" __global__ void Print(int n) { printf("value %d\n", n); }

struct Packed {
  char a;
  short b;
  int c;
  long d;
};
extern "C" __global__ void Layout(char a, short b, int c, long d, float* e, Packed f, char g) {
  *e = a + b + c + d + f.a + f.b + f.c + f.d + g;
}

extern "C" __global__ void DynamicShared(int* out) {
  extern __shared__ int buffer[];
  buffer[threadIdx.x] = threadIdx.x;
  __syncthreads();
  out[threadIdx.x] = buffer[blockDim.x - 1 - threadIdx.x];
}
