// SPDX-License-Identifier: Apache-2.0
// Asks driver and management library how much memory there is: nvml_numbers HOW, where HOW is
// "handle", "default" or "linked".
#include <cuda.h>
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

namespace {
struct Memory {
  unsigned long long total, free, used;
};
struct MemoryV2 {
  unsigned int version;
  unsigned long long total, reserved, free, used;
};
}  // namespace

extern "C" {
int nvmlDeviceGetMemoryInfo(void*, Memory*) __attribute__((weak));
int nvmlDeviceGetMemoryInfo_v2(void*, MemoryV2*) __attribute__((weak));
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const bool everywhere = strcmp(argv[1], "handle") != 0;
  void* library = dlopen("libnvidia-ml.so.1", RTLD_NOW | (everywhere ? RTLD_GLOBAL : RTLD_LOCAL));
  if (library == nullptr) {
    printf("%s\n", dlerror());
    return 1;
  }
  void* from = everywhere ? RTLD_DEFAULT : library;
  auto info = reinterpret_cast<int (*)(void*, Memory*)>(dlsym(from, "nvmlDeviceGetMemoryInfo"));
  auto info_v2 =
      reinterpret_cast<int (*)(void*, MemoryV2*)>(dlsym(from, "nvmlDeviceGetMemoryInfo_v2"));
  if (strcmp(argv[1], "linked") == 0) {
    info = nvmlDeviceGetMemoryInfo;
    info_v2 = nvmlDeviceGetMemoryInfo_v2;
  }
  const auto by_bus = reinterpret_cast<int (*)(const char*, void**)>(
      dlsym(library, "nvmlDeviceGetHandleByPciBusId_v2"));
  if (info == nullptr || info_v2 == nullptr || by_bus == nullptr) return 1;
  void* device = nullptr;
  Memory memory = {};
  MemoryV2 memory_v2 = {};
  by_bus("0000:00:00.0", &device);
  info(device, &memory);
  printf("before CUDA: the library's own %d\n", memory.total == 7ull << 30);
  CUcontext context;
  if (cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS ||
      cuCtxSetCurrent(context) != CUDA_SUCCESS) {
    return 1;
  }
  for (int i = 0; i < 3; ++i) {
    CUdeviceptr address = 0;
    cuMemAlloc(&address, size_t{24} << 20);
    size_t free = 0, total = 0, device_total = 0;
    cuMemGetInfo(&free, &total);
    cuDeviceTotalMem(&device_total, 0);
    info(device, &memory);
    info_v2(device, &memory_v2);
    printf("total agrees %d %d %d\n", total == device_total, total == memory.total,
           total == memory_v2.total - memory_v2.reserved);
    printf("free agrees %d %d\n", free == memory.free, free == memory_v2.free);
    printf("used is the rest %d %d\n", memory.used == memory.total - memory.free,
           memory_v2.used == memory_v2.total - memory_v2.reserved - memory_v2.free);
    printf("MiB: %zu of %zu\n", free >> 20, total >> 20);
  }
  return 0;
}
