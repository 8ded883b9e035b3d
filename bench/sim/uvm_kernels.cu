// SPDX-License-Identifier: Apache-2.0
// Kernels of uvm_crosscheck: access patterns of published measurements of unified memory. They only
// read, so that memory that was never written needs no host memory even at full size; what the
// driver moves is the same.

namespace {

constexpr unsigned long long kFloatsPerPage = 1024;

__device__ unsigned Scrambled(unsigned x) {
  x = (x ^ (x >> 16)) * 0x7feb352du;
  x = (x ^ (x >> 15)) * 0x846ca68bu;
  return x ^ (x >> 16);
}

}  // namespace

// One access to each page of two arrays, in address order over the grid.
extern "C" __global__ void page_stride(const float* a, const float* b, unsigned long long pages,
                                       float* sink) {
  unsigned long long step = static_cast<unsigned long long>(gridDim.x) * blockDim.x;
  for (unsigned long long page = blockIdx.x * blockDim.x + threadIdx.x; page < pages;
       page += step) {
    float value = a[page * kFloatsPerPage] + b[page * kFloatsPerPage];
    if (value == 1.5f) *sink = value;  // never, but the loads must stay
  }
}

// As above with a third array, which is read at a random place among its first `limit` floats.
extern "C" __global__ void page_random(const float* a, const float* b, const float* c,
                                       unsigned long long pages, unsigned long long limit,
                                       float* sink) {
  unsigned long long step = static_cast<unsigned long long>(gridDim.x) * blockDim.x;
  for (unsigned long long page = blockIdx.x * blockDim.x + threadIdx.x; page < pages;
       page += step) {
    unsigned long long at = (Scrambled(static_cast<unsigned>(page)) & 0x7fffffffu) % limit;
    float value = a[page * kFloatsPerPage] + b[page * kFloatsPerPage] + c[at];
    if (value == 1.5f) *sink = value;
  }
}

// Every element once, by a thread of its own.
extern "C" __global__ void vector_add(const float* a, const float* b, float* c,
                                      unsigned long long count) {
  unsigned long long i = static_cast<unsigned long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) c[i] = a[i] + b[i];
}

// A write to each page.
extern "C" __global__ void page_write(float* a, unsigned long long pages, float value) {
  unsigned long long step = static_cast<unsigned long long>(gridDim.x) * blockDim.x;
  for (unsigned long long page = blockIdx.x * blockDim.x + threadIdx.x; page < pages;
       page += step) {
    a[page * kFloatsPerPage] = value;
  }
}
