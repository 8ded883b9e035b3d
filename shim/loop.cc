// SPDX-License-Identifier: Apache-2.0
#include "shim/loop.h"

#include <array>
#include <atomic>
#include <mutex>

#include "shim/access_stats.h"
#include "shim/card_share.h"
#include "shim/device_loop.h"
#include "shim/settings.h"

namespace atp::shim {
namespace {

std::atomic<int> device_end{0};  // one past the highest device in use
std::array<std::atomic<DeviceLoop*>, kMaxDevices>
    loops{};  // never freed: hooks may run until the very end

DeviceLoop* LoopOf(int device) {
  if (device < 0 || device >= kMaxDevices) return nullptr;
  return loops[device].load(std::memory_order_acquire);
}

template <typename Body>
void ForEachLoop(Body body) {
  const int end = device_end.load(std::memory_order_acquire);
  for (int device = 0; device < end; ++device) {
    if (DeviceLoop* loop = LoopOf(device)) body(loop);
  }
}

// A launch belongs to the device that owns what it touches.
DeviceLoop* LoopOf(const LaunchView& launch) {
  return launch.touch_count == 0 ? nullptr : LoopOf(launch.touches[0].allocation->device);
}

}  // namespace

void LoopStart(int device, CUcontext context) {
  if (device < 0 || device >= kMaxDevices || LoopOf(device) != nullptr) return;
  static std::mutex mutex;
  std::lock_guard lock(mutex);
  if (LoopOf(device) == nullptr) {
    loops[device].store(new DeviceLoop(device, context), std::memory_order_release);
    if (device >= device_end) device_end = device + 1;
  }
}

void LoopOnAlloc(Allocation* allocation) {
  if (DeviceLoop* loop = LoopOf(allocation->device)) loop->OnAlloc(allocation);
}

void LoopOnReuse(Allocation* allocation, uint64_t bytes) {
  DeviceLoop* loop = LoopOf(allocation->device);
  if (loop == nullptr) {
    allocation->bytes = bytes;
  } else {
    loop->OnReuse(allocation, bytes);
  }
}

void LoopOnFree(Allocation* allocation) {
  if (DeviceLoop* loop = LoopOf(allocation->device)) loop->OnFree(allocation);
}

CUresult LoopBeforeLaunch(const LaunchView& launch) {
  DeviceLoop* loop = LoopOf(launch);
  if (loop != nullptr) {
    loop->BeforeLaunch(launch);
  } else if (Settings().recompute == Recompute::kOn) [[unlikely]] {
    NoteBlindLaunch(launch.stream, launch.per_thread);
  }
  if (!Owing()) [[likely]]
    return CUDA_SUCCESS;
  CUresult result = CUDA_SUCCESS;
  ForEachLoop([&](DeviceLoop* other) {
    const bool expected = other == loop && loop->Expected();
    const CUresult one = expected ? loop->Refused() : other->PayAll(&launch);
    if (result == CUDA_SUCCESS) result = one;
  });
  return result;
}

CUresult LoopPay(const LaunchView* launch) {
  CUresult result = CUDA_SUCCESS;
  ForEachLoop([&](DeviceLoop* loop) {
    const CUresult one = loop->PayAll(launch);
    if (result == CUDA_SUCCESS) result = one;
  });
  return result;
}

void LoopAfterLaunch(const LaunchView& launch) {
  DeviceLoop* loop = LoopOf(launch);
  if (loop != nullptr) loop->AfterLaunch(launch);
  if (!Settings().access_stats) [[likely]]
    return;
  if (loop != nullptr) {
    loop->CompareAccess(launch);
  } else {
    CompareAccess(launch, nullptr, 0);
  }
}

void LoopBeforeWait(Wait kind, CUstream stream, bool per_thread, CUevent event) {
  ForEachLoop([&](DeviceLoop* loop) { loop->BeforeWait(kind, stream, per_thread, event); });
}

bool LoopWaitForProgram(int device) {
  DeviceLoop* loop = LoopOf(device);
  return loop != nullptr && loop->WaitForProgram();
}

void LoopOnStreamDestroy(CUstream stream) {
  ForEachLoop([&](DeviceLoop* loop) { loop->OnStreamDestroy(stream); });
}

void LoopStop() {
  ShareStop();
  ForEachLoop([](DeviceLoop* loop) { loop->Stop(); });
}

}  // namespace atp::shim
