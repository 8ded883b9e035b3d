// SPDX-License-Identifier: Apache-2.0
#include "shim/turn_plain.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <vector>

#include "shim/capture.h"
#include "shim/findings.h"
#include "shim/lifecycle.h"
#include "shim/managed.h"
#include "shim/native_copy.h"
#include "shim/own_calls.h"
#include "shim/own_thread.h"
#include "shim/placement.h"
#include "shim/reentry.h"
#include "shim/shimlog.h"

namespace atp::shim {
namespace {

struct Turned {
  uint64_t bytes = 0;         // as the program asked
  uint64_t mapped_bytes = 0;  // of physical memory
  CUcontext context = nullptr;
  int device = 0;
};
constexpr const char* kBusy =
    "a device is busy for long, a stream captures, or a context is in error";
constinit std::mutex mutex;
std::atomic<size_t> count{0};  // of them, so that nobody else pays for the lock

std::map<uint64_t, Turned>& All() {  // by address; never destroyed
  static auto& all = *new std::map<uint64_t, Turned>;
  return all;
}

Record* WholeAllocation(uint64_t address) {
  Record* record = g_tracker.Find(address);
  const bool whole = record != nullptr && record->slab == nullptr && record->pieces == nullptr;
  uint64_t start = 0, bytes = 0;
  return whole && MappingAround(address, &start, &bytes) == InRange::kNo ? record : nullptr;
}

// Whether every context has nothing left to do. Natively the calls that lead here do not wait, and
// what a device does may be waiting for this very thread (a stream that awaits a value, a kernel
// that polls): so this does not wait for ever either.
bool IdleSoon() {
  constexpr auto kLongest = std::chrono::seconds(2);
  struct Answer {
    std::mutex mutex;
    std::condition_variable changed;
    bool there = false, idle = false;
  };
  if (CaptureOpen()) return false;
  const auto answer = std::make_shared<Answer>();
  const bool asked = StartOwnThread("atp-wait", [answer] {
    const Reentry guard;
    const bool idle = EachContext([](CUcontext context) {
      const WithContext current(context);
      return real().cuCtxSynchronize() == CUDA_SUCCESS;
    });
    std::lock_guard lock(answer->mutex);
    answer->there = true;
    answer->idle = idle;
    answer->changed.notify_all();
  });
  if (!asked) return false;
  std::unique_lock lock(answer->mutex);
  answer->changed.wait_for(lock, kLongest, [&] { return answer->there; });
  return answer->idle;
}

bool DriverCan() {
  const RealDriver& r = real();
  return r.cuMemAddressReserve != nullptr && r.cuMemAddressFree != nullptr &&
         r.cuMemCreate != nullptr && r.cuMemRelease != nullptr && r.cuMemMap != nullptr &&
         r.cuMemUnmap != nullptr && r.cuMemSetAccess != nullptr;
}

// As what the driver's own allocations are, so far as one can ask for it.
CUmemAllocationProp PropertiesOn(int device) {
  CUmemAllocationProp prop = {};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location = {CU_MEM_LOCATION_TYPE_DEVICE, {device}};
  int rdma = 0;
  real().cuDeviceGetAttribute(&rdma, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED,
                              device);
  prop.allocFlags.gpuDirectRDMACapable = rdma != 0;
  return prop;
}

// Other devices reach what they would reach of managed memory: where that is refused they have no
// access, as they have none to plain memory without peer access.
void AllowPeers(uint64_t address, const Turned& turned) {
  for (int device = 0; device < kMaxDevices; ++device) {
    if (device == turned.device || DeviceOf(device) == nullptr) continue;
    AccessFlags access = {};
    access[device] = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    AllowAsNoted(address, turned.mapped_bytes, access);
  }
}

bool Stays(uint64_t address, const char* why, CUresult error = CUDA_SUCCESS) {
  ATP_LOG_INFO("the allocation at 0x%llx stays managed memory: %s (error %d)",
               static_cast<unsigned long long>(address), why, static_cast<int>(error));
  return false;
}

// The managed memory has gone. All this has been tried before at another address.
bool Show(uint64_t address, const Turned& turned, MemoryHandle native, const AccessFlags& access) {
  const bool shown = ReserveAt(address, turned.mapped_bytes) &&
                     real().cuMemMap(address, turned.mapped_bytes, 0, native, 0) == CUDA_SUCCESS &&
                     AllowAsNoted(address, turned.mapped_bytes, access) == CUDA_SUCCESS;
  real().cuMemRelease(native);  // the mapping keeps it
  if (!shown) {
    SayLost(address);
    return false;
  }
  AllowPeers(address, turned);
  AccountNative(address, turned.mapped_bytes, WhyNative::kTurned);
  Count(WhyNative::kTurned, turned.mapped_bytes);
  All()[address] = turned;
  count.fetch_add(1, std::memory_order_release);
  ATP_LOG_INFO("the allocation of %s at 0x%llx is plain memory from now on",
               HumanBytes(turned.bytes).text(), static_cast<unsigned long long>(address));
  return true;
}

bool Turn(Record* record) {
  const uint64_t address = record->address;
  const Turned turned = {record->bytes, record->mapped_bytes, record->context, record->device};
  if (!FitsBeside(turned.device, turned.mapped_bytes)) return Stays(address, "the card is full");
  WithContext current(turned.context);
  if (!ReservesWhatWasManaged(turned.mapped_bytes)) {
    return Stays(address, "this driver does not reserve addresses that managed memory had");
  }
  AccessFlags access = {};
  access[turned.device] = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  MemoryHandle native = 0;
  CUresult result = CreateCopy(PropertiesOn(turned.device), turned.mapped_bytes, address,
                               turned.mapped_bytes, &access, &native);
  if (result == CUDA_SUCCESS) {
    result = UnmapManaged(record);
    if (result != CUDA_SUCCESS) real().cuMemRelease(native);
  }
  if (result != CUDA_SUCCESS) return Stays(address, "plain memory is refused", result);
  return Show(address, turned, native, access);
}

void GiveBack(uint64_t address, const Turned& turned) {
  WaitForContext(turned.context);
  NativeSizes::Entry was;
  UnaccountNative(address, &was);
  real().cuMemUnmap(address, turned.mapped_bytes);
  real().cuMemAddressFree(address, turned.mapped_bytes);
}

}  // namespace

bool TurnPlain(CUdeviceptr address) {
  if (Settings().Disabled(kDisableVmm) || !DriverCan()) return false;
  const Record* whole = WholeAllocation(address);
  if (whole == nullptr) return false;
  const uint64_t id = whole->id;
  // At length here, while others still run; what they do meanwhile is waited for again, and
  // briefly.
  if (!IdleSoon()) return Stays(address, kBusy);
  std::lock_guard lock(mutex);
  const Standstill standstill;  // no lock of the books of ranges from here on: they stand still too
  Record* record = g_tracker.Find(address);
  if (record == nullptr || record->id != id) return false;
  return IdleSoon() ? Turn(record) : Stays(address, kBusy);
}

bool IsTurned(uint64_t address, uint64_t* start, uint64_t* bytes) {
  if (count.load(std::memory_order_acquire) == 0) return false;
  std::lock_guard lock(mutex);
  auto after = All().upper_bound(address);
  if (after == All().begin()) return false;
  const auto& [begin, turned] = *std::prev(after);
  if (address - begin >= turned.bytes) return false;
  *start = begin;
  *bytes = turned.bytes;
  return true;
}

bool FreeTurned(CUdeviceptr address) {
  if (count.load(std::memory_order_acquire) == 0) return false;
  Turned turned;
  {
    std::lock_guard lock(mutex);
    const auto found = All().find(address);
    if (found == All().end()) return false;
    turned = found->second;
    All().erase(found);
    count.fetch_sub(1, std::memory_order_release);
  }
  GiveBack(address, turned);
  return true;
}

void ForgetTurned(CUcontext context, int device) {
  if (count.load(std::memory_order_acquire) == 0) return;
  std::vector<uint64_t> gone;
  {
    std::lock_guard lock(mutex);
    for (const auto& [address, turned] : All()) {
      const bool its = context == nullptr || turned.context == context;
      if (its && (device < 0 || turned.device == device)) gone.push_back(address);
    }
  }
  for (const uint64_t address : gone) FreeTurned(address);
}

void ResetTurnedAfterFork() { new (&mutex) std::mutex; }

}  // namespace atp::shim
