// SPDX-License-Identifier: Apache-2.0
#include "shim/nvml.h"

#include <dlfcn.h>
#include <string.h>

#include <atomic>

#include "shim/device.h"
#include "shim/lifecycle.h"
#include "shim/lookup.h"
#include "shim/memory_numbers.h"
#include "shim/reentry.h"
#include "shim/resolve.h"
#include "shim/settings.h"

namespace {

using NvmlDevice = void*;
struct NvmlMemory {
  unsigned long long total, free, used;
};
struct NvmlMemoryV2 {
  unsigned int version;
  unsigned long long total, reserved, free, used;
};
constexpr int kUninitialized = 1, kSuccess = 0;

using MemoryInfo = int (*)(NvmlDevice, NvmlMemory*);
using MemoryInfoV2 = int (*)(NvmlDevice, NvmlMemoryV2*);
using HandleByBus = int (*)(const char*, NvmlDevice*);

std::atomic<void*> real_info{nullptr}, real_info_v2{nullptr};

void* Library() {
  static void* handle = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_NOLOAD);
  return handle;
}

void* Real(std::atomic<void*>* known, const char* name) {
  void* function = known->load(std::memory_order_acquire);
  if (function != nullptr) return function;
  if (void* library = Library()) function = atp::shim::RealDlsym(library, name);
  known->store(function, std::memory_order_release);
  return function;
}

// Which of the devices that CUDA has been used on this is. NVML counts them in an order of its own.
const atp::shim::Device* DeviceFor(NvmlDevice asked) {
  using namespace atp::shim;
  const auto by_bus = reinterpret_cast<HandleByBus>(
      Library() != nullptr ? RealDlsym(Library(), "nvmlDeviceGetHandleByPciBusId_v2") : nullptr);
  if (by_bus == nullptr || !Serving() || real().cuDeviceGetPCIBusId == nullptr) return nullptr;
  for (int ordinal = 0; ordinal < kMaxDevices; ++ordinal) {
    const Device* device = DeviceOf(ordinal);
    char bus[32] = "";
    NvmlDevice found = nullptr;
    if (device == nullptr || real().cuDeviceGetPCIBusId(bus, sizeof bus, ordinal) != CUDA_SUCCESS ||
        by_bus(bus, &found) != kSuccess || found != asked) {
      continue;
    }
    return device;
  }
  return nullptr;
}

// The same numbers as cuMemGetInfo's; what the card keeps for itself is in neither.
template <typename Memory>
void Correct(NvmlDevice asked, Memory* memory, unsigned long long reserved) {
  const atp::shim::Device* device = DeviceFor(asked);
  if (device == nullptr) return;
  size_t free = memory->free, total = device->total;
  atp::shim::CorrectMemoryInfo(device, &free, &total);
  memory->total = total + reserved;
  memory->free = free;
  memory->used = total - free;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int nvmlDeviceGetMemoryInfo(NvmlDevice device,
                                                                              NvmlMemory* memory) {
  const atp::shim::Reentry guard;
  const auto real = reinterpret_cast<MemoryInfo>(Real(&real_info, "nvmlDeviceGetMemoryInfo"));
  if (real == nullptr) return kUninitialized;
  const int result = real(device, memory);
  if (result == kSuccess && guard.outermost()) Correct(device, memory, 0);
  return result;
}

extern "C" __attribute__((visibility("default"))) int nvmlDeviceGetMemoryInfo_v2(
    NvmlDevice device, NvmlMemoryV2* memory) {
  const atp::shim::Reentry guard;
  const auto real =
      reinterpret_cast<MemoryInfoV2>(Real(&real_info_v2, "nvmlDeviceGetMemoryInfo_v2"));
  if (real == nullptr) return kUninitialized;
  const int result = real(device, memory);
  if (result == kSuccess && guard.outermost()) Correct(device, memory, memory->reserved);
  return result;
}

namespace atp::shim {

void* NvmlHookOf(const char* name, void* found) {
  const struct {
    const char* name;
    std::atomic<void*>* real;
    void* hook;
  } kHooked[] = {
      {"nvmlDeviceGetMemoryInfo", &real_info, reinterpret_cast<void*>(&nvmlDeviceGetMemoryInfo)},
      {"nvmlDeviceGetMemoryInfo_v2", &real_info_v2,
       reinterpret_cast<void*>(&nvmlDeviceGetMemoryInfo_v2)}};
  for (const auto& row : kHooked) {
    if (strcmp(name, row.name) != 0) continue;
    if (found != nullptr && found != row.hook) row.real->store(found, std::memory_order_release);
    return row.hook;
  }
  return nullptr;
}

}  // namespace atp::shim
