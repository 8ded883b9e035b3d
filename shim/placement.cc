// SPDX-License-Identifier: Apache-2.0
#include "shim/placement.h"

#include "shim/capture.h"
#include "shim/host_memory.h"
#include "shim/lifecycle.h"
#include "shim/loop.h"
#include "shim/native_sizes.h"
#include "shim/populate.h"
#include "shim/resolve.h"
#include "shim/settings.h"
#include "shim/shimlog.h"
#include "shim/slab.h"

namespace atp::shim {

std::atomic<bool> g_watching{false};

namespace {

std::atomic<uint64_t> promised{0};  // managed bytes on all devices, against the host share

bool Learned() { return Settings().policy == Policy::kLearned; }

// The loop keeps head-room of its own below the budget; watching starts a little earlier, so that
// it never misses a launch.
void WatchIfNear(const Device& device) {
  if (Watching()) return;
  const uint64_t room = ManagedRoom(device);
  const uint64_t margin = room / 8 + kGranule;
  const bool near = device.managed.load(std::memory_order_relaxed) + margin > room;
  if (!near && Settings().trace_file[0] == '\0') return;
  if (Learned()) g_watching.store(true, std::memory_order_relaxed);
}

// Without a policy nobody else says it.
void SayOnceThatMemoryMoves(const Device& device) {
  static std::atomic<bool> said{false};
  const Usage usage = UsageOf(device);
  if (Learned() || usage.managed <= ManagedRoom(device) || said.exchange(true)) return;
  ATP_LOG_WARN(
      "device %d (%s): %s of managed and %s of plain memory exceed the budget of %s: the "
      "driver moves memory on demand, without hints (ATP_POLICY=managed)",
      device.ordinal, device.name, HumanBytes(usage.managed).text(),
      HumanBytes(usage.native).text(), HumanBytes(device.budget).text());
}

// What fits the device's budget needs no promise of the host. Adds to the promise, or refuses.
bool Promise(const Device& device, uint64_t bytes) {
  const uint64_t before = promised.fetch_add(bytes, std::memory_order_relaxed);
  if (before + bytes <= ManagedRoom(device)) return true;
  const uint64_t share = HostShare();
  if (before + bytes <= share) return true;
  promised.fetch_sub(bytes, std::memory_order_relaxed);
  ATP_LOG_ERROR(
      "out of memory: %s asked, %s already promised; what exceeds device %d's budget of "
      "%s must fit this process's share of host memory, %s. Remedy: use less, free host "
      "memory, or raise ATP_HOST_BUDGET if the machine can hold it",
      HumanBytes(bytes).text(), HumanBytes(before).text(), device.ordinal,
      HumanBytes(device.budget).text(), HumanBytes(share).text());
  return false;
}

void StartLoopOnce(const Device& device, CUcontext context) {
  static std::atomic<bool> started[kMaxDevices];
  if (Learned() && !started[device.ordinal].exchange(true)) LoopStart(device.ordinal, context);
}

// Maps managed memory and tracks it. Null with *result set when the program must be told; null with
// CUDA_SUCCESS when plain memory should serve.
Record* MapManaged(Device* device, CUcontext context, uint64_t bytes, CUresult* result) {
  *result = CUDA_SUCCESS;
  const uint64_t mapped = RoundUpToGranule(bytes);
  if (!Promise(*device, mapped)) {
    *result = CUDA_ERROR_OUT_OF_MEMORY;
    return nullptr;
  }
  CUdeviceptr address = 0;
  const CUresult got = real().cuMemAllocManaged(&address, mapped, CU_MEM_ATTACH_GLOBAL);
  Record* record = nullptr;
  if (got == CUDA_SUCCESS && address % kGranule == 0) {
    record = g_tracker.Insert(address, bytes, mapped, context, device->ordinal);
  }
  if (record == nullptr) {
    promised.fetch_sub(mapped, std::memory_order_relaxed);
    if (got == CUDA_SUCCESS) {
      real().cuMemFree_v2(address);
      Trouble("managed memory that cannot be tracked");
    } else {
      ATP_LOG_DEBUG("managed memory refused by the driver (error %d): plain memory instead", got);
    }
    return nullptr;
  }
  device->managed.fetch_add(mapped, std::memory_order_relaxed);
  device->ever_managed.store(true, std::memory_order_relaxed);
  WatchIfNear(*device);
  SayOnceThatMemoryMoves(*device);
  StartLoopOnce(*device, context);
  if (Learned()) {
    LoopOnAlloc(record);
    Populate(*device, *record);
  }
  return record;
}

// The record is already out of the tracker, so a new allocation at the same address cannot be
// confused with it.
CUresult UnmapManaged(Record* record) {
  if (Learned()) LoopOnFree(record);
  g_tracker.Remove(record);
  Device* device = DeviceOf(record->device);
  const CUresult result = real().cuMemFree_v2(record->address);
  if (result != CUDA_SUCCESS && result != CUDA_ERROR_DEINITIALIZED) {
    // The driver kept it (a context in error): so do the books. The loop does not see it any more.
    if (g_tracker.Restore(record)) return result;
  }
  promised.fetch_sub(record->mapped_bytes, std::memory_order_relaxed);
  if (device != nullptr) device->managed.fetch_sub(record->mapped_bytes, std::memory_order_relaxed);
  return result;
}

CUresult PlaceNative(Device* device, CUdeviceptr* address, size_t bytes, bool packed) {
  const CUresult result = real().cuMemAlloc_v2(address, bytes);
  if (result != CUDA_SUCCESS || device == nullptr) return result;
  if (g_native_sizes.Insert({*address, bytes, device->ordinal, packed})) {
    device->native.fetch_add(bytes, std::memory_order_relaxed);
    if (packed) device->packed.fetch_add(bytes, std::memory_order_relaxed);
  }
  return result;
}

CUresult PlaceInSlab(Device* device, CUcontext context, CUdeviceptr* address, size_t bytes) {
  CUresult result = CUDA_SUCCESS;
  for (int attempt = 0; attempt < 2; ++attempt) {
    if (const uint64_t slot = g_slabs.Take(bytes, device->ordinal, context)) {
      *address = slot;
      return CUDA_SUCCESS;
    }
    Record* record = MapManaged(device, context, kGranule, &result);
    if (record == nullptr) break;
    if (!g_slabs.AddSlab(record, bytes)) {
      UnmapManaged(record);
      break;
    }
  }
  return result != CUDA_SUCCESS ? result : PlaceNative(device, address, bytes, true);
}

// Native frees wait until the device has passed everything submitted; a slot of a slab owes the
// same, and must not be reused earlier.
void WaitAsAFreeDoes(CUcontext context) {
  CUcontext current = nullptr, popped = nullptr;
  real().cuCtxGetCurrent(&current);
  const bool push = current != context && real().cuCtxPushCurrent_v2 != nullptr &&
                    real().cuCtxPushCurrent_v2(context) == CUDA_SUCCESS;
  if (Learned()) LoopBeforeWait(Wait::kContext, nullptr, false, nullptr);
  real().cuCtxSynchronize();
  if (push) real().cuCtxPopCurrent_v2(&popped);
}

CUresult ReleaseSlot(Record* record, uint64_t address) {
  uint64_t start = 0, bytes = 0;
  if (!g_slabs.Range(*record, address, &start, &bytes) || start != address) {
    return CUDA_ERROR_INVALID_VALUE;  // the driver's answer to a pointer inside an allocation, or
                                      // freed before
  }
  WaitAsAFreeDoes(record->context);
  bool empty = false;
  if (!g_slabs.Give(record, address, &empty)) return CUDA_ERROR_INVALID_VALUE;
  return empty ? UnmapManaged(record) : CUDA_SUCCESS;
}

}  // namespace

CUresult PlaceAllocation(CUdeviceptr* address, size_t bytes) {
  constexpr uint64_t kAbsurd = 1ull << 46;  // the driver refuses it with its own error
  CUcontext context = nullptr;
  Device* device = address != nullptr && bytes != 0 ? CurrentDevice(&context) : nullptr;
  if (device == nullptr || bytes > kAbsurd) return real().cuMemAlloc_v2(address, bytes);
  if (!device->can_manage || !Placing() || CaptureOpen()) {
    return PlaceNative(device, address, bytes, false);
  }
  if (bytes < Slabs::kMaxBytes) {
    const bool room = device->packed.load(std::memory_order_relaxed) + bytes <= device->budget / 20;
    if (room || Settings().Disabled(kDisableSlabs)) {
      return PlaceNative(device, address, bytes, true);
    }
    return PlaceInSlab(device, context, address, bytes);
  }
  CUresult result = CUDA_SUCCESS;
  if (const Record* record = MapManaged(device, context, bytes, &result)) {
    *address = record->address;
    return CUDA_SUCCESS;
  }
  return result != CUDA_SUCCESS ? result : PlaceNative(device, address, bytes, false);
}

CUresult ReleaseAllocation(CUdeviceptr address) {
  if (Record* record = g_tracker.Find(address)) {
    if (record->slab != nullptr) return ReleaseSlot(record, address);
    if (record->address == address) return UnmapManaged(record);
    return real().cuMemFree_v2(address);
  }
  NativeSizes::Entry entry;
  const bool known = g_native_sizes.Take(address, &entry);
  const CUresult result = real().cuMemFree_v2(address);
  if (!known) return result;
  if (result != CUDA_SUCCESS && result != CUDA_ERROR_DEINITIALIZED) {
    g_native_sizes.Insert(entry);
    return result;
  }
  if (Device* device = DeviceOf(entry.device)) {
    device->native.fetch_sub(entry.bytes, std::memory_order_relaxed);
    if (entry.packed) device->packed.fetch_sub(entry.bytes, std::memory_order_relaxed);
  }
  return result;
}

void AccountNative(CUdeviceptr address, size_t bytes) {
  Device* device = CurrentDevice();
  if (device == nullptr || !g_native_sizes.Insert({address, bytes, device->ordinal, false})) return;
  device->native.fetch_add(bytes, std::memory_order_relaxed);
}

void UnaccountNative(CUdeviceptr address) {
  NativeSizes::Entry entry;
  if (!g_native_sizes.Take(address, &entry)) return;
  Device* device = DeviceOf(entry.device);
  if (device == nullptr) return;
  device->native.fetch_sub(entry.bytes, std::memory_order_relaxed);
  if (entry.packed) device->packed.fetch_sub(entry.bytes, std::memory_order_relaxed);
}

bool ProgramRange(uint64_t address, uint64_t* start, uint64_t* bytes) {
  const Record* record = g_tracker.Find(address);
  if (record == nullptr) return false;
  if (record->slab != nullptr) return g_slabs.Range(*record, address, start, bytes);
  *start = record->address;
  *bytes = record->bytes;
  return address < *start + *bytes;
}

void ForgetMemoryOf(CUcontext context, int device_ordinal) {
  g_tracker.ForEach(context, [&](Record* record) {
    if (device_ordinal >= 0 && record->device != device_ordinal) return;
    if (Learned()) LoopOnFree(record);
    g_tracker.Remove(record);
    promised.fetch_sub(record->mapped_bytes, std::memory_order_relaxed);
    if (Device* device = DeviceOf(record->device)) {
      device->managed.fetch_sub(record->mapped_bytes, std::memory_order_relaxed);
    }
  });
}

void StopHints() {
  g_watching.store(false, std::memory_order_relaxed);
  if (Learned()) LoopStop();
}

void ResetPlacementAfterFork() { ResetDevicesAfterFork(); }

Usage UsageOf(const Device& device) {
  return {device.managed.load(std::memory_order_relaxed),
          device.native.load(std::memory_order_relaxed)};
}

}  // namespace atp::shim
