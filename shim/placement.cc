// SPDX-License-Identifier: Apache-2.0
#include "shim/placement.h"

#include <stdio.h>

#include <algorithm>
#include <iterator>

#include "shim/call_site.h"
#include "shim/capture.h"
#include "shim/findings.h"
#include "shim/graph_program.h"
#include "shim/host_promise.h"
#include "shim/idle_ranges.h"
#include "shim/lifecycle.h"
#include "shim/loop.h"
#include "shim/native_sizes.h"
#include "shim/pools.h"
#include "shim/resolve.h"
#include "shim/settings.h"
#include "shim/shimlog.h"
#include "shim/slab.h"
#include "shim/turn_plain.h"
#include "shim/vmm.h"

namespace atp::shim {

namespace {

// What is plain must fit the card, and managed memory cannot help: so who holds it matters. A
// program that asks until there is no more is not told each time.
void SayPlainMemoryIsOut(const Device& device, size_t bytes, WhyNative why) {
  static std::atomic<bool> said{false};
  if (said.exchange(true)) return;
  char caller[160], list[512] = "";
  DescribeCaller(caller, sizeof caller);
  NativeSizes::Holder holders[4];
  const size_t count = g_native_sizes.Holders(device.ordinal, holders, std::size(holders));
  size_t used = 0;
  for (size_t i = 0; i < count && used < sizeof list; ++i) {
    const NativeSizes::Holder& holder = holders[i];
    char site[120] = "";
    if (holder.caller != 0) DescribeAddress(holder.caller, site, sizeof site);
    const int more = snprintf(
        list + used, sizeof list - used, "%s%s in %llu%s%s (%s)", i == 0 ? ": " : ", ",
        HumanBytes(holder.bytes).text(), static_cast<unsigned long long>(holder.count),
        *site != '\0' ? " by " : "", site, kWhyNativeNames[static_cast<size_t>(holder.why)]);
    used += more > 0 ? static_cast<size_t>(more) : 0;
  }
  ATP_LOG_ERROR(
      "device %d (%s) is out of plain memory: %s asked by %s (%s) beside %s of plain%s; and %s of "
      "managed memory. What must stay plain has to fit the card: use less of it, or lower "
      "ATP_BUDGET",
      device.ordinal, HumanBytes(device.total).text(), HumanBytes(bytes).text(), caller,
      kWhyNativeNames[static_cast<size_t>(why)],
      HumanBytes(device.native.load(std::memory_order_relaxed)).text(), list,
      HumanBytes(device.managed.load(std::memory_order_relaxed)).text());
}

// Of what comes by the thousand nobody looks who asks for it.
uintptr_t CallerOf(WhyNative why) {
  const bool seldom = why == WhyNative::kExporter || why == WhyNative::kRemembered ||
                      why == WhyNative::kCapture || why == WhyNative::kRefused;
  return seldom ? CallerAddress() : 0;
}

CUresult TryNative(Device* device, CUdeviceptr* address, size_t bytes, WhyNative why) {
  const bool packed = why == WhyNative::kSmall;
  if (!PromiseBeside(device, bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
  const CUresult result = real().cuMemAlloc_v2(address, bytes);
  if (result != CUDA_SUCCESS) return result;
  Account({*address, bytes, device->ordinal, packed, why, CallerOf(why)});
  Count(why, bytes);
  return result;
}

CUresult PlaceNative(Device* device, CUdeviceptr* address, size_t bytes, WhyNative why) {
  const CUresult result = TryNative(device, address, bytes, why);
  if (result == CUDA_ERROR_OUT_OF_MEMORY && !WasRefused() && !RefusedByCard(*device, bytes)) {
    SayPlainMemoryIsOut(*device, bytes, why);
  }
  return result;
}

// Managed memory for one allocation; null as MapManaged.
Record* TakeManaged(Device* device, CUcontext context, uint64_t bytes, CUresult* result) {
  const uint64_t mapped = RoundUpToGranule(bytes);
  if (Record* record = TakeIdle(device, context, mapped)) {
    LoopOnReuse(record, bytes);
    return record;
  }
  TrimIdle(device, mapped);
  return MapManaged(device, context, bytes, result);
}

// While memory moves, the driver's own free waits for the movers too. What a program keeps is best
// left plain; one that frees small allocations again and again does better with slabs.
bool FreesSmallOnes(const Device& device) {
  constexpr uint32_t kFew = 16;
  return device.small_frees.load(std::memory_order_relaxed) >= kFew;
}

CUresult PlaceInSlab(Device* device, CUcontext context, CUdeviceptr* address, size_t bytes) {
  CUresult result = CUDA_SUCCESS;
  for (int attempt = 0; attempt < 2; ++attempt) {
    if (const uint64_t slot = g_slabs.Take(bytes, device->ordinal, context)) {
      *address = slot;
      return CUDA_SUCCESS;
    }
    Record* record = TakeManaged(device, context, Slabs::SlabBytes(bytes), &result);
    if (record == nullptr) break;
    if (!g_slabs.AddSlab(record, bytes)) {
      UnmapManaged(record);
      break;
    }
  }
  return result != CUDA_SUCCESS ? result : PlaceNative(device, address, bytes, WhyNative::kSmall);
}

CUresult KeepOrUnmap(Record* record) {
  const CUresult kept = KeepIdle(record);
  return kept == CUDA_ERROR_NOT_SUPPORTED ? UnmapManaged(record) : kept;
}

// Native frees wait until the device has passed everything submitted; a slot of a slab owes the
// same, and must not be reused earlier.
CUresult ReleaseSlot(Record* record, uint64_t address) {
  uint64_t start = 0, bytes = 0;
  if (!g_slabs.Range(*record, address, &start, &bytes) || start != address) {
    return CUDA_ERROR_INVALID_VALUE;  // the driver's answer to a pointer inside an allocation, or
                                      // freed before
  }
  const bool passed = WaitForUsesOf(*record);
  bool empty = false;
  if (!g_slabs.Give(record, address, &empty)) return CUDA_ERROR_INVALID_VALUE;
  if (!empty) return CUDA_SUCCESS;
  return passed ? KeepOrUnmap(record) : UnmapManaged(record);
}

CUresult ReleaseManaged(Record* record) {
  if (record->idle_order != 0) return CUDA_ERROR_INVALID_VALUE;  // freed before
  return Watching() && WaitForUsesOf(*record) ? KeepOrUnmap(record) : UnmapManaged(record);
}

CUresult Place(CUdeviceptr* address, size_t bytes) {
  constexpr uint64_t kAbsurd = 1ull << 46;  // the driver refuses it with its own error
  CUcontext context = nullptr;
  Device* device = address != nullptr && bytes != 0 ? CurrentDevice(&context) : nullptr;
  if (device == nullptr || bytes > kAbsurd) return real().cuMemAlloc_v2(address, bytes);
  if (!device->can_manage || !Placing() || CaptureOpen()) {
    const WhyNative why = !device->can_manage ? WhyNative::kDevice
                          : !Placing()        ? WhyNative::kSwitchedOff
                                              : WhyNative::kCapture;
    return PlaceNative(device, address, bytes, why);
  }
  switch (KindOfCaller()) {
    case Caller::kExporter:
      return PlaceNative(device, address, bytes, WhyNative::kExporter);
    case Caller::kRemembered: {
      // Plain as long as that takes nothing away from the rest: it may never export again.
      const uint64_t native = device->native.load(std::memory_order_relaxed);
      if (native + bytes > device->budget / 2) break;
      const CUresult result = TryNative(device, address, bytes, WhyNative::kRemembered);
      if (result != CUDA_ERROR_OUT_OF_MEMORY) return result;
      break;
    }
    case Caller::kOrdinary:
      break;
  }
  if (bytes < Slabs::kMaxBytes) {
    const bool room = !FreesSmallOnes(*device) &&
                      device->packed.load(std::memory_order_relaxed) + bytes <= device->budget / 20;
    if (room || Settings().Disabled(kDisableSlabs)) {
      return PlaceNative(device, address, bytes, WhyNative::kSmall);
    }
    return PlaceInSlab(device, context, address, bytes);
  }
  CUresult result = CUDA_SUCCESS;
  if (const Record* record = TakeManaged(device, context, bytes, &result)) {
    *address = record->address;
    return CUDA_SUCCESS;
  }
  return result != CUDA_SUCCESS ? result : PlaceNative(device, address, bytes, WhyNative::kRefused);
}

}  // namespace

CUresult PlaceAllocation(CUdeviceptr* address, size_t bytes) {
  return WithPatience([&] { return Place(address, bytes); });
}

CUresult ReleaseAllocation(CUdeviceptr address) {
  if (Record* record = g_tracker.Find(address)) {
    if (record->pieces != nullptr) return ReleasePiece(record, address);
    if (record->slab != nullptr) return ReleaseSlot(record, address);
    if (record->address == address) return ReleaseManaged(record);
    return real().cuMemFree_v2(address);
  }
  if (FreeTurned(address)) return CUDA_SUCCESS;
  NativeSizes::Entry was;
  const bool known = UnaccountNative(address, &was);
  const CUresult result = real().cuMemFree_v2(address);
  if (!known) return result;
  if (result != CUDA_SUCCESS && result != CUDA_ERROR_DEINITIALIZED) {
    Account(was);
    return result;
  }
  Device* device = DeviceOf(was.device);
  if (device != nullptr && was.packed && Watching()) {
    device->small_frees.fetch_add(1, std::memory_order_relaxed);
  }
  return result;
}

void SayIfPlainMemoryIsOut(CUresult result, size_t bytes, WhyNative why) {
  const Device* device = result == CUDA_ERROR_OUT_OF_MEMORY ? CurrentDevice() : nullptr;
  if (device == nullptr || RefusedByCard(*device, bytes)) return;
  SayPlainMemoryIsOut(*device, bytes, why);
}

void AccountNative(CUdeviceptr address, size_t bytes, WhyNative why, bool packed) {
  const Device* device = CurrentDevice();
  if (device == nullptr) return;
  Account({address, bytes, device->ordinal, packed, why, CallerOf(why)});
}

void Account(const NativeSizes::Entry& entry) {
  Device* device = DeviceOf(entry.device);
  if (device == nullptr || !g_native_sizes.Insert(entry)) return;
  device->native.fetch_add(entry.bytes, std::memory_order_relaxed);
  if (entry.packed) device->packed.fetch_add(entry.bytes, std::memory_order_relaxed);
}

bool UnaccountNative(CUdeviceptr address, NativeSizes::Entry* was) {
  if (!g_native_sizes.Take(address, was)) return false;
  if (Device* device = DeviceOf(was->device)) {
    device->native.fetch_sub(was->bytes, std::memory_order_relaxed);
    if (was->packed) device->packed.fetch_sub(was->bytes, std::memory_order_relaxed);
  }
  return true;
}

bool ProgramRange(uint64_t address, uint64_t* start, uint64_t* bytes) {
  if (const InRange range = MappingAround(address, start, bytes); range != InRange::kNo) {
    return range == InRange::kMapped;
  }
  const Record* record = g_tracker.Find(address);
  if (record == nullptr) return IsTurned(address, start, bytes);
  if (record->idle_order != 0) return false;
  if (record->pieces != nullptr) return PieceAround(address, start, bytes, nullptr);
  if (record->slab != nullptr) return g_slabs.Range(*record, address, start, bytes);
  *start = record->address;
  *bytes = record->bytes;
  return address < *start + *bytes;
}

void ForgetMemoryOf(CUcontext context, int device_ordinal) {
  ForgetPiecesOf(context, device_ordinal);
  ForgetTurned(context, device_ordinal);
  g_tracker.ForEach(context, [&](Record* record) {
    if (device_ordinal >= 0 && record->device != device_ordinal) return;
    // Or its slots would be given out again, to a context of the same handle.
    g_slabs.Forget(record);
    ForgetManaged(record);
  });
}

void StopHints() {
  g_watching.store(false, std::memory_order_relaxed);
  if (Settings().policy == Policy::kLearned) LoopStop();
}

void ResetPlacementAfterFork() {
  ResetDevicesAfterFork();
  ResetRangesAfterFork();
  ResetTurnedAfterFork();
  ResetIdleAfterFork();
  ResetPoolsAfterFork();
  ResetGraphsAfterFork();
  ResetCallSitesAfterFork();
}

Usage UsageOf(const Device& device) {
  const uint64_t managed = device.managed.load(std::memory_order_relaxed);
  const uint64_t idle = device.idle.load(std::memory_order_relaxed);
  return {managed - std::min(managed, idle), device.native.load(std::memory_order_relaxed)};
}

}  // namespace atp::shim
