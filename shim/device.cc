// SPDX-License-Identifier: Apache-2.0
#include "shim/device.h"

#include <string.h>

#include <algorithm>
#include <mutex>
#include <new>

#include "shim/lifecycle.h"
#include "shim/resolve.h"
#include "shim/settings.h"
#include "shim/shimlog.h"

namespace atp::shim {
namespace {

std::mutex mutex;
Device devices[kMaxDevices];
std::atomic<bool> seen[kMaxDevices];

// Contexts seen so far. Written under the lock, read without: an entry is complete before its
// context is published.
constexpr size_t kMaxContexts = 256;
struct ContextEntry {
  std::atomic<CUcontext> context{nullptr};
  Device* device = nullptr;
  bool primary = false;
};
ContextEntry contexts[kMaxContexts];
std::atomic<size_t> context_count{0};

int Attribute(CUdevice_attribute attribute, CUdevice device) {
  int value = 0;
  if (real().cuDeviceGetAttribute == nullptr ||
      real().cuDeviceGetAttribute(&value, attribute, device) != CUDA_SUCCESS) {
    return 0;
  }
  return value;
}

uint64_t ChooseBudget(const Device& device) {
  // What others have taken is gone already; head-room is the loop's.
  const uint64_t usual = device.free_at_start;
  const Size& wanted = Settings().budget.Of(device.ordinal);
  if (!wanted.given) return usual;
  const uint64_t budget = wanted.Of(device.total);
  if (budget > device.total) {
    ATP_LOG_ERROR(
        "ATP_BUDGET=%s is more than device %d (%s) has, %s: using %s; give at most that, "
        "or a percentage",
        HumanBytes(budget).text(), device.ordinal, device.name, HumanBytes(device.total).text(),
        HumanBytes(usual).text());
    return usual;
  }
  return budget;
}

// From its UUID.
uint64_t CardOf(int ordinal) {
  CUuuid uuid{};
  const bool told =
      real().cuDeviceGetUuid != nullptr && real().cuDeviceGetUuid(&uuid, ordinal) == CUDA_SUCCESS;
  uint64_t halves[2] = {static_cast<uint64_t>(ordinal) + 1, 0};
  static_assert(sizeof halves == sizeof uuid);
  if (told) memcpy(halves, &uuid, sizeof halves);
  return halves[0] ^ halves[1] * 0x9E3779B97F4A7C15u;
}

bool Describe(Device* device, CUcontext context, int ordinal) {
  device->ordinal = ordinal;
  device->context = context;
  if (real().cuDeviceGetName != nullptr) {
    real().cuDeviceGetName(device->name, sizeof device->name - 1, ordinal);
  }
  size_t free = 0, total = 0;
  if (real().cuMemGetInfo_v2(&free, &total) != CUDA_SUCCESS) return false;
  device->total = total;
  device->free_at_start = free;
  device->budget = ChooseBudget(*device);
  device->card = CardOf(ordinal);
  const bool managed = Attribute(CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, ordinal) != 0 &&
                       Attribute(CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, ordinal) != 0;
  const bool coherent =
      Attribute(CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES, ordinal) != 0;
  device->can_manage = managed && !coherent && real().cuMemAllocManaged != nullptr;
  if (!device->can_manage) {
    ATP_LOG_WARN("device %d (%s) cannot be served: %s; its memory stays plain device memory",
                 ordinal, device->name,
                 coherent ? "host and device memory are coherent, moving is the hardware's work"
                          : "it has no concurrent managed access");
  }
  ATP_LOG_INFO("device %d (%s): %s, free %s, budget %s", ordinal, device->name,
               HumanBytes(total).text(), HumanBytes(free).text(),
               HumanBytes(device->budget).text());
  return true;
}

Device* Lookup(CUcontext context) {
  const size_t count = context_count.load(std::memory_order_acquire);
  for (size_t i = 0; i < count; ++i) {
    if (contexts[i].context.load(std::memory_order_acquire) == context) return contexts[i].device;
  }
  return nullptr;
}

// The driver does not tell whether a context is the primary one. Retaining gives the primary one,
// and is undone at once.
bool IsPrimary(CUcontext context, int ordinal) {
  unsigned flags = 0;
  int active = 0;
  CUcontext primary = nullptr;
  const auto release = real().cuDevicePrimaryCtxRelease_v2 != nullptr
                           ? real().cuDevicePrimaryCtxRelease_v2
                           : real().cuDevicePrimaryCtxRelease;
  if (release == nullptr || real().cuDevicePrimaryCtxRetain == nullptr ||
      real().cuDevicePrimaryCtxGetState == nullptr ||
      real().cuDevicePrimaryCtxGetState(ordinal, &flags, &active) != CUDA_SUCCESS || active == 0 ||
      real().cuDevicePrimaryCtxRetain(&primary, ordinal) != CUDA_SUCCESS) {
    return false;
  }
  release(ordinal);
  return primary == context;
}

void Publish(CUcontext context, Device* device) {
  const size_t count = context_count.load(std::memory_order_relaxed);
  for (size_t i = 0; i <= count && i < kMaxContexts; ++i) {
    if (contexts[i].context.load(std::memory_order_relaxed) != nullptr) continue;
    contexts[i].device = device;
    contexts[i].primary = IsPrimary(context, device->ordinal);
    contexts[i].context.store(context, std::memory_order_release);
    if (i == count) context_count.store(count + 1, std::memory_order_release);
    return;
  }
}

Device* Meet(CUcontext context) {
  CUdevice ordinal = -1;
  if (real().cuCtxGetDevice == nullptr || real().cuCtxGetDevice(&ordinal) != CUDA_SUCCESS) {
    return nullptr;
  }
  if (ordinal < 0 || ordinal >= kMaxDevices) return nullptr;
  Device* device = &devices[ordinal];
  {
    std::lock_guard lock(mutex);
    if (Device* known = Lookup(context)) return known;
    if (!seen[ordinal].load() && !Describe(device, context, ordinal)) return nullptr;
    Publish(context, device);
    seen[ordinal].store(true, std::memory_order_release);
  }
  NoteContextInUse();
  return device;
}

}  // namespace

Device* CurrentDevice(CUcontext* context) {
  *context = nullptr;
  if (real().cuCtxGetCurrent == nullptr || real().cuCtxGetCurrent(context) != CUDA_SUCCESS ||
      *context == nullptr) {
    return nullptr;
  }
  Device* device = Lookup(*context);
  return device != nullptr ? device : Meet(*context);
}

Device* CurrentDevice() {
  CUcontext context;
  return CurrentDevice(&context);
}

Device* DeviceOf(int ordinal) {
  if (ordinal < 0 || ordinal >= kMaxDevices || !seen[ordinal].load(std::memory_order_acquire)) {
    return nullptr;
  }
  return &devices[ordinal];
}

CUcontext PrimaryContextOf(int ordinal) {
  const Device* device = DeviceOf(ordinal);
  for (const ContextEntry& entry : contexts) {
    const CUcontext context = entry.context.load(std::memory_order_acquire);
    if (context != nullptr && entry.device == device && entry.primary) return context;
  }
  return nullptr;
}

size_t ContextsSeen() {
  size_t count = 0;
  for (size_t i = 0; i < context_count.load(std::memory_order_acquire); ++i) {
    count += contexts[i].context.load(std::memory_order_relaxed) != nullptr;
  }
  return count;
}

bool EachContext(bool (*visit)(CUcontext context)) {
  for (size_t i = 0; i < context_count.load(std::memory_order_acquire); ++i) {
    const CUcontext context = contexts[i].context.load(std::memory_order_acquire);
    if (context != nullptr && !visit(context)) return false;
  }
  return true;
}

static std::atomic<uint32_t> contexts_forgotten{0};
uint32_t ContextsForgotten() { return contexts_forgotten; }

void ForgetContext(CUcontext context) {
  ++contexts_forgotten;
  std::lock_guard lock(mutex);
  for (ContextEntry& entry : contexts) {
    if (entry.context.load(std::memory_order_relaxed) == context) {
      entry.context.store(nullptr, std::memory_order_release);
    }
  }
}

void ResetDevicesAfterFork() { new (&mutex) std::mutex; }

uint64_t EffectiveBudget(const Device& device) {
  uint64_t share = device.share.load(std::memory_order_relaxed);
  if (share == 0) share = device.beside.load(std::memory_order_relaxed);
  if (share == 0) return device.budget;
  const bool limited = Settings().budget.Of(device.ordinal).given;
  return limited ? std::min(share, device.budget) : share;
}

uint64_t ManagedRoom(const Device& device) {
  const uint64_t native = device.native.load(std::memory_order_relaxed);
  const uint64_t budget = EffectiveBudget(device);
  return budget > native ? budget - native : 0;
}

uint64_t DeviceBudget(int ordinal) {
  const Device* device = DeviceOf(ordinal);
  return device != nullptr ? EffectiveBudget(*device) : 0;
}

uint64_t NativeBytes(int ordinal) {
  const Device* device = DeviceOf(ordinal);
  return device != nullptr ? device->native.load(std::memory_order_relaxed) : 0;
}

}  // namespace atp::shim
