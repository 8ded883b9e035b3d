// SPDX-License-Identifier: Apache-2.0
// A driver of a few functions behind real(), for tests in one process: memory is addresses, every
// call is remembered. Its functions may be called from any thread.
#pragma once

#include <stdlib.h>

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "shim/resolve.h"
#include "shim/settings.h"
#include "shim/tracker.h"

namespace atp::shim {

struct FakeReal {
  static constexpr uint64_t kGiB = 1ull << 30;
  static inline std::vector<std::string> calls;
  static inline std::map<CUdeviceptr, size_t> managed, native;
  static inline CUdeviceptr next = 0x100000000000;
  static inline CUresult managed_result = CUDA_SUCCESS, native_result = CUDA_SUCCESS,
                         free_result = CUDA_SUCCESS;
  static inline uint64_t misalign = 0;
  static inline CUcontext current = reinterpret_cast<CUcontext>(0x100);
  static inline std::mutex mutex;

  static CUresult Take(std::map<CUdeviceptr, size_t>* kind, CUdeviceptr* address, size_t bytes) {
    if (address == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *address = next + misalign;
    next += RoundUpToGranule(bytes + misalign);
    (*kind)[*address] = bytes;
    return CUDA_SUCCESS;
  }

  // One budget and host share for the whole test program, since settings are read once.
  static void Install() {
    setenv("ATP_POLICY", "managed", 1);
    setenv("ATP_BUDGET", "1GiB", 1);
    setenv("ATP_HOST_BUDGET", "4GiB", 1);
    setenv("ATP_LEDGER", "off", 1);
    ReadSettings();
    calls.clear();
    managed_result = native_result = free_result = CUDA_SUCCESS;
    misalign = 0;
    g_real = RealDriver{};
    g_real.cuCtxGetCurrent = [](CUcontext* context) { return *context = current, CUDA_SUCCESS; };
    g_real.cuCtxGetDevice = [](CUdevice* device) { return *device = 0, CUDA_SUCCESS; };
    g_real.cuCtxSynchronize = [] {
      std::lock_guard lock(mutex);
      return calls.push_back("sync"), CUDA_SUCCESS;
    };
    g_real.cuDeviceGetAttribute = [](int* value, CUdevice_attribute attribute, CUdevice) {
      *value = attribute != CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES;
      return CUDA_SUCCESS;
    };
    g_real.cuMemGetInfo_v2 = [](size_t* free, size_t* total) {
      *free = 15 * kGiB;
      *total = 16 * kGiB;
      return CUDA_SUCCESS;
    };
    g_real.cuMemAllocManaged = [](CUdeviceptr* address, size_t bytes, unsigned) {
      std::lock_guard lock(mutex);
      calls.push_back("managed");
      return managed_result == CUDA_SUCCESS ? Take(&managed, address, bytes) : managed_result;
    };
    g_real.cuMemAlloc_v2 = [](CUdeviceptr* address, size_t bytes) {
      std::lock_guard lock(mutex);
      calls.push_back("native");
      return native_result == CUDA_SUCCESS ? Take(&native, address, bytes) : native_result;
    };
    g_real.cuMemFree_v2 = [](CUdeviceptr address) {
      std::lock_guard lock(mutex);
      calls.push_back("free");
      if (free_result != CUDA_SUCCESS) return free_result;
      if (managed.erase(address) + native.erase(address) == 1) return CUDA_SUCCESS;
      return CUDA_ERROR_INVALID_VALUE;
    };
  }
};

}  // namespace atp::shim
