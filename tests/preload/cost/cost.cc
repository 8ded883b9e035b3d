// SPDX-License-Identifier: Apache-2.0
// Calls one function of the driver many times: cost CASE COUNT. On the driver that does nothing,
// the instructions of COUNT calls are those of the hooks. The difference between two counts leaves
// out the start.
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <vector>

namespace {

constexpr size_t kMiB = 1u << 20;

CUdeviceptr Allocate(size_t bytes) {
  CUdeviceptr address = 0;
  if (cuMemAlloc(&address, bytes) != CUDA_SUCCESS) exit(1);
  return address;
}

// A kernel with `words` words of arguments, all of them pointers, in the same order each time; or
// in another one from launch to launch, without a period (xorshift).
void Launch(int count, size_t words, bool no_order) {
  constexpr size_t kTensors = 8;
  std::vector<CUdeviceptr> memory;
  for (size_t i = 0; i < kTensors; ++i) memory.push_back(Allocate(4 * kMiB));
  std::vector<CUdeviceptr> structure(words);
  for (size_t i = 0; i < words; ++i) structure[i] = memory[i % kTensors];
  void* parameters[2 * kTensors];
  for (size_t i = 0; i < 2 * kTensors; ++i) parameters[i] = &memory[i % kTensors];
  void* in_structure[] = {structure.data()};
  uint64_t order = 1;
  for (int i = 0; i < count; ++i) {
    if (no_order) {
      order ^= order << 13;
      order ^= order >> 7;
      order ^= order << 17;
    }
    cuLaunchKernel(reinterpret_cast<CUfunction>(words), 1, 1, 1, 32, 1, 1, 0, nullptr,
                   words > kTensors ? in_structure : parameters + order % kTensors, nullptr);
  }
}

void AllocFree(int count, size_t bytes) {
  std::vector<CUdeviceptr> held(2000);
  for (CUdeviceptr& address : held) address = Allocate(bytes);
  for (int i = 0; i < count; ++i) {
    CUdeviceptr& address = held[static_cast<size_t>(i) * 7919 % held.size()];
    cuMemFree(address);
    address = Allocate(bytes);
  }
}

void Lookup(int count) {
  for (int i = 0; i < count; ++i) {
    void* function;
    CUdriverProcAddressQueryResult status;
    cuGetProcAddress("cuLaunchKernel", &function, 13000, 0, &status);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const int count = atoi(argv[2]);
  const auto is = [&](const char* name) { return strcmp(argv[1], name) == 0; };
  if (cuCtxSetCurrent(reinterpret_cast<CUcontext>(0x1000)) != CUDA_SUCCESS) return 1;
  if (is("launch")) Launch(count, 8, false);
  if (is("launch_4k")) Launch(count, 512, false);
  if (is("launch_no_order")) Launch(count, 8, true);
  if (is("alloc_free_2m")) AllocFree(count, 2 * kMiB);
  if (is("alloc_free_64k")) AllocFree(count, 64 << 10);
  if (is("lookup")) Lookup(count);
  return 0;
}
