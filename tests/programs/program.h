// SPDX-License-Identifier: Apache-2.0
// What the programs of this folder share. Each is an ordinary CUDA program that computes something,
// compares it with its own CPU reference and ends with 0 only if the results agree, no CUDA call
// failed, and every launch really ran on the device. Prints "checksum N" of its result, so that two
// runs can be compared, and "footprint N" in bytes. A number as argument makes some of them larger.
#pragma once

#include <cuda_runtime.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace program {

[[noreturn]] inline void Fail(const char* what, const char* why, const char* file, int line) {
  std::printf("FAIL %s:%d: %s: %s\n", file, line, what, why);
  std::exit(1);
}

// Every CUDA call goes through this.
#define CUDA_OK(call)                                                              \
  do {                                                                             \
    const cudaError_t cuda_ok_error = (call);                                      \
    if (cuda_ok_error != cudaSuccess)                                              \
      program::Fail(#call, cudaGetErrorString(cuda_ok_error), __FILE__, __LINE__); \
  } while (0)

#define EXPECT(condition)                                                             \
  do {                                                                                \
    if (!(condition)) program::Fail(#condition, "does not hold", __FILE__, __LINE__); \
  } while (0)

// Kernels that ran, as the device counted them. First line of every kernel: COUNT_LAUNCH();
__device__ unsigned launches_on_device;

#define COUNT_LAUNCH()                                                                       \
  do {                                                                                       \
    if (threadIdx.x + threadIdx.y + threadIdx.z + blockIdx.x + blockIdx.y + blockIdx.z == 0) \
      atomicAdd(&program::launches_on_device, 1u);                                           \
  } while (0)

inline size_t& Footprint() {
  static size_t bytes = 0;
  return bytes;
}

// Device memory that is poisoned at first, so that a kernel that does not run cannot leave a right
// result behind.
template <typename T>
class Buffer {
 public:
  explicit Buffer(size_t count) : count_(count) {
    CUDA_OK(cudaMalloc(&pointer_, bytes()));
    CUDA_OK(cudaMemset(pointer_, 0xA5, bytes()));
    Footprint() += bytes();
  }
  explicit Buffer(const std::vector<T>& values) : Buffer(values.size()) { Upload(values); }
  ~Buffer() { CUDA_OK(cudaFree(pointer_)); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  void Upload(const std::vector<T>& values) {
    EXPECT(values.size() == count_);
    CUDA_OK(cudaMemcpy(pointer_, values.data(), bytes(), cudaMemcpyHostToDevice));
  }
  std::vector<T> Download() const {
    CUDA_OK(cudaGetLastError());  // a launch that was refused
    std::vector<T> values(count_);
    CUDA_OK(cudaMemcpy(values.data(), pointer_, bytes(), cudaMemcpyDeviceToHost));
    return values;
  }
  T* get() const { return pointer_; }
  size_t bytes() const { return count_ * sizeof(T); }

 private:
  T* pointer_ = nullptr;
  size_t count_;
};

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 2654435761u + 1) {}
  uint32_t Next() {
    state_ = state_ * 6364136223846793005ull + 1442695040888963407ull;
    return static_cast<uint32_t>(state_ >> 33);
  }
  uint32_t Below(uint32_t limit) { return Next() % limit; }
  float Uniform() { return static_cast<float>(Next() & 0xffffff) / 16777216.0f; }
  std::vector<float> Floats(size_t count, float low = 0, float high = 1) {
    std::vector<float> values(count);
    for (float& v : values) v = low + (high - low) * Uniform();
    return values;
  }

 private:
  uint64_t state_;
};

// How many times larger than usual the problem shall be: the program's argument, 1 without.
inline int Scale(int argc, char** argv) {
  const int scale = argc > 1 ? std::atoi(argv[1]) : 1;
  EXPECT(scale >= 1);
  return scale;
}

inline unsigned Blocks(size_t count, unsigned threads) {
  return static_cast<unsigned>((count + threads - 1) / threads);
}

template <typename T>
void ExpectEqual(const std::vector<T>& actual, const std::vector<T>& expected) {
  EXPECT(actual.size() == expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    if (actual[i] == expected[i]) continue;
    std::printf("FAIL value %zu is %.9g, expected %.9g\n", i, double(actual[i]),
                double(expected[i]));
    std::exit(1);
  }
}

// Largest deviation relative to the largest expected value.
inline void ExpectNear(const std::vector<float>& actual, const std::vector<float>& expected,
                       double tolerance) {
  EXPECT(actual.size() == expected.size());
  double size = 0;
  for (float e : expected) size = std::fmax(size, std::fabs(double(e)));
  for (size_t i = 0; i < actual.size(); ++i) {
    if (std::fabs(double(actual[i]) - expected[i]) <= tolerance * size) continue;
    std::printf("FAIL value %zu is %.9g, expected %.9g\n", i, double(actual[i]),
                double(expected[i]));
    std::exit(1);
  }
}

// The last line of main: returns 0 when exactly `launches` kernels ran.
template <typename T>
int Finish(const std::vector<T>& result, unsigned launches) {
  CUDA_OK(cudaDeviceSynchronize());
  CUDA_OK(cudaGetLastError());
  unsigned ran = 0;
  CUDA_OK(cudaMemcpyFromSymbol(&ran, launches_on_device, sizeof(ran)));
  if (ran != launches) {
    std::printf("FAIL %u kernels ran, %u were launched\n", ran, launches);
    return 1;
  }
  uint64_t sum = 0xcbf29ce484222325ull;
  const auto* bytes = reinterpret_cast<const unsigned char*>(result.data());
  for (size_t i = 0; i < result.size() * sizeof(T); ++i) sum = (sum ^ bytes[i]) * 0x100000001b3ull;
  std::printf("checksum %016llx\nfootprint %zu\nPASS %u launches\n",
              static_cast<unsigned long long>(sum), Footprint(), ran);
  return 0;
}

}  // namespace program
