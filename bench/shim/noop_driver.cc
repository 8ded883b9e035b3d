// SPDX-License-Identifier: Apache-2.0
// A libcuda.so.1 whose functions return at once: what remains of a call's time is the hook's. Used
// by hook_overhead and by tests of processes. Memory is addresses without memory behind them; every
// kernel has eight parameters of eight bytes; everything is complete as soon as it is submitted.
#include <cuda.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <vector>

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

constexpr uint64_t kGranule = 2u << 20;
constexpr size_t kTotal = size_t{1} << 40;
const CUcontext kContext = reinterpret_cast<CUcontext>(0x1000);
thread_local CUcontext t_current = nullptr;

// Addresses: last freed, first given. On the heap for good, because programs call the driver in
// their last destructors.
std::mutex& mutex = *new std::mutex;
std::vector<CUdeviceptr>& free_list = *new std::vector<CUdeviceptr>;
CUdeviceptr next_address = 0x200000000000;

// With ATP_NOOP_BOOKS set: what is allocated, by address. A driver packs what is small.
const bool books = getenv("ATP_NOOP_BOOKS") != nullptr;
std::unordered_map<CUdeviceptr, size_t>& sizes = *new std::unordered_map<CUdeviceptr, size_t>;
uint64_t mapped = 0;

CUresult Take(CUdeviceptr* address, size_t bytes) {
  std::lock_guard lock(mutex);
  const size_t rounded = (bytes + kGranule - 1) / kGranule * kGranule;
  if (!free_list.empty() && bytes <= kGranule) {
    *address = free_list.back();
    free_list.pop_back();
  } else {
    *address = next_address;
    next_address += rounded;
  }
  if (books) mapped += sizes[*address] = bytes < kGranule / 2 ? (bytes + 511) / 512 * 512 : rounded;
  return CUDA_SUCCESS;
}

CUresult GiveBack(CUdeviceptr address) {
  std::lock_guard lock(mutex);
  if (books) mapped -= sizes[address];
  free_list.push_back(address);
  return CUDA_SUCCESS;
}

}  // namespace

// As NVIDIA's driver does it (CUPTI documentation, "Injection"): the library that is named there is
// loaded, and its entry called.
EXPORT CUresult cuInit(unsigned) {
  static std::once_flag once;
  std::call_once(once, [] {
    const char* path = getenv("CUDA_INJECTION64_PATH");
    void* library = path != nullptr ? dlopen(path, RTLD_NOW) : nullptr;
    void* entry = library != nullptr ? dlsym(library, "InitializeInjection") : nullptr;
    if (entry != nullptr) reinterpret_cast<int (*)()>(entry)();
  });
  return CUDA_SUCCESS;
}
EXPORT CUresult cuDriverGetVersion(int* version) { return *version = 13000, CUDA_SUCCESS; }
EXPORT CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  return *device = ordinal, CUDA_SUCCESS;
}
EXPORT CUresult cuDeviceGetCount(int* count) { return *count = 1, CUDA_SUCCESS; }
EXPORT CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice) {
  return *bytes = kTotal, CUDA_SUCCESS;
}
EXPORT CUresult cuDeviceGetName(char* name, int length, CUdevice) {
  strncpy(name, "no-op device", static_cast<size_t>(length));
  return CUDA_SUCCESS;
}
EXPORT CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice) {
  *value = attribute == CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY ||
           attribute == CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice) {
  return *context = kContext, CUDA_SUCCESS;
}
EXPORT CUresult cuDevicePrimaryCtxRelease_v2(CUdevice) { return CUDA_SUCCESS; }
EXPORT CUresult cuDevicePrimaryCtxGetState(CUdevice, unsigned* flags, int* active) {
  *flags = 0;
  *active = 1;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuCtxGetCurrent(CUcontext* context) { return *context = t_current, CUDA_SUCCESS; }
EXPORT CUresult cuCtxSetCurrent(CUcontext context) { return t_current = context, CUDA_SUCCESS; }
EXPORT CUresult cuCtxPushCurrent_v2(CUcontext context) { return t_current = context, CUDA_SUCCESS; }
EXPORT CUresult cuCtxPopCurrent_v2(CUcontext* context) {
  return *context = t_current, CUDA_SUCCESS;
}
EXPORT CUresult cuCtxGetDevice(CUdevice* device) { return *device = 0, CUDA_SUCCESS; }
EXPORT CUresult cuCtxSynchronize() { return CUDA_SUCCESS; }
EXPORT CUresult cuMemGetInfo_v2(size_t* free, size_t* total) {
  *free = *total = kTotal;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuMemAlloc_v2(CUdeviceptr* address, size_t bytes) { return Take(address, bytes); }
EXPORT CUresult cuMemAllocManaged(CUdeviceptr* address, size_t bytes, unsigned) {
  return Take(address, bytes);
}
// Bytes that are allocated now. For bin/bench/heap.
EXPORT uint64_t atpNoopMapped(void) {
  std::lock_guard lock(mutex);
  return mapped;
}
EXPORT CUresult cuMemAllocAsync(CUdeviceptr* address, size_t bytes, CUstream) {
  return Take(address, bytes);
}
EXPORT CUresult cuMemFreeAsync(CUdeviceptr address, CUstream) { return GiveBack(address); }
EXPORT CUresult cuDeviceGetMemPool(CUmemoryPool* pool, CUdevice) {
  return *pool = reinterpret_cast<CUmemoryPool>(0x3000), CUDA_SUCCESS;
}
EXPORT CUresult cuDeviceGetDefaultMemPool(CUmemoryPool* pool, CUdevice) {
  return *pool = reinterpret_cast<CUmemoryPool>(0x3000), CUDA_SUCCESS;
}
EXPORT CUresult cuMemFree_v2(CUdeviceptr address) { return GiveBack(address); }
EXPORT CUresult cuMemPrefetchAsync_v2(CUdeviceptr, size_t, CUmemLocation, unsigned, CUstream) {
  return CUDA_SUCCESS;
}
EXPORT CUresult cuStreamCreate(CUstream* stream, unsigned) {
  static std::atomic<uintptr_t> next{0x2000};
  return *stream = reinterpret_cast<CUstream>(next++), CUDA_SUCCESS;
}
EXPORT CUresult cuStreamDestroy_v2(CUstream) { return CUDA_SUCCESS; }
EXPORT CUresult cuStreamQuery(CUstream) { return CUDA_SUCCESS; }
EXPORT CUresult cuStreamSynchronize(CUstream) { return CUDA_SUCCESS; }
EXPORT CUresult cuStreamWaitEvent(CUstream, CUevent, unsigned) { return CUDA_SUCCESS; }
EXPORT CUresult cuEventCreate(CUevent* event, unsigned) {
  static std::atomic<uintptr_t> next{0x100000};
  return *event = reinterpret_cast<CUevent>(next++), CUDA_SUCCESS;
}
EXPORT CUresult cuEventDestroy_v2(CUevent) { return CUDA_SUCCESS; }
EXPORT CUresult cuEventRecord(CUevent, CUstream) { return CUDA_SUCCESS; }
EXPORT CUresult cuEventQuery(CUevent) { return CUDA_SUCCESS; }
EXPORT CUresult cuEventSynchronize(CUevent) { return CUDA_SUCCESS; }
EXPORT CUresult cuEventElapsedTime_v2(float* milliseconds, CUevent, CUevent) {
  return *milliseconds = 1.0f, CUDA_SUCCESS;
}
EXPORT CUresult cuFuncGetParamInfo(CUfunction function, size_t index, size_t* offset,
                                   size_t* size) {
  // Handles are numbers: how many eight-byte words of parameters the kernel takes; beyond 8 they
  // come as one structure.
  const size_t words = reinterpret_cast<uintptr_t>(function);
  if (index >= (words > 8 ? 1 : words)) return CUDA_ERROR_INVALID_VALUE;
  *offset = 8 * index;
  *size = words > 8 ? 8 * words : 8;
  return CUDA_SUCCESS;
}
// Nothing in a map looks like the address; maps of different tensors differ.
EXPORT CUresult cuTensorMapEncodeTiled(CUtensorMap* map, CUtensorMapDataType, cuuint32_t,
                                       void* address, const cuuint64_t*, const cuuint64_t*,
                                       const cuuint32_t*, const cuuint32_t*, CUtensorMapInterleave,
                                       CUtensorMapSwizzle, CUtensorMapL2promotion,
                                       CUtensorMapFloatOOBfill) {
  memset(map, 0, sizeof *map);
  map->opaque[0] = ~reinterpret_cast<uintptr_t>(address);
  return CUDA_SUCCESS;
}
EXPORT CUresult cuLaunchKernel(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned,
                               unsigned, unsigned, CUstream, void**, void**) {
  return CUDA_SUCCESS;
}

EXPORT CUresult cuGetProcAddress_v2(const char* symbol, void** function, int, cuuint64_t,
                                    CUdriverProcAddressQueryResult* status) {
  *function =
      strcmp(symbol, "cuLaunchKernel") == 0 ? reinterpret_cast<void*>(&cuLaunchKernel) : nullptr;
  const bool found = *function != nullptr;
  if (status != nullptr) {
    *status = found ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  }
  return found ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}
