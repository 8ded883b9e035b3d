// SPDX-License-Identifier: Apache-2.0
// Stream-ordered allocation and memory pools.
#include <cstring>

#include "sim/driver/capture.h"
#include "sim/driver/driver.h"
#include "sim/driver/graph.h"
#include "sim/driver/pool.h"

namespace atp::sim {
namespace {

CUresult Allocate(Call& call, CUdeviceptr* out, size_t bytes, Pool* pool, CUstream handle) {
  if (!out || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  Stream* stream = nullptr;
  if (const CUresult result = ResolveStream(call, handle, &stream); result != CUDA_SUCCESS)
    return result;
  if (!pool) pool = stream->context->device->pool;
  if (IsCapturing(*stream)) {
    GraphAllocTask task;
    task.params.poolProps = pool->props;
    task.params.bytesize = bytes;
    const CUresult result = AllocateForGraph(call.driver, call.lane(), *stream, &task);
    if (result == CUDA_SUCCESS) *out = task.params.dptr;
    return result == CUDA_SUCCESS ? CaptureTask(call, *stream, std::move(task)) : result;
  }
  uint64_t address = 0;
  const CUresult result = PoolAllocate(call.driver, call.lane(), *pool, *stream, bytes, &address);
  if (result == CUDA_SUCCESS) *out = address;
  return result;
}

Device* DeviceOf(Call& call, const CUmemLocation& location) {
  return location.type == CU_MEM_LOCATION_TYPE_DEVICE ? call.driver.DeviceAt(location.id) : nullptr;
}

uint64_t* Counter(Pool* pool, CUmemPool_attribute attribute) {
  switch (attribute) {
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
      return &pool->release_threshold;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
      return &pool->reserved;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
      return &pool->reserved_high;
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
      return &pool->used;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
      return &pool->used_high;
    default:
      return nullptr;
  }
}

int* Switch(Pool* pool, CUmemPool_attribute attribute) {
  switch (attribute) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
      return &pool->reuse[0];
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
      return &pool->reuse[1];
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
      return &pool->reuse[2];
    default:
      return nullptr;
  }
}

// The device pool that a location and type mean; managed and host pools are not there.
CUresult PoolAt(Call& call, const CUmemLocation* location, CUmemAllocationType type,
                Device** device) {
  if (!location) return CUDA_ERROR_INVALID_VALUE;
  if (type != CU_MEM_ALLOCATION_TYPE_PINNED || location->type != CU_MEM_LOCATION_TYPE_DEVICE)
    return CUDA_ERROR_NOT_SUPPORTED;
  *device = DeviceOf(call, *location);
  return *device ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

}  // namespace
}  // namespace atp::sim

ATP_API cuMemAllocAsync(CUdeviceptr* address, size_t bytes, CUstream stream) {
  ATP_CALL(kNeedsContext, cost::kCall);
  return Allocate(call, address, bytes, nullptr, stream);
}

ATP_API cuMemAllocFromPoolAsync(CUdeviceptr* address, size_t bytes, CUmemoryPool handle,
                                CUstream stream) {
  ATP_CALL(kNeedsContext, cost::kCall);
  Pool* pool = call.driver.pools.Get(handle);
  return pool ? Allocate(call, address, bytes, pool, stream) : CUDA_ERROR_INVALID_VALUE;
}

ATP_API cuMemFreeAsync(CUdeviceptr address, CUstream handle) {
  ATP_CALL(kNeedsContext, cost::kCall);
  Stream* stream = nullptr;
  if (const CUresult result = ResolveStream(call, handle, &stream); result != CUDA_SUCCESS)
    return result;
  if (address == 0) return CUDA_SUCCESS;
  const Allocation* allocation = call.driver.memory().Find(address);
  if (!allocation || allocation->begin != address) return CUDA_ERROR_INVALID_VALUE;
  // Memory of cuMemAlloc may be freed in stream order as well ("CUDA C++ Programming Guide", stream
  // ordered memory allocator). A capture makes a free node, which takes a graph's allocation only.
  const bool plain = allocation->kind == MemoryKind::kDevice && !IsCapturing(*stream);
  const bool freeable = plain || allocation->kind == MemoryKind::kPooled;
  return freeable ? Submit(call, *stream, FreeTask{address}) : CUDA_ERROR_INVALID_VALUE;
}

ATP_API cuDeviceGetDefaultMemPool(CUmemoryPool* pool, CUdevice ordinal) {
  ATP_CALL(kNeedsInit, cost::kCall);
  if (!pool) return CUDA_ERROR_INVALID_VALUE;
  const Device* device = call.driver.DeviceAt(ordinal);
  if (!device) return CUDA_ERROR_INVALID_DEVICE;
  *pool = reinterpret_cast<CUmemoryPool>(device->default_pool);
  return CUDA_SUCCESS;
}

ATP_API cuDeviceGetMemPool(CUmemoryPool* pool, CUdevice ordinal) {
  ATP_CALL(kNeedsInit, cost::kCall);
  if (!pool) return CUDA_ERROR_INVALID_VALUE;
  const Device* device = call.driver.DeviceAt(ordinal);
  if (!device) return CUDA_ERROR_INVALID_DEVICE;
  *pool = reinterpret_cast<CUmemoryPool>(device->pool);
  return CUDA_SUCCESS;
}

ATP_API cuDeviceSetMemPool(CUdevice ordinal, CUmemoryPool handle) {
  ATP_CALL(kNeedsInit, cost::kCall);
  Device* device = call.driver.DeviceAt(ordinal);
  if (!device) return CUDA_ERROR_INVALID_DEVICE;
  Pool* pool = call.driver.pools.Get(handle);
  if (!pool || pool->device != device) return CUDA_ERROR_INVALID_VALUE;
  device->pool = pool;
  return CUDA_SUCCESS;
}

ATP_API cuMemGetDefaultMemPool(CUmemoryPool* pool, CUmemLocation* location,
                               CUmemAllocationType type) {
  ATP_CALL(kNeedsInit, cost::kCall);
  Device* device = nullptr;
  if (!pool) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = PoolAt(call, location, type, &device);
  if (result == CUDA_SUCCESS) *pool = reinterpret_cast<CUmemoryPool>(device->default_pool);
  return result;
}

ATP_API cuMemGetMemPool(CUmemoryPool* pool, CUmemLocation* location, CUmemAllocationType type) {
  ATP_CALL(kNeedsInit, cost::kCall);
  Device* device = nullptr;
  if (!pool) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = PoolAt(call, location, type, &device);
  if (result == CUDA_SUCCESS) *pool = reinterpret_cast<CUmemoryPool>(device->pool);
  return result;
}

ATP_API cuMemSetMemPool(CUmemLocation* location, CUmemAllocationType type, CUmemoryPool handle) {
  ATP_CALL(kNeedsInit, cost::kCall);
  Device* device = nullptr;
  if (const CUresult result = PoolAt(call, location, type, &device); result != CUDA_SUCCESS)
    return result;
  Pool* pool = call.driver.pools.Get(handle);
  if (!pool || pool->device != device) return CUDA_ERROR_INVALID_VALUE;
  device->pool = pool;
  return CUDA_SUCCESS;
}

ATP_API cuMemPoolCreate(CUmemoryPool* out, const CUmemPoolProps* props) {
  ATP_CALL(kNeedsInit, cost::kStream);
  if (!out || !props) return CUDA_ERROR_INVALID_VALUE;
  if (props->handleTypes != CU_MEM_HANDLE_TYPE_NONE) return CUDA_ERROR_NOT_SUPPORTED;
  Device* device = nullptr;
  if (const CUresult result = PoolAt(call, &props->location, props->allocType, &device);
      result != CUDA_SUCCESS)
    return result;
  *out = reinterpret_cast<CUmemoryPool>(NewPool(call.driver, *device, *props));
  return CUDA_SUCCESS;
}

ATP_API cuMemPoolDestroy(CUmemoryPool handle) {
  ATP_CALL(kNeedsInit, cost::kStream);
  Pool* pool = call.driver.pools.Get(handle);
  if (!pool || pool->is_default) return CUDA_ERROR_INVALID_VALUE;
  DestroyPool(call.driver, call.lane(), pool);
  return CUDA_SUCCESS;
}

ATP_API cuMemPoolTrimTo(CUmemoryPool handle, size_t keep) {
  ATP_CALL(kNeedsInit, cost::kCall);
  Pool* pool = call.driver.pools.Get(handle);
  if (!pool) return CUDA_ERROR_INVALID_VALUE;
  TrimPool(call.driver, call.lane(), *pool, keep);
  return CUDA_SUCCESS;
}

ATP_API cuMemPoolGetAttribute(CUmemoryPool handle, CUmemPool_attribute attribute, void* value) {
  ATP_CALL(kNeedsInit, cost::kCall);
  Pool* pool = call.driver.pools.Get(handle);
  if (!pool || !value) return CUDA_ERROR_INVALID_VALUE;
  if (const uint64_t* counter = Counter(pool, attribute)) {
    std::memcpy(value, counter, sizeof *counter);
  } else if (const int* toggle = Switch(pool, attribute)) {
    std::memcpy(value, toggle, sizeof *toggle);
  } else {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

ATP_API cuMemPoolSetAttribute(CUmemoryPool handle, CUmemPool_attribute attribute, void* value) {
  ATP_CALL(kNeedsInit, cost::kCall);
  Pool* pool = call.driver.pools.Get(handle);
  if (!pool || !value) return CUDA_ERROR_INVALID_VALUE;
  if (int* toggle = Switch(pool, attribute)) {
    std::memcpy(toggle, value, sizeof *toggle);
    return CUDA_SUCCESS;
  }
  uint64_t number = 0;
  std::memcpy(&number, value, sizeof number);
  switch (attribute) {
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
      pool->release_threshold = number;
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:  // the high-water marks can only be reset
      if (number) return CUDA_ERROR_INVALID_VALUE;
      pool->reserved_high = pool->reserved;
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
      if (number) return CUDA_ERROR_INVALID_VALUE;
      pool->used_high = pool->used;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

ATP_API cuMemPoolSetAccess(CUmemoryPool handle, const CUmemAccessDesc* map, size_t count) {
  ATP_CALL(kNeedsInit, cost::kCall);
  Pool* pool = call.driver.pools.Get(handle);
  if (!pool || !map || count == 0) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; ++i) {
    const Device* device = DeviceOf(call, map[i].location);
    if (!device) return CUDA_ERROR_INVALID_DEVICE;
    if (device == pool->device && map[i].flags == CU_MEM_ACCESS_FLAGS_PROT_NONE)
      return CUDA_ERROR_INVALID_VALUE;
    const uint32_t bit = 1u << device->index;
    pool->peers = map[i].flags ? pool->peers | bit : pool->peers & ~bit;
  }
  for (const auto& [address, allocation] : call.driver.memory().all()) {
    if (allocation->pool == pool) allocation->peers = pool->peers;
  }
  return CUDA_SUCCESS;
}

ATP_API cuMemPoolGetAccess(CUmemAccess_flags* flags, CUmemoryPool handle, CUmemLocation* location) {
  ATP_CALL(kNeedsInit, cost::kCall);
  Pool* pool = call.driver.pools.Get(handle);
  if (!flags || !pool || !location) return CUDA_ERROR_INVALID_VALUE;
  const Device* device = DeviceOf(call, *location);
  if (!device) return CUDA_ERROR_INVALID_DEVICE;
  const bool may = device == pool->device || (pool->peers & (1u << device->index));
  *flags = may ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE;
  return CUDA_SUCCESS;
}
