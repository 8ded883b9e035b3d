// SPDX-License-Identifier: Apache-2.0
// What both examples do with the device besides computing: check calls, allocate one tensor at a
// time, time, sum up.
#pragma once

#include <cuda_profiler_api.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <string>
#include <vector>

#include "examples/support/options.h"

namespace example {

// Ends the program with a message of its own: exit code 2 when memory ran out, 3 for any other
// error.
inline void Check(cudaError_t error, const char* what, const char* file, int line) {
  if (error == cudaSuccess) return;
  if (error == cudaErrorMemoryAllocation) {
    std::fprintf(stderr, "out of memory: %s\n", what);
    std::exit(kExitOutOfMemory);
  }
  std::fprintf(stderr, "%s:%d: %s: %s (%s)\n", file, line, what, cudaGetErrorString(error),
               cudaGetErrorName(error));
  std::exit(kExitCudaError);
}

#define CHECK_CUDA(call) example::Check((call), #call, __FILE__, __LINE__)

// Device memory, one cudaMalloc each; counts what was allocated.
class DeviceMemory {
 public:
  template <typename T>
  T* Allocate(const std::string& name, size_t count) {
    void* pointer = nullptr;
    const size_t bytes = count * sizeof(T);
    const cudaError_t error = cudaMalloc(&pointer, bytes);
    if (error == cudaErrorMemoryAllocation) {
      std::fprintf(stderr,
                   "out of memory: %s needs %zu bytes, %zu bytes in %zu tensors are in use\n",
                   name.c_str(), bytes, bytes_, pointers_.size());
      std::exit(kExitOutOfMemory);
    }
    Check(error, name.c_str(), __FILE__, __LINE__);
    pointers_.push_back(pointer);
    bytes_ += bytes;
    return static_cast<T*>(pointer);
  }

  void FreeAll() {
    for (void* pointer : pointers_) CHECK_CUDA(cudaFree(pointer));
    pointers_.clear();
  }

  size_t bytes() const { return bytes_; }
  size_t count() const { return pointers_.size(); }

 private:
  std::vector<void*> pointers_;
  size_t bytes_ = 0;
};

// Milliseconds between two points of the default stream, as the device's own clock sees them. A
// profiler is told of the step in between.
class Stopwatch {
 public:
  Stopwatch() {
    CHECK_CUDA(cudaEventCreate(&start_));
    CHECK_CUDA(cudaEventCreate(&stop_));
  }
  ~Stopwatch() {
    cudaEventDestroy(start_);
    cudaEventDestroy(stop_);
  }
  void Start() {
    CHECK_CUDA(cudaProfilerStart());
    CHECK_CUDA(cudaEventRecord(start_));
  }
  float Stop() {
    float ms = 0;
    CHECK_CUDA(cudaEventRecord(stop_));
    CHECK_CUDA(cudaEventSynchronize(stop_));
    CHECK_CUDA(cudaProfilerStop());
    CHECK_CUDA(cudaEventElapsedTime(&ms, start_, stop_));
    return ms;
  }

 private:
  cudaEvent_t start_ = nullptr;
  cudaEvent_t stop_ = nullptr;
};

// FNV-1a over 32-bit words: the same bytes give the same number, and any changed bit another one.
template <typename T>
uint64_t Checksum(uint64_t sum, const T* values, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    uint32_t bits;
    static_assert(sizeof(bits) == sizeof(T));
    std::memcpy(&bits, &values[i], sizeof(bits));
    sum = (sum ^ bits) * 0x100000001b3ull;
  }
  return sum;
}
inline constexpr uint64_t kChecksumStart = 0xcbf29ce484222325ull;

inline void PrintChecksum(uint64_t sum) {
  std::printf("checksum %016llx\n", static_cast<unsigned long long>(sum));
}

// Values of device memory, on the host.
template <typename T>
std::vector<T> ReadBack(const T* values, size_t count) {
  std::vector<T> host(count);
  CHECK_CUDA(cudaMemcpy(host.data(), values, count * sizeof(T), cudaMemcpyDeviceToHost));
  return host;
}

}  // namespace example
