// SPDX-License-Identifier: Apache-2.0
// Attributes of pointers.
#include <cstring>

#include "sim/driver/driver.h"

namespace atp::sim {
namespace {

template <class T>
void Store(void* data, T value) {
  std::memcpy(data, &value, sizeof value);
}

// Attributes whose answer for a pointer nobody knows is not simply zero.
void StoreUnknown(void* data, CUpointer_attribute attribute) {
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      Store<int>(data, CU_DEVICE_INVALID);
      break;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_MAPPED:
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
      Store<unsigned>(data, 0);
      break;
    case CU_POINTER_ATTRIBUTE_P2P_TOKENS:
      break;
    default:
      Store<uint64_t>(data, 0);
      break;
  }
}

bool IsIpcCapable(const Allocation& allocation) { return allocation.kind == MemoryKind::kDevice; }

int OrdinalOf(const Driver& driver, const Allocation& allocation) {
  for (const Device* device : driver.devices()) {
    if (device->index == allocation.device) return device->ordinal;
  }
  return CU_DEVICE_INVALID;
}

CUresult Get(Driver& driver, void* data, CUpointer_attribute attribute,
             const Allocation& allocation, uint64_t address) {
  const bool host_readable = allocation.IsHost() || allocation.IsManaged();
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT: {
      // Pool and virtual memory belongs to a device, not to a context.
      const bool owned =
          allocation.kind != MemoryKind::kPooled && allocation.kind != MemoryKind::kMapped;
      Store<CUcontext>(data, owned ? reinterpret_cast<CUcontext>(allocation.context) : nullptr);
      break;
    }
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      Store<unsigned>(data, allocation.IsHost() ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE);
      break;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      Store<CUdeviceptr>(data, address);
      break;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      Store<void*>(data, host_readable ? reinterpret_cast<void*>(address) : nullptr);
      return host_readable ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
      Store<int>(data, 0);
      break;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
      Store<unsigned long long>(data, allocation.id);
      break;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      Store<unsigned>(data, allocation.IsManaged());
      break;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      Store<int>(data, OrdinalOf(driver, allocation));
      break;
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
      Store<int>(data, IsIpcCapable(allocation));
      break;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
      Store<CUdeviceptr>(data, allocation.begin);
      break;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
      Store<size_t>(data, allocation.bytes);
      break;
    case CU_POINTER_ATTRIBUTE_MAPPED:
      Store<int>(data, 1);
      break;
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
      Store<uint64_t>(data, 0);
      break;
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
      Store<int>(data, 0);
      break;
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
      Store<int>(data, allocation.writable ? CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE
                                           : CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READ);
      break;
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
      Store<CUmemoryPool>(data, reinterpret_cast<CUmemoryPool>(allocation.pool));
      break;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

bool IsKnown(CUpointer_attribute attribute) { return attribute >= 1 && attribute <= 21; }

}  // namespace
}  // namespace atp::sim

ATP_API cuPointerGetAttribute(void* data, CUpointer_attribute attribute, CUdeviceptr address) {
  ATP_CALL(kNeedsContext, cost::kCall);
  if (!data || !IsKnown(attribute)) return CUDA_ERROR_INVALID_VALUE;
  const Allocation* allocation = call.driver.memory().Find(address);
  if (!allocation) return CUDA_ERROR_INVALID_VALUE;
  return Get(call.driver, data, attribute, *allocation, address);
}

// Succeeds for pointers nobody knows too, with zeros: the runtime relies on it.
ATP_API cuPointerGetAttributes(unsigned count, CUpointer_attribute* attributes, void** data,
                               CUdeviceptr address) {
  ATP_CALL(kNeedsContext, cost::kCall);
  if (!attributes || !data) return CUDA_ERROR_INVALID_VALUE;
  const Allocation* allocation = call.driver.memory().Find(address);
  for (unsigned i = 0; i < count; ++i) {
    if (!IsKnown(attributes[i])) return CUDA_ERROR_INVALID_VALUE;
    if (!allocation) {
      StoreUnknown(data[i], attributes[i]);
    } else {
      Get(call.driver, data[i], attributes[i], *allocation, address);
    }
  }
  return CUDA_SUCCESS;
}

ATP_API cuPointerSetAttribute(const void* value, CUpointer_attribute attribute,
                              CUdeviceptr address) {
  ATP_CALL(kNeedsContext, cost::kCall);
  if (!value || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS) return CUDA_ERROR_INVALID_VALUE;
  return call.driver.memory().Find(address) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
