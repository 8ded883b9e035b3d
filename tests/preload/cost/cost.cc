// SPDX-License-Identifier: Apache-2.0
// Calls one function of the driver many times: cost CASE COUNT. On the driver that does nothing,
// the instructions of COUNT calls are those of the hooks. The difference between two counts leaves
// out the start.
#include <cuda.h>
#include <dlfcn.h>
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

uint64_t Shuffle(uint64_t x) {  // xorshift
  x ^= x << 13;
  x ^= x >> 7;
  return x ^ x << 17;
}

// A kernel with `words` words of arguments, all of them pointers.
void Launch(int count, size_t words) {
  std::vector<CUdeviceptr> memory;
  for (int i = 0; i < 8; ++i) memory.push_back(Allocate(4 * kMiB));
  std::vector<CUdeviceptr> structure(words);
  for (size_t i = 0; i < words; ++i) structure[i] = memory[i % 8];
  void* parameters[8];
  for (int i = 0; i < 8; ++i) parameters[i] = words > 8 ? structure.data() : &memory[i];
  for (int i = 0; i < count; ++i) {
    cuLaunchKernel(reinterpret_cast<CUfunction>(words), 1, 1, 1, 32, 1, 1, 0, nullptr, parameters,
                   nullptr);
  }
}

// Eight pointers, other ones from launch to launch and without a period: a window of a long list.
void LaunchInNoOrder(int count) {
  Allocate(8 * kMiB);  // what else does not fit
  CUdeviceptr memory[8];
  for (CUdeviceptr& address : memory) address = Allocate(kMiB);
  std::vector<void*> parameters(1 << 16);
  uint64_t random = 1;
  for (void*& parameter : parameters) parameter = &memory[(random = Shuffle(random)) % 8];
  for (int i = 0; i < count; ++i) {
    random = Shuffle(random);
    cuLaunchKernel(reinterpret_cast<CUfunction>(8), 1, 1, 1, 32, 1, 1, 0, nullptr,
                   &parameters[random % (parameters.size() - 8)], nullptr);
  }
}

using Allocator = CUresult (*)(CUdeviceptr*, size_t);

void AllocFree(int count, size_t bytes, Allocator allocate = cuMemAlloc) {
  std::vector<CUdeviceptr> held(2000);
  for (CUdeviceptr& address : held) address = Allocate(bytes);
  for (int i = 0; i < count; ++i) {
    CUdeviceptr& address = held[static_cast<size_t>(i) * 7919 % held.size()];
    cuMemFree(address);
    if (allocate(&address, bytes) != CUDA_SUCCESS) exit(1);
  }
}

void* Open(const char* library) {
  void* handle = dlopen(library, RTLD_NOW);
  if (handle == nullptr) exit(1);
  return handle;
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
  if (is("launch")) Launch(count, 8);
  if (is("launch_4k")) Launch(count, 512);
  if (is("launch_no_order")) LaunchInNoOrder(count);
  if (is("alloc_free_2m")) AllocFree(count, 2 * kMiB);
  if (is("alloc_free_64k")) AllocFree(count, 64 << 10);
  if (is("alloc_free_beside_exporter")) {
    Open(COST_EXPORTER);
    AllocFree(count, 2 * kMiB);
  }
  if (is("alloc_free_by_runtime")) {
    Open(COST_EXPORTER);
    void* allocate = dlsym(Open(COST_RUNTIME), "CostAllocate");
    AllocFree(count, 2 * kMiB, reinterpret_cast<Allocator>(allocate));
  }
  if (is("lookup")) Lookup(count);
  return 0;
}
