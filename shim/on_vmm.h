// SPDX-License-Identifier: Apache-2.0
// Bodies of the hooks of virtual memory management. What they decide is in vmm.cc.
#pragma once

#include "shim/resolve.h"
#include "shim/vmm.h"

namespace atp::shim {

template <HookId>
CUresult OnAddressReserve(CUdeviceptr* address, size_t bytes, size_t alignment, CUdeviceptr wish,
                          unsigned long long flags) {
  return ReserveRange(address, bytes, alignment, wish, flags);
}

template <HookId>
CUresult OnAddressFree(CUdeviceptr address, size_t bytes) {
  return FreeRange(address, bytes);
}

template <HookId>
CUresult OnMemCreate(MemoryHandle* handle, size_t bytes, const CUmemAllocationProp* prop,
                     unsigned long long flags) {
  return CreateMemory(handle, bytes, prop, flags);
}

template <HookId>
CUresult OnMemRelease(MemoryHandle handle) {
  return ReleaseMemory(handle);
}

template <HookId>
CUresult OnMemMap(CUdeviceptr address, size_t bytes, size_t offset, MemoryHandle handle,
                  unsigned long long flags) {
  return MapMemory(address, bytes, offset, handle, flags);
}

template <HookId>
CUresult OnMemUnmap(CUdeviceptr address, size_t bytes) {
  return UnmapMemory(address, bytes);
}

template <HookId>
CUresult OnMemSetAccess(CUdeviceptr address, size_t bytes, const CUmemAccessDesc* access,
                        size_t count) {
  return SetRangeAccess(address, bytes, access, count);
}

template <HookId>
CUresult OnMemGetAccess(unsigned long long* flags, const CUmemLocation* location,
                        CUdeviceptr address) {
  return GetRangeAccess(flags, location, address);
}

template <HookId>
CUresult OnRetainAllocationHandle(MemoryHandle* handle, void* address) {
  return RetainHandleOf(handle, address);
}

template <HookId>
CUresult OnPropertiesFromHandle(CUmemAllocationProp* prop, MemoryHandle handle) {
  return PropertiesOf(prop, handle);
}

template <HookId>
CUresult OnExportHandle(void* shareable, MemoryHandle handle, CUmemAllocationHandleType type,
                        unsigned long long flags) {
  return ExportMemory(shareable, handle, type, flags);
}

template <HookId id>
CUresult OnMulticastBind(MemoryHandle multicast, size_t multicast_offset, MemoryHandle handle,
                         size_t offset, size_t bytes, unsigned long long flags) {
  MemoryHandle driver_handle = 0;
  const CUresult result = DriverHandle(handle, &driver_handle);
  if (result != CUDA_SUCCESS) return result;
  return Row<id>::Real()(multicast, multicast_offset, driver_handle, offset, bytes, flags);
}

template <HookId id>
CUresult OnMulticastBindAddress(MemoryHandle multicast, size_t offset, CUdeviceptr address,
                                size_t bytes, unsigned long long flags) {
  const CUresult given = GiveAddressToDriver(address, bytes);
  return given == CUDA_SUCCESS ? Row<id>::Real()(multicast, offset, address, bytes, flags) : given;
}

}  // namespace atp::shim
