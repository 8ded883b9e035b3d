// SPDX-License-Identifier: Apache-2.0
// Virtual memory management (cuMemAddressReserve, cuMemCreate, cuMemMap ...) on managed memory. An
// address range that the program reserves is one managed allocation, which takes no memory until it
// is touched; physical memory that it creates is a promise of ours, kept in the books; mapping one
// into the other makes that part of the range memory of the program.
//
// What managed memory cannot be stays the driver's: ranges at a wished address, memory with unusual
// properties, and everything once it is exported. A handle of ours that is still unmapped becomes
// the driver's when it meets such a use; so does a whole range, with the memory that it shows
// (vmm_convert.h). Where that fails, for instance because it does not fit the card, the use is
// refused with CUDA_ERROR_NOT_SUPPORTED and a line in the log that names the remedy.
//
// Any thread, re-entry guard held. One lock, held across driver calls: these calls are rare.
#pragma once

#include <cstddef>
#include <cstdint>

#include "shim/cuda_abi.h"

namespace atp::shim {

using MemoryHandle = CUmemGenericAllocationHandle;

CUresult ReserveRange(CUdeviceptr* address, size_t bytes, size_t alignment, CUdeviceptr wish,
                      unsigned long long flags);
CUresult FreeRange(CUdeviceptr address, size_t bytes);
CUresult CreateMemory(MemoryHandle* handle, size_t bytes, const CUmemAllocationProp* prop,
                      unsigned long long flags);
CUresult ReleaseMemory(MemoryHandle handle);
CUresult MapMemory(CUdeviceptr address, size_t bytes, size_t offset, MemoryHandle handle,
                   unsigned long long flags);
CUresult UnmapMemory(CUdeviceptr address, size_t bytes);
CUresult SetRangeAccess(CUdeviceptr address, size_t bytes, const CUmemAccessDesc* access,
                        size_t count);
CUresult GetRangeAccess(unsigned long long* flags, const CUmemLocation* location,
                        CUdeviceptr address);
CUresult RetainHandleOf(MemoryHandle* handle, void* address);
CUresult PropertiesOf(CUmemAllocationProp* prop, MemoryHandle handle);
CUresult ExportMemory(void* shareable, MemoryHandle handle, CUmemAllocationHandleType type,
                      unsigned long long flags);
// The handle that the driver knows: ours becomes the driver's, if it can.
CUresult DriverHandle(MemoryHandle handle, MemoryHandle* driver_handle);

// What a managed range shows at this address becomes the driver's too, before a use that asks for
// that by address. Success where there is no such memory.
CUresult GiveAddressToDriver(CUdeviceptr address, size_t bytes);

// An address in a managed range of ours: the mapping around it, as cuMemGetAddressRange tells it.
// kUnmapped: nothing is mapped there, so that natively the address would be unknown.
enum class InRange { kNo, kUnmapped, kMapped };
InRange MappingAround(uint64_t address, uint64_t* start, uint64_t* bytes);

// The context goes, and managed memory allocated in it.
void ForgetRangesOf(CUcontext context);
void ResetRangesAfterFork();

}  // namespace atp::shim
