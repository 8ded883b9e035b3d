// SPDX-License-Identifier: Apache-2.0
// Allocation and freeing of device, managed and pinned memory.
#include "sim/driver/driver.h"
#include "sim/driver/pool.h"

namespace atp::sim {
namespace {

CUresult AllocDevice(Call& call, CUdeviceptr* out, size_t bytes) {
  if (!out || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  Allocation* allocation = nullptr;
  CUresult result =
      call.driver.memory().AllocateDevice(call.lane(), call.context, bytes, &allocation);
  if (result == CUDA_ERROR_OUT_OF_MEMORY &&
      TrimPools(call.driver, call.lane(), call.context->device->index))
    result = call.driver.memory().AllocateDevice(call.lane(), call.context, bytes, &allocation);
  if (result == CUDA_SUCCESS) *out = allocation->begin;
  return result;
}

CUresult AllocHost(Call& call, void** out, size_t bytes, unsigned flags) {
  constexpr unsigned kKnown =
      CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
  if (!out || (flags & ~kKnown)) return CUDA_ERROR_INVALID_VALUE;
  *out = nullptr;
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  Allocation* allocation = nullptr;
  // With unified addressing every pinned allocation is mapped and portable.
  const unsigned effective = flags | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_PORTABLE;
  const CUresult result =
      call.driver.memory().AllocatePinned(call.lane(), call.context, bytes, effective, &allocation);
  if (result == CUDA_SUCCESS) *out = reinterpret_cast<void*>(allocation->begin);
  return result;
}

Allocation* PinnedAt(Call& call, const void* pointer) {
  Allocation* allocation = call.driver.memory().Find(reinterpret_cast<uint64_t>(pointer));
  return allocation && allocation->IsHost() && allocation->kind != MemoryKind::kMapped ? allocation
                                                                                       : nullptr;
}

}  // namespace
}  // namespace atp::sim

ATP_API cuMemGetInfo_v2(size_t* free_bytes, size_t* total_bytes) {
  ATP_CALL(kNeedsContext, cost::kCall);
  if (!free_bytes && !total_bytes) return CUDA_ERROR_INVALID_VALUE;
  const MemoryInfo info = call.machine().Info(call.context->device->index);
  if (free_bytes) *free_bytes = info.free_bytes;
  if (total_bytes) *total_bytes = info.total_bytes;
  return CUDA_SUCCESS;
}

ATP_API cuMemAlloc_v2(CUdeviceptr* address, size_t bytes) {
  ATP_CALL(kNeedsContext | kUnsafeInCapture, cost::kAlloc);
  return AllocDevice(call, address, bytes);
}

ATP_API cuMemAllocPitch_v2(CUdeviceptr* address, size_t* pitch, size_t width, size_t height,
                           unsigned element) {
  ATP_CALL(kNeedsContext | kUnsafeInCapture, cost::kAlloc);
  if (!pitch || (element != 4 && element != 8 && element != 16)) return CUDA_ERROR_INVALID_VALUE;
  *pitch = (width + 511) / 512 * 512;
  return AllocDevice(call, address, *pitch * height);
}

ATP_API cuMemAllocManaged(CUdeviceptr* address, size_t bytes, unsigned flags) {
  ATP_CALL(kNeedsContext | kUnsafeInCapture, cost::kAllocManaged);
  if (!address || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST) return CUDA_ERROR_INVALID_VALUE;
  if (!call.driver.settings().managed) return CUDA_ERROR_NOT_SUPPORTED;
  Allocation* allocation = nullptr;
  const CUresult result =
      call.driver.memory().AllocateManaged(call.lane(), call.context, bytes, flags, &allocation);
  if (result == CUDA_SUCCESS) *address = allocation->begin;
  return result;
}

ATP_API cuMemFree_v2(CUdeviceptr address) {
  ATP_CALL(kNeedsContext | kUnsafeInCapture, cost::kNone);
  if (address == 0) return CUDA_SUCCESS;
  Allocation* allocation = call.driver.memory().Find(address);
  if (!allocation || allocation->begin != address) return CUDA_ERROR_INVALID_VALUE;
  const bool managed = allocation->IsManaged();
  call.machine().SpendCall(call.lane(), managed ? cost::kFreeManaged : cost::kFree);
  if (!managed && allocation->kind != MemoryKind::kDevice &&
      allocation->kind != MemoryKind::kPooled)
    return CUDA_ERROR_INVALID_VALUE;
  // A free waits for everything the device is doing.
  if (const CUresult result = WaitForContext(call, *allocation->context); result != CUDA_SUCCESS)
    return result;
  if (allocation->kind == MemoryKind::kPooled) {
    PoolFree(call.driver, call.lane(), allocation, nullptr);
  } else {
    call.driver.memory().Free(call.lane(), allocation);
  }
  return CUDA_SUCCESS;
}

ATP_API cuMemAllocHost_v2(void** pointer, size_t bytes) {
  ATP_CALL(kNeedsContext | kUnsafeInCapture, cost::kAllocHost);
  return AllocHost(call, pointer, bytes, 0);
}

ATP_API cuMemHostAlloc(void** pointer, size_t bytes, unsigned flags) {
  ATP_CALL(kNeedsContext | kUnsafeInCapture, cost::kAllocHost);
  return AllocHost(call, pointer, bytes, flags);
}

ATP_API cuMemFreeHost(void* pointer) {
  ATP_CALL(kNeedsContext | kUnsafeInCapture, cost::kFreeHost);
  Allocation* allocation = PinnedAt(call, pointer);
  const bool ours = allocation && allocation->kind == MemoryKind::kPinned &&
                    allocation->begin == reinterpret_cast<uint64_t>(pointer);
  if (!ours) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult result = WaitForContext(call, *allocation->context); result != CUDA_SUCCESS)
    return result;
  call.driver.memory().Free(call.lane(), allocation);
  return CUDA_SUCCESS;
}

ATP_API cuMemHostRegister_v2(void* pointer, size_t bytes, unsigned flags) {
  ATP_CALL(kNeedsContext | kUnsafeInCapture, cost::kAllocHost);
  constexpr unsigned kKnown = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP |
                              CU_MEMHOSTREGISTER_IOMEMORY | CU_MEMHOSTREGISTER_READ_ONLY;
  if (!pointer || bytes == 0 || (flags & ~kKnown)) return CUDA_ERROR_INVALID_VALUE;
  if (flags & CU_MEMHOSTREGISTER_IOMEMORY) return CUDA_ERROR_NOT_SUPPORTED;
  return call.driver.memory().Register(call.context, reinterpret_cast<uint64_t>(pointer), bytes,
                                       flags, !(flags & CU_MEMHOSTREGISTER_READ_ONLY));
}

ATP_API cuMemHostRegister(void* pointer, size_t bytes, unsigned flags) {
  return cuMemHostRegister_v2(pointer, bytes, flags);
}

ATP_API cuMemHostUnregister(void* pointer) {
  ATP_CALL(kNeedsContext | kUnsafeInCapture, cost::kFreeHost);
  Allocation* allocation = PinnedAt(call, pointer);
  const bool registered = allocation && allocation->kind == MemoryKind::kRegistered &&
                          allocation->begin == reinterpret_cast<uint64_t>(pointer);
  if (!registered) return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
  if (const CUresult result = WaitForContext(call, *allocation->context); result != CUDA_SUCCESS)
    return result;
  call.driver.memory().Free(call.lane(), allocation);
  return CUDA_SUCCESS;
}

ATP_API cuMemHostGetDevicePointer_v2(CUdeviceptr* address, void* pointer, unsigned flags) {
  ATP_CALL(kNeedsContext, cost::kCall);
  if (!address || flags) return CUDA_ERROR_INVALID_VALUE;
  if (!PinnedAt(call, pointer)) return CUDA_ERROR_INVALID_VALUE;
  *address = reinterpret_cast<CUdeviceptr>(pointer);
  return CUDA_SUCCESS;
}

ATP_API cuMemHostGetFlags(unsigned* flags, void* pointer) {
  ATP_CALL(kNeedsContext, cost::kCall);
  if (!flags) return CUDA_ERROR_INVALID_VALUE;
  const Allocation* allocation = PinnedAt(call, pointer);
  if (!allocation) return CUDA_ERROR_INVALID_VALUE;
  *flags = allocation->flags;
  return CUDA_SUCCESS;
}

ATP_API cuMemGetAddressRange_v2(CUdeviceptr* base, size_t* bytes, CUdeviceptr address) {
  ATP_CALL(kNeedsContext, cost::kCall);
  const Allocation* allocation = call.driver.memory().Find(address);
  if (!allocation) return CUDA_ERROR_NOT_FOUND;
  if (base) *base = allocation->begin;
  if (bytes) *bytes = allocation->bytes;
  return CUDA_SUCCESS;
}
