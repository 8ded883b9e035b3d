// SPDX-License-Identifier: Apache-2.0
#include "shim/idle_ranges.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <new>
#include <tuple>

#include "shim/managed.h"
#include "shim/settings.h"

namespace atp::shim {
namespace {

using Size = std::tuple<int, CUcontext, uint64_t>;  // device, context, bytes

struct State {
  std::map<Size, std::map<uint64_t, Record*>> by_size;   // then by address
  std::map<std::pair<int, uint64_t>, Record*> by_order;  // device, idle_order: the oldest first
  uint64_t given = 0;
};

constinit std::mutex mutex;
State& All() {  // never destroyed: hooks may run until the very end
  static State* state = new State;
  return *state;
}

Size SizeOf(const Record& r) { return {r.device, r.context, r.mapped_bytes}; }

void Remove(Record* record) {
  const auto list = All().by_size.find(SizeOf(*record));
  list->second.erase(record->address);
  if (list->second.empty()) All().by_size.erase(list);
  All().by_order.erase({record->device, record->idle_order});
  record->idle_order = 0;
  if (Device* device = DeviceOf(record->device)) {
    device->idle.fetch_sub(record->mapped_bytes, std::memory_order_relaxed);
  }
}

Record* TakeOldest(int device) {
  std::lock_guard lock(mutex);
  const auto oldest = All().by_order.lower_bound({device, 0});
  if (oldest == All().by_order.end() || oldest->first.first != device) return nullptr;
  Record* record = oldest->second;
  Remove(record);
  return record;
}

}  // namespace

CUresult KeepIdle(Record* record) {
  Device* device = DeviceOf(record->device);
  if (!Watching() || device == nullptr || Settings().Disabled(kDisableHeap)) {
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  std::lock_guard lock(mutex);
  if (record->idle_order != 0) return CUDA_ERROR_INVALID_VALUE;
  record->idle_order = ++All().given;
  All().by_size[SizeOf(*record)].emplace(record->address, record);
  All().by_order.emplace(std::make_pair(record->device, record->idle_order), record);
  device->idle.fetch_add(record->mapped_bytes, std::memory_order_relaxed);
  return CUDA_SUCCESS;
}

Record* TakeIdle(Device* device, CUcontext context, uint64_t mapped_bytes) {
  if (device->idle.load(std::memory_order_relaxed) < mapped_bytes) return nullptr;
  std::lock_guard lock(mutex);
  const auto list = All().by_size.find({device->ordinal, context, mapped_bytes});
  if (list == All().by_size.end()) return nullptr;
  Record* record = list->second.begin()->second;
  Remove(record);
  return record;
}

void TrimIdle(Device* device, uint64_t bytes) {
  const uint64_t idle = device->idle.load(std::memory_order_relaxed);
  const uint64_t managed = device->managed.load(std::memory_order_relaxed);
  const uint64_t in_use = managed - std::min(managed, idle) + bytes;
  uint64_t most = device->most_in_use.load(std::memory_order_relaxed);
  while (most < in_use && !device->most_in_use.compare_exchange_weak(most, in_use)) {
  }
  most = std::max(most, in_use);
  while (device->managed.load(std::memory_order_relaxed) + bytes > most / 6 * 7) {
    Record* record = TakeOldest(device->ordinal);
    if (record == nullptr) return;
    UnmapManaged(record);
  }
}

void GiveBackIdle(int device) {
  while (Record* record = TakeOldest(device)) UnmapManaged(record);
}

void ForgetIdle(Record* record) {
  std::lock_guard lock(mutex);
  if (record->idle_order != 0) Remove(record);
}

void ResetIdleAfterFork() { new (&mutex) std::mutex; }

}  // namespace atp::shim
