// SPDX-License-Identifier: Apache-2.0
#include "shim/vmm.h"

#include <algorithm>
#include <mutex>
#include <new>

#include "shim/call_site.h"
#include "shim/capture.h"
#include "shim/findings.h"
#include "shim/host_promise.h"
#include "shim/lifecycle.h"
#include "shim/managed.h"
#include "shim/own_calls.h"
#include "shim/placement.h"
#include "shim/populate.h"
#include "shim/settings.h"
#include "shim/shimlog.h"
#include "shim/vmm_books.h"
#include "shim/vmm_convert.h"
#include "shim/vmm_runs.h"

namespace atp::shim {
namespace {

constinit std::mutex mutex;
bool Aligned(uint64_t value) { return value % kGranule == 0; }

// What can be managed memory: device memory without a use that only physical memory serves. A type
// for export is allowed, because frameworks ask for one and seldom export; the rest is unusual.
bool Ordinary(const CUmemAllocationProp& prop) {
  constexpr int kFile = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  return prop.type == CU_MEM_ALLOCATION_TYPE_PINNED &&
         prop.location.type == CU_MEM_LOCATION_TYPE_DEVICE &&
         (static_cast<int>(prop.requestedHandleTypes) & ~kFile) == 0 &&
         prop.win32HandleMetaData == nullptr && prop.allocFlags.compressionType == 0 &&
         prop.allocFlags.usage == 0;
}

bool Serves(const Device* device) {
  return device != nullptr && device->can_manage && Placing() && !CaptureOpen() &&
         !Settings().Disabled(kDisableVmm);
}

CUresult RefuseToShare(const char* what, const Memory& memory) {
  g_findings.refused_exports.fetch_add(1, std::memory_order_relaxed);
  char caller[160];
  DescribeCaller(caller, sizeof caller);
  ATP_LOG_WARN(
      "%s (called by %s): %s of memory at 0x%llx are managed memory, so that they may move, and "
      "cannot become the driver's (see above), which alone can share. Remedy: the name of the "
      "library that created it in ATP_NATIVE, or ATP_DISABLE=vmm",
      what, caller, HumanBytes(memory.bytes).text(),
      static_cast<unsigned long long>(memory.mapped_at));
  return CUDA_ERROR_NOT_SUPPORTED;
}

// Whether a mapping needs the driver's memory where managed memory is in use.
bool MustConvert(CUdeviceptr address, size_t bytes, MemoryHandle handle) {
  const Memory* memory = MemoryOf(handle);
  if (memory != nullptr && memory->native == 0) return memory->mapped_at != 0;
  uint64_t begin = 0;
  const Range* range = RangeAround(address, bytes, &begin);
  return range != nullptr && AnyMapping(begin, range->bytes);
}

// What is mapped in managed memory may have to become the driver's. That waits for the device: at
// length here, without the lock, because others may ask about their memory meanwhile; what they do
// then is waited for again, and briefly, by GiveToDriver.
void WaitAhead(std::unique_lock<std::mutex>& lock) {
  lock.unlock();
  WaitForEveryContext();
  lock.lock();
}

CUresult MapNative(CUdeviceptr address, size_t bytes, size_t offset, Memory* memory,
                   MemoryHandle handle, unsigned long long flags) {
  const CUresult result = real().cuMemMap(address, bytes, offset, handle, flags);
  if (result == CUDA_SUCCESS && memory != nullptr) AddMapping(address, bytes, memory);
  return result;
}

CUresult UnmapNative(CUdeviceptr address, size_t bytes) {
  const CUresult result = real().cuMemUnmap(address, bytes);
  if (result == CUDA_SUCCESS) RemoveMappings(address, bytes);
  return result;
}

CUresult MapManagedPart(const Range& range, uint64_t range_begin, CUdeviceptr address, size_t bytes,
                        Memory* memory) {
  if (range.context == nullptr) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  WithContext current(range.context);
  if (!BringContents(memory, address, bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
  AddMapping(address, bytes, memory);
  memory->mapped_at = address;
  JoinRun(range, range_begin, memory->device, address, bytes);
  Allocation part;
  part.address = address;
  part.bytes = part.mapped_bytes = bytes;
  part.context = range.context;
  part.device = memory->device;
  if (Device* device = DeviceOf(memory->device); device != nullptr && !memory->has_contents) {
    Populate(*device, part);
  }
  return CUDA_SUCCESS;
}

}  // namespace

CUresult ReserveRange(CUdeviceptr* address, size_t bytes, size_t alignment, CUdeviceptr wish,
                      unsigned long long flags) {
  CUcontext context = nullptr;
  const Device* device = CurrentDevice(&context);
  const bool ordinary = address != nullptr && bytes != 0 && Aligned(bytes) && wish == 0 &&
                        flags == 0 && (alignment & (alignment - 1)) == 0;
  if (ordinary && Serves(device) && !CalledByExporter()) {
    std::lock_guard lock(mutex);
    CUdeviceptr got = 0;
    const CUresult result = real().cuMemAllocManaged(&got, bytes, CU_MEM_ATTACH_GLOBAL);
    if (result == CUDA_SUCCESS && Aligned(got) && (alignment == 0 || got % alignment == 0)) {
      Books().ranges[got] = {bytes, context};
      *address = got;
      return CUDA_SUCCESS;
    }
    if (result == CUDA_SUCCESS) real().cuMemFree_v2(got);
    ATP_LOG_INFO("a range of %s stays the driver's: as managed memory it is refused (error %d)",
                 HumanBytes(bytes).text(), static_cast<int>(result));
  }
  if (ordinary && context == nullptr && Placing() && !Settings().Disabled(kDisableVmm)) {
    ATP_LOG_INFO(
        "a range of %s stays the driver's: no context is current where it is reserved, and managed "
        "memory needs one",
        HumanBytes(bytes).text());
  }
  return real().cuMemAddressReserve(address, bytes, alignment, wish, flags);
}

CUresult FreeRange(CUdeviceptr address, size_t bytes) {
  std::lock_guard lock(mutex);
  const auto range = Books().ranges.find(address);
  if (range == Books().ranges.end()) return real().cuMemAddressFree(address, bytes);
  if (range->second.bytes != bytes || AnyMapping(address, bytes)) return CUDA_ERROR_INVALID_VALUE;
  WithContext current(range->second.context);
  if (!KeepContentsElsewhere(address, bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
  const CUresult result =
      range->second.context != nullptr ? real().cuMemFree_v2(address) : CUDA_SUCCESS;
  if (result == CUDA_SUCCESS) Books().ranges.erase(range);
  return result;
}

namespace {

CUresult TryCreateMemory(MemoryHandle* handle, size_t bytes, const CUmemAllocationProp* prop,
                         unsigned long long flags) {
  if (handle == nullptr || prop == nullptr || bytes == 0) {
    return real().cuMemCreate(handle, bytes, prop, flags);
  }
  CurrentDevice();  // may be the first that is heard of it
  Device* device = Ordinary(*prop) ? DeviceOf(prop->location.id) : nullptr;
  std::lock_guard lock(mutex);
  auto memory = std::unique_ptr<Memory>(new (std::nothrow) Memory);
  if (memory == nullptr) return real().cuMemCreate(handle, bytes, prop, flags);
  memory->bytes = bytes;
  memory->prop = *prop;
  memory->device = prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE ? prop->location.id : -1;
  const bool exporter = CalledByExporter();
  if (Serves(device) && flags == 0 && Aligned(bytes) && !exporter) {
    if (!TakeShare(device, bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
    *handle = reinterpret_cast<MemoryHandle>(memory.get());
  } else {
    const WhyNative why = exporter                           ? WhyNative::kExporter
                          : Settings().Disabled(kDisableVmm) ? WhyNative::kSwitchedOff
                                                             : WhyNative::kRange;
    const CUresult result = real().cuMemCreate(handle, bytes, prop, flags);
    SayIfPlainMemoryIsOut(result, bytes, why);
    if (result != CUDA_SUCCESS) return result;
    memory->native = *handle;
    CountNative(*memory, true);
    Count(why, bytes);
  }
  memory->key = *handle;
  Books().memories[memory->key] = std::move(memory);
  return CUDA_SUCCESS;
}

}  // namespace

CUresult CreateMemory(MemoryHandle* handle, size_t bytes, const CUmemAllocationProp* prop,
                      unsigned long long flags) {
  return WithPatience([&] { return TryCreateMemory(handle, bytes, prop, flags); });
}

CUresult ReleaseMemory(MemoryHandle handle) {
  std::lock_guard lock(mutex);
  Memory* memory = MemoryOf(handle);
  if (memory == nullptr) return real().cuMemRelease(handle);
  // An import may share the driver's name, with references that we do not know: the driver judges.
  const bool named_by_driver = memory->native == handle && memory->key == handle;
  if (memory->references == 0 && !named_by_driver) return CUDA_ERROR_INVALID_VALUE;
  if (memory->own_references != 0) {
    --memory->own_references;
  } else if (memory->native != 0) {
    const CUresult result = real().cuMemRelease(memory->native);
    if (result != CUDA_SUCCESS) return result;
  }
  if (memory->references != 0) --memory->references;
  ForgetIfUnused(memory);
  return CUDA_SUCCESS;
}

CUresult MapMemory(CUdeviceptr address, size_t bytes, size_t offset, MemoryHandle handle,
                   unsigned long long flags) {
  std::unique_lock lock(mutex);
  if (MustConvert(address, bytes, handle)) WaitAhead(lock);
  Memory* memory = MemoryOf(handle);
  uint64_t begin = 0;
  const Range* range = RangeAround(address, bytes, &begin);
  const bool promise = memory != nullptr && memory->native == 0;
  if (range != nullptr && (bytes == 0 || AnyMapping(address, bytes))) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (range != nullptr && promise) {
    if (!Aligned(address) || !Aligned(bytes) || offset != 0 || flags != 0 ||
        bytes > memory->bytes) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    if (memory->mapped_at == 0) return MapManagedPart(*range, begin, address, bytes, memory);
  }
  if (promise) {
    const CUresult result = GiveToDriver(memory);
    if (result == CUDA_ERROR_NOT_SUPPORTED) {
      return RefuseToShare("a second mapping is refused", *memory);
    }
    if (result != CUDA_SUCCESS) return result;
  }
  // It may have become the driver's just now, as the range that shows the memory.
  if (RangeAround(address, bytes, &begin) != nullptr && !GiveToDriver(begin)) {
    ATP_LOG_WARN(
        "a mapping is refused: plain and managed memory cannot be mixed in the range at 0x%llx. "
        "Remedy: ATP_DISABLE=vmm",
        static_cast<unsigned long long>(begin));
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  return MapNative(address, bytes, offset, memory, memory != nullptr ? memory->native : handle,
                   flags);
}

CUresult UnmapMemory(CUdeviceptr address, size_t bytes) {
  std::unique_lock lock(mutex);
  uint64_t begin = 0;
  const Range* range = RangeAround(address, bytes, &begin);
  if (range == nullptr) return UnmapNative(address, bytes);
  if (!MadeOfMappings(address, bytes)) return CUDA_ERROR_INVALID_VALUE;
  const CUcontext context = range->context;
  lock.unlock();  // others may ask about their memory meanwhile
  // The driver owes no wait here; but what is thrown away below must not be in use.
  const bool passed = context != nullptr && WaitForContext(context);
  lock.lock();
  if (RangeAround(address, bytes, &begin) == nullptr) return UnmapNative(address, bytes);
  LeaveRun(address, address + bytes);
  RemoveMappings(address, bytes);
  if (passed) DiscardUnclaimed(address, bytes, context);
  return CUDA_SUCCESS;
}

CUresult SetRangeAccess(CUdeviceptr address, size_t bytes, const CUmemAccessDesc* access,
                        size_t count) {
  std::lock_guard lock(mutex);
  uint64_t begin = 0;
  if (RangeAround(address, bytes, &begin) == nullptr) {
    return real().cuMemSetAccess(address, bytes, access, count);
  }
  if (access == nullptr || count == 0 || !MadeOfMappings(address, bytes)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  for (size_t i = 0; i < count; ++i) {
    const CUmemLocation& where = access[i].location;
    if (where.type != CU_MEM_LOCATION_TYPE_DEVICE) continue;  // the host may, always
    if (where.id < 0 || where.id >= kMaxDevices) return CUDA_ERROR_INVALID_DEVICE;
    NoteAccess(address, bytes, where.id, access[i].flags);
  }
  return CUDA_SUCCESS;
}

CUresult GetRangeAccess(unsigned long long* flags, const CUmemLocation* location,
                        CUdeviceptr address) {
  std::lock_guard lock(mutex);
  const Mapping* mapping = MappingAt(address);
  const bool ours = mapping != nullptr && mapping->memory->native == 0;
  if (!ours || flags == nullptr || location == nullptr ||
      location->type != CU_MEM_LOCATION_TYPE_DEVICE || location->id < 0 ||
      location->id >= kMaxDevices) {
    return real().cuMemGetAccess(flags, location, address);
  }
  *flags = mapping->access[location->id];
  return CUDA_SUCCESS;
}

CUresult RetainHandleOf(MemoryHandle* handle, void* address) {
  std::lock_guard lock(mutex);
  const Mapping* mapping = MappingAt(reinterpret_cast<uintptr_t>(address));
  if (mapping == nullptr || handle == nullptr) {
    return real().cuMemRetainAllocationHandle(handle, address);
  }
  Memory* memory = mapping->memory;
  if (memory->native != 0) {
    const CUresult result = real().cuMemRetainAllocationHandle(handle, address);
    if (result != CUDA_SUCCESS) return result;
    // The driver may name it otherwise than when it was created.
    if (*handle != memory->key) Books().aliases[*handle] = memory->key;
    memory->native = *handle;
  } else {
    *handle = memory->key;
  }
  ++memory->references;
  return CUDA_SUCCESS;
}

CUresult PropertiesOf(CUmemAllocationProp* prop, MemoryHandle handle) {
  std::lock_guard lock(mutex);
  const Memory* memory = MemoryOf(handle);
  if (memory == nullptr || memory->native != 0 || prop == nullptr) {
    return real().cuMemGetAllocationPropertiesFromHandle(
        prop, memory != nullptr && memory->native != 0 ? memory->native : handle);
  }
  *prop = memory->prop;
  return CUDA_SUCCESS;
}

CUresult DriverHandle(MemoryHandle handle, MemoryHandle* driver_handle) {
  std::unique_lock lock(mutex);
  *driver_handle = handle;
  const Memory* shown = MemoryOf(handle);
  if (shown != nullptr && shown->native == 0 && shown->mapped_at != 0) WaitAhead(lock);
  Memory* memory = MemoryOf(handle);
  if (memory == nullptr) return CUDA_SUCCESS;
  const CUresult result = GiveToDriver(memory);
  if (result == CUDA_ERROR_NOT_SUPPORTED) return RefuseToShare("an export is refused", *memory);
  if (result == CUDA_SUCCESS) *driver_handle = memory->native;
  return result;
}

CUresult GiveAddressToDriver(CUdeviceptr address, size_t bytes) {
  if (!RangesInUse()) return CUDA_SUCCESS;
  std::unique_lock lock(mutex);
  const auto promise = [&]() -> Memory* {
    uint64_t begin = 0;
    const Mapping* mapping = MappingAt(address);
    const bool ours = RangeAround(address, bytes, &begin) != nullptr && mapping != nullptr;
    return ours ? mapping->memory : nullptr;
  };
  if (promise() == nullptr) return CUDA_SUCCESS;
  WaitAhead(lock);
  Memory* memory = promise();
  if (memory == nullptr) return CUDA_SUCCESS;
  const CUresult result = GiveToDriver(memory);
  if (result == CUDA_ERROR_NOT_SUPPORTED) return RefuseToShare("an export is refused", *memory);
  return result;
}

CUresult ExportMemory(void* shareable, MemoryHandle handle, CUmemAllocationHandleType type,
                      unsigned long long flags) {
  MemoryHandle driver_handle = 0;
  const CUresult result = DriverHandle(handle, &driver_handle);
  if (result != CUDA_SUCCESS) return result;
  return real().cuMemExportToShareableHandle(shareable, driver_handle, type, flags);
}

InRange MappingAround(uint64_t address, uint64_t* start, uint64_t* bytes) {
  if (!RangesInUse()) return InRange::kNo;
  std::lock_guard lock(mutex);
  uint64_t begin = 0;
  if (RangeAround(address, 1, &begin) == nullptr) return InRange::kNo;
  const Mapping* mapping = MappingAt(address, start);
  if (mapping == nullptr) return InRange::kUnmapped;
  *bytes = mapping->bytes;
  return InRange::kMapped;
}

// The driver keeps addresses and physical memory beyond a context; managed memory it does not. The
// books stay, so that the program's calls find what they name.
void ForgetRangesOf(CUcontext context) {
  if (!RangesInUse()) return;
  std::lock_guard lock(mutex);
  for (auto& [address, range] : Books().ranges) {
    if (context == nullptr || range.context == context) {
      LeaveRun(address, address + range.bytes);
      range.context = nullptr;
    }
  }
}

void ResetRangesAfterFork() { new (&mutex) std::mutex; }

}  // namespace atp::shim
