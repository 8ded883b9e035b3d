// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>

#include "sim/driver/driver.h"
#include "sim/driver/vmm.h"

namespace atp::sim {

void ReleaseIfUnused(Driver& driver, Lane lane, PhysicalMemory* memory) {
  if (memory->references || memory->mappings) return;
  Arena& arena = driver.memory().arena();
  if (!memory->imported) driver.machine().FreeDevice(lane, memory->device, memory->bytes);
  if (memory->file >= 0) {
    arena.UnmapForeign(memory->storage, memory->bytes);
    close(memory->file);
  }
  arena.Free(memory->storage, memory->bytes);
  driver.physical.Remove(memory);
  delete memory;
}

namespace {

// Checks what a program wants of physical memory, and finds the device.
CUresult CheckProp(Call& call, const CUmemAllocationProp* prop, int* device) {
  if (!prop || prop->type != CU_MEM_ALLOCATION_TYPE_PINNED) return CUDA_ERROR_INVALID_VALUE;
  if (prop->requestedHandleTypes & ~CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
    return CUDA_ERROR_NOT_SUPPORTED;
  switch (prop->location.type) {
    case CU_MEM_LOCATION_TYPE_DEVICE: {
      const Device* found = call.driver.DeviceAt(prop->location.id);
      if (!found) return CUDA_ERROR_INVALID_DEVICE;
      *device = found->index;
      return CUDA_SUCCESS;
    }
    case CU_MEM_LOCATION_TYPE_HOST:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
      return CUDA_ERROR_NOT_SUPPORTED;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

bool IsAligned(uint64_t value) { return value % kBlockBytes == 0; }

// Mappings that make up [address, address + bytes) exactly; empty when they do not.
std::vector<Allocation*> MappingsOf(Call& call, CUdeviceptr address, size_t bytes) {
  std::vector<Allocation*> found;
  for (uint64_t at = address; at < address + bytes;) {
    Allocation* mapping = call.driver.memory().Find(at);
    if (!mapping || mapping->kind != MemoryKind::kMapped || mapping->begin != at) return {};
    if (mapping->end() > address + bytes) return {};
    found.push_back(mapping);
    at = mapping->end();
  }
  return found;
}

// The reservation that holds a range, end() when there is none.
std::map<uint64_t, uint64_t>::iterator ReservationOf(Call& call, uint64_t address, uint64_t bytes) {
  auto& all = call.driver.reservations;
  auto it = all.upper_bound(address);
  if (it == all.begin()) return all.end();
  --it;
  return address + bytes <= it->first + it->second ? it : all.end();
}

bool AnyMappingIn(Call& call, uint64_t address, uint64_t bytes) {
  const auto& all = call.driver.memory().all();
  const auto next = all.lower_bound(address);
  return call.driver.memory().Find(address) || (next != all.end() && next->first < address + bytes);
}

}  // namespace
}  // namespace atp::sim

ATP_API cuMemGetAllocationGranularity(size_t* granularity, const CUmemAllocationProp* prop,
                                      CUmemAllocationGranularity_flags) {
  ATP_CALL(kNeedsInit, cost::kCall);
  int device = 0;
  if (!granularity) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = CheckProp(call, prop, &device);
  if (result == CUDA_SUCCESS) *granularity = kBlockBytes;
  return result;
}

ATP_API cuMemAddressReserve(CUdeviceptr* out, size_t bytes, size_t alignment, CUdeviceptr wish,
                            unsigned long long flags) {
  ATP_CALL(kNeedsInit, cost::kCall);
  const bool power = (alignment & (alignment - 1)) == 0;
  if (!out || bytes == 0 || !IsAligned(bytes) || !power || flags) return CUDA_ERROR_INVALID_VALUE;
  Arena& arena = call.driver.memory().arena();
  uint64_t address = 0;
  if (wish && IsAligned(wish) && arena.AllocateAt(wish, bytes)) address = wish;  // only a wish
  if (!address) address = arena.Allocate(bytes, std::max<uint64_t>(alignment, kBlockBytes));
  if (!address) return CUDA_ERROR_OUT_OF_MEMORY;
  call.driver.reservations[address] = bytes;
  *out = address;
  return CUDA_SUCCESS;
}

ATP_API cuMemAddressFree(CUdeviceptr address, size_t bytes) {
  ATP_CALL(kNeedsInit, cost::kCall);
  const auto reservation = call.driver.reservations.find(address);
  if (reservation == call.driver.reservations.end() || reservation->second != bytes)
    return CUDA_ERROR_INVALID_VALUE;
  if (AnyMappingIn(call, address, bytes)) return CUDA_ERROR_INVALID_VALUE;
  call.driver.memory().arena().Free(address, bytes);
  call.driver.reservations.erase(reservation);
  return CUDA_SUCCESS;
}

ATP_API cuMemCreate(CUmemGenericAllocationHandle* out, size_t bytes,
                    const CUmemAllocationProp* prop, unsigned long long flags) {
  ATP_CALL(kNeedsInit | kUnsafeInCapture, cost::kAlloc);
  int device = 0;
  if (!out || bytes == 0 || !IsAligned(bytes) || flags) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult result = CheckProp(call, prop, &device); result != CUDA_SUCCESS) return result;
  if (call.machine().AllocDevice(call.lane(), device, bytes) != MachineStatus::kOk)
    return CUDA_ERROR_OUT_OF_MEMORY;
  const uint64_t storage = call.driver.memory().arena().Allocate(bytes, kBlockBytes);
  if (!storage) {
    call.machine().FreeDevice(call.lane(), device, bytes);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  auto* memory = new PhysicalMemory;
  memory->storage = storage;
  memory->bytes = bytes;
  memory->prop = *prop;
  memory->device = device;
  memory->number = call.driver.NextNumber();
  const bool shareable = prop->requestedHandleTypes != CU_MEM_HANDLE_TYPE_NONE;
  if (shareable && !MakeShareable(call.driver, memory)) {
    memory->references = 0;
    ReleaseIfUnused(call.driver, call.lane(), memory);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  *out = reinterpret_cast<CUmemGenericAllocationHandle>(call.driver.physical.Add(memory));
  return CUDA_SUCCESS;
}

ATP_API cuMemRelease(CUmemGenericAllocationHandle handle) {
  ATP_CALL(kNeedsInit | kUnsafeInCapture, cost::kFree);
  PhysicalMemory* memory = call.driver.physical.Get(reinterpret_cast<void*>(handle));
  if (!memory || memory->references == 0) return CUDA_ERROR_INVALID_VALUE;
  --memory->references;
  ReleaseIfUnused(call.driver, call.lane(), memory);
  return CUDA_SUCCESS;
}

ATP_API cuMemMap(CUdeviceptr address, size_t bytes, size_t offset,
                 CUmemGenericAllocationHandle handle, unsigned long long flags) {
  ATP_CALL(kNeedsInit | kUnsafeInCapture, cost::kCall);
  PhysicalMemory* memory = call.driver.physical.Get(reinterpret_cast<void*>(handle));
  const bool valid = memory && bytes && IsAligned(address) && IsAligned(bytes) && flags == 0 &&
                     offset == 0 && bytes <= memory->bytes;
  if (!valid || ReservationOf(call, address, bytes) == call.driver.reservations.end() ||
      AnyMappingIn(call, address, bytes))
    return CUDA_ERROR_INVALID_VALUE;
  auto mapping = std::make_unique<Allocation>();
  mapping->begin = address;
  mapping->bytes = bytes;
  mapping->kind = MemoryKind::kMapped;
  mapping->device = memory->device;
  mapping->physical = memory;
  mapping->host_delta =
      static_cast<int64_t>(memory->storage - address) + call.driver.memory().arena().device_delta();
  ++memory->mappings;
  call.driver.memory().Insert(std::move(mapping));
  return CUDA_SUCCESS;
}

ATP_API cuMemUnmap(CUdeviceptr address, size_t bytes) {
  ATP_CALL(kNeedsInit | kUnsafeInCapture, cost::kCall);
  const std::vector<Allocation*> mappings = MappingsOf(call, address, bytes);
  if (mappings.empty()) return CUDA_ERROR_INVALID_VALUE;
  for (Allocation* mapping : mappings) call.machine().SyncDevice(call.lane(), mapping->device);
  for (Allocation* mapping : mappings) {
    PhysicalMemory* memory = mapping->physical;
    call.driver.memory().Remove(mapping);
    --memory->mappings;
    ReleaseIfUnused(call.driver, call.lane(), memory);
  }
  return CUDA_SUCCESS;
}

ATP_API cuMemSetAccess(CUdeviceptr address, size_t bytes, const CUmemAccessDesc* access,
                       size_t count) {
  ATP_CALL(kNeedsInit | kUnsafeInCapture, cost::kCall);
  if (!access || count == 0) return CUDA_ERROR_INVALID_VALUE;
  const std::vector<Allocation*> mappings = MappingsOf(call, address, bytes);
  if (mappings.empty()) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; ++i) {
    if (access[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_NOT_SUPPORTED;
    const Device* device = call.driver.DeviceAt(access[i].location.id);
    if (!device) return CUDA_ERROR_INVALID_DEVICE;
    for (Allocation* mapping : mappings) {
      const uint32_t bit = 1u << device->index;
      mapping->peers = access[i].flags ? mapping->peers | bit : mapping->peers & ~bit;
      mapping->writable = access[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READ;
    }
  }
  return CUDA_SUCCESS;
}

ATP_API cuMemGetAccess(unsigned long long* flags, const CUmemLocation* location,
                       CUdeviceptr address) {
  ATP_CALL(kNeedsInit, cost::kCall);
  const Allocation* mapping = call.driver.memory().Find(address);
  if (!flags || !location || !mapping || mapping->kind != MemoryKind::kMapped)
    return CUDA_ERROR_INVALID_VALUE;
  if (location->type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_NOT_SUPPORTED;
  const Device* device = call.driver.DeviceAt(location->id);
  if (!device) return CUDA_ERROR_INVALID_DEVICE;
  const bool may = (mapping->peers & (1u << device->index)) != 0;
  *flags = !may                ? CU_MEM_ACCESS_FLAGS_PROT_NONE
           : mapping->writable ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
                               : CU_MEM_ACCESS_FLAGS_PROT_READ;
  return CUDA_SUCCESS;
}

ATP_API cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle, void* pointer) {
  ATP_CALL(kNeedsInit, cost::kCall);
  const Allocation* mapping = call.driver.memory().Find(reinterpret_cast<uint64_t>(pointer));
  if (!handle || !mapping || mapping->kind != MemoryKind::kMapped) return CUDA_ERROR_INVALID_VALUE;
  ++mapping->physical->references;
  *handle = reinterpret_cast<CUmemGenericAllocationHandle>(mapping->physical);
  return CUDA_SUCCESS;
}

ATP_API cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp* prop,
                                               CUmemGenericAllocationHandle handle) {
  ATP_CALL(kNeedsInit, cost::kCall);
  const PhysicalMemory* memory = call.driver.physical.Get(reinterpret_cast<void*>(handle));
  if (!prop || !memory) return CUDA_ERROR_INVALID_VALUE;
  *prop = memory->prop;
  return CUDA_SUCCESS;
}
