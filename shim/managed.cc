// SPDX-License-Identifier: Apache-2.0
#include "shim/managed.h"

#include "shim/capture.h"
#include "shim/card_share.h"
#include "shim/host_promise.h"
#include "shim/idle_ranges.h"
#include "shim/lifecycle.h"
#include "shim/loop.h"
#include "shim/own_calls.h"
#include "shim/populate.h"
#include "shim/resolve.h"
#include "shim/settings.h"
#include "shim/shimlog.h"

namespace atp::shim {

std::atomic<bool> g_watching{false};

namespace {

bool Learned() { return Settings().policy == Policy::kLearned; }

// Without a policy nobody else says it.
void SayOnceThatMemoryMoves(const Device& device) {
  static std::atomic<bool> said{false};
  const uint64_t managed = device.managed.load(std::memory_order_relaxed);
  if (Learned() || managed <= ManagedRoom(device) || said.exchange(true)) return;
  ATP_LOG_WARN(
      "device %d (%s): %s of managed and %s of plain memory exceed the budget of %s: the "
      "driver moves memory on demand, without hints (ATP_POLICY=managed)",
      device.ordinal, device.name, HumanBytes(managed).text(),
      HumanBytes(device.native.load(std::memory_order_relaxed)).text(),
      HumanBytes(device.budget).text());
}

void StartLoopOnce(int device, CUcontext context) {
  static std::atomic<bool> started[kMaxDevices];
  if (!Learned() || started[device].exchange(true)) return;
  LoopStart(device, context);
}

}  // namespace

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

bool TakeShare(Device* device, uint64_t bytes) {
  ShareStart(device);
  const uint64_t already = device->managed.fetch_add(bytes, std::memory_order_relaxed);
  if (!Promised(*device, already + bytes) && !RaisePromise(device, already, bytes)) {
    device->managed.fetch_sub(bytes, std::memory_order_relaxed);
    return false;
  }
  device->ever_managed.store(true, std::memory_order_relaxed);
  WatchIfNear(*device);
  SayOnceThatMemoryMoves(*device);
  return true;
}

void GiveShare(int ordinal, uint64_t bytes) {
  Device* device = DeviceOf(ordinal);
  if (device == nullptr) return;
  LowerPromise(device, device->managed.fetch_sub(bytes, std::memory_order_relaxed) - bytes);
}

Record* Announce(uint64_t address, uint64_t bytes, uint64_t mapped_bytes, CUcontext context,
                 int device) {
  Record* record = g_tracker.Insert(address, bytes, mapped_bytes, context, device);
  if (record == nullptr) return nullptr;
  StartLoopOnce(device, context);
  if (Learned()) LoopOnAlloc(record);
  return record;
}

bool AnnounceGrowth(Record* record, uint64_t mapped_bytes) {
  if (Learned()) LoopOnFree(record);
  const bool grown = g_tracker.Grow(record, mapped_bytes);
  if (Learned()) LoopOnAlloc(record);
  return grown;
}

void Withdraw(Record* record) {
  if (Learned()) LoopOnFree(record);
  g_tracker.Remove(record);
}

Record* MapManaged(Device* device, CUcontext context, uint64_t bytes, CUresult* result) {
  *result = CUDA_SUCCESS;
  const uint64_t mapped = RoundUpToGranule(bytes);
  const bool got_share =
      TakeShare(device, mapped) || (GiveBackIdle(device->ordinal), TakeShare(device, mapped));
  if (!got_share) {
    *result = CUDA_ERROR_OUT_OF_MEMORY;
    return nullptr;
  }
  CUdeviceptr address = 0;
  const CUresult got = real().cuMemAllocManaged(&address, mapped, CU_MEM_ATTACH_GLOBAL);
  Record* record = nullptr;
  if (got == CUDA_SUCCESS && address % kGranule == 0) {
    record = Announce(address, bytes, mapped, context, device->ordinal);
  }
  if (record == nullptr) {
    GiveShare(device->ordinal, mapped);
    if (got == CUDA_SUCCESS) {
      real().cuMemFree_v2(address);
      Trouble("managed memory that cannot be tracked");
    } else {
      ATP_LOG_DEBUG("managed memory refused by the driver (error %d): plain memory instead", got);
    }
    return nullptr;
  }
  if (Learned()) Populate(*device, *record);
  return record;
}

// The record is already out of the tracker, so a new allocation at the same address cannot be
// confused with it.
CUresult UnmapManaged(Record* record) {
  Withdraw(record);
  const CUresult result = real().cuMemFree_v2(record->address);
  if (result != CUDA_SUCCESS && result != CUDA_ERROR_DEINITIALIZED) {
    // The driver kept it (a context in error): so do the books. The loop does not see it any more.
    if (g_tracker.Restore(record)) return result;
  }
  GiveShare(record->device, record->mapped_bytes);
  return result;
}

void ForgetManaged(Record* record) {
  ForgetIdle(record);
  Withdraw(record);
  GiveShare(record->device, record->mapped_bytes);
}

bool WaitForContext(CUcontext context) {
  WithContext current(context);
  if (Learned()) LoopBeforeWait(Wait::kContext, nullptr, false, nullptr);
  return real().cuCtxSynchronize() == CUDA_SUCCESS;
}

bool WaitForUsesOf(const Record& record) {
  if (Learned() && ContextsSeen() == 1 && !CaptureOpen() && LoopWaitForProgram(record.device)) {
    return true;
  }
  return WaitForContext(record.context);
}

}  // namespace atp::shim
