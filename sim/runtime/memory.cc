// SPDX-License-Identifier: Apache-2.0
// Device, managed and host memory, pointers and advice.
#include "sim/runtime/registry.h"

namespace {

using namespace atp::simrt;  // NOLINT: this file only forwards calls

// Rows start at multiples of this, so that every row is aligned for any access; NVIDIA's runtime
// computes pitches itself.
constexpr size_t kPitchBytes = 512;

size_t Pitch(size_t width) { return (width + kPitchBytes - 1) / kPitchBytes * kPitchBytes; }

Status Allocate(const DriverCalls& cu, void** pointer, size_t bytes) {
  if (!pointer) return cudaErrorInvalidValue;
  *pointer = nullptr;
  return bytes == 0 ? Status(cudaSuccess) : Status(cu.MemAlloc(AddressOut(pointer), bytes));
}

int Ordinal(int handle) {
  for (const Device* d : GetProcess().devices) {
    if (d->handle == handle) return d->ordinal;
  }
  return handle;
}

struct PointerFacts {
  CUcontext context = nullptr;
  unsigned memory_type = 0;
  void* device_pointer = nullptr;
  void* host_pointer = nullptr;
  unsigned is_managed = 0;
  int device = 0;
};

CUresult AskPointer(const DriverCalls& cu, const void* pointer, PointerFacts* facts) {
  CUpointer_attribute asked[] = {
      CU_POINTER_ATTRIBUTE_CONTEXT,        CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
      CU_POINTER_ATTRIBUTE_DEVICE_POINTER, CU_POINTER_ATTRIBUTE_HOST_POINTER,
      CU_POINTER_ATTRIBUTE_IS_MANAGED,     CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
  void* values[] = {&facts->context,      &facts->memory_type, &facts->device_pointer,
                    &facts->host_pointer, &facts->is_managed,  &facts->device};
  return cu.PointerGetAttributes(6, asked, values, Address(pointer));
}

cudaMemoryType TypeOf(const PointerFacts& facts) {
  if (facts.is_managed) return cudaMemoryTypeManaged;
  if (facts.memory_type == CU_MEMORYTYPE_DEVICE) return cudaMemoryTypeDevice;
  if (facts.memory_type == CU_MEMORYTYPE_HOST) return cudaMemoryTypeHost;
  return cudaMemoryTypeUnregistered;
}

}  // namespace

extern "C" {

cudaError_t cudaMalloc(void** pointer, size_t bytes) {
  return WithContext([&](const DriverCalls& cu) { return Allocate(cu, pointer, bytes); });
}

cudaError_t cudaMallocPitch(void** pointer, size_t* pitch, size_t width, size_t height) {
  return WithContext([&](const DriverCalls& cu) {
    *pitch = Pitch(width);
    return Allocate(cu, pointer, *pitch * height);
  });
}

cudaError_t cudaMalloc3D(cudaPitchedPtr* pointer, cudaExtent extent) {
  return WithContext([&](const DriverCalls& cu) {
    pointer->pitch = Pitch(extent.width);
    pointer->xsize = extent.width;
    pointer->ysize = extent.height;
    return Allocate(cu, &pointer->ptr, pointer->pitch * extent.height * extent.depth);
  });
}

cudaError_t cudaFree(void* pointer) {
  return WithContext([&](const DriverCalls& cu) -> Status {
    if (!pointer) return cudaSuccess;
    return cu.MemFree(Address(pointer));
  });
}

cudaError_t cudaMallocManaged(void** pointer, size_t bytes, unsigned flags) {
  return WithContext([&](const DriverCalls& cu) -> Status {
    if (!pointer || bytes == 0) return cudaErrorInvalidValue;
    return cu.MemAllocManaged(AddressOut(pointer), bytes, flags);
  });
}

cudaError_t cudaMallocHost(void** pointer, size_t bytes) {
  return WithContext([&](const DriverCalls& cu) -> Status {
    if (!pointer) return cudaErrorInvalidValue;
    *pointer = nullptr;
    return bytes == 0 ? Status(cudaSuccess) : Status(cu.MemHostAlloc(pointer, bytes, 0));
  });
}

cudaError_t cudaHostAlloc(void** pointer, size_t bytes, unsigned flags) {
  return WithContext([&](const DriverCalls& cu) -> Status {
    if (!pointer) return cudaErrorInvalidValue;
    *pointer = nullptr;
    return bytes == 0 ? Status(cudaSuccess) : Status(cu.MemHostAlloc(pointer, bytes, flags));
  });
}

cudaError_t cudaFreeHost(void* pointer) {
  return WithContext([&](const DriverCalls& cu) -> Status {
    if (!pointer) return cudaSuccess;
    return cu.MemFreeHost(pointer);
  });
}

cudaError_t cudaHostRegister(void* pointer, size_t bytes, unsigned flags) {
  return WithContext(
      [&](const DriverCalls& cu) { return cu.MemHostRegister(pointer, bytes, flags); });
}

cudaError_t cudaHostUnregister(void* pointer) {
  return WithContext([&](const DriverCalls& cu) { return cu.MemHostUnregister(pointer); });
}

cudaError_t cudaHostGetDevicePointer(void** device, void* host, unsigned flags) {
  return WithContext([&](const DriverCalls& cu) {
    return cu.MemHostGetDevicePointer(AddressOut(device), host, flags);
  });
}

cudaError_t cudaHostGetFlags(unsigned* flags, void* host) {
  return WithContext([&](const DriverCalls& cu) { return cu.MemHostGetFlags(flags, host); });
}

cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total_bytes) {
  return WithContext([&](const DriverCalls& cu) { return cu.MemGetInfo(free_bytes, total_bytes); });
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
  return WithContext([&](const DriverCalls& cu) {
    PointerFacts facts;
    const Status status = AskPointer(cu, pointer, &facts);
    if (!status.ok()) return status;
    *attributes = {};
    attributes->type = TypeOf(facts);
    attributes->device = facts.device < 0 ? facts.device : Ordinal(facts.device);
    attributes->devicePointer = facts.device_pointer;
    attributes->hostPointer = facts.host_pointer;
    // The manual: an unregistered pointer is given back as the host pointer, unchecked.
    if (attributes->type == cudaMemoryTypeUnregistered) {
      attributes->hostPointer = const_cast<void*>(pointer);
    }
    return status;
  });
}

cudaError_t cudaMemAdvise(const void* pointer, size_t bytes, cudaMemoryAdvise advice,
                          cudaMemLocation location) {
  return WithContext([&](const DriverCalls& cu) {
    CUmemLocation to = {};
    to.type = static_cast<CUmemLocationType>(location.type);
    to.id = location.id;
    return cu.MemAdvise(Address(pointer), bytes, static_cast<CUmem_advise>(advice), to);
  });
}

cudaError_t cudaMemRangeGetAttribute(void* value, size_t value_bytes,
                                     cudaMemRangeAttribute attribute, const void* pointer,
                                     size_t bytes) {
  return WithContext([&](const DriverCalls& cu) {
    return cu.MemRangeGetAttribute(
        value, value_bytes, static_cast<CUmem_range_attribute>(attribute), Address(pointer), bytes);
  });
}

cudaError_t cudaMemRangeGetAttributes(void** values, size_t* value_bytes,
                                      cudaMemRangeAttribute* attributes, size_t count,
                                      const void* pointer, size_t bytes) {
  return WithContext([&](const DriverCalls& cu) {
    return cu.MemRangeGetAttributes(values, value_bytes,
                                    reinterpret_cast<CUmem_range_attribute*>(attributes), count,
                                    Address(pointer), bytes);
  });
}

cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w,
                                            cudaChannelFormatKind kind) {
  return {x, y, z, w, kind};
}

cudaError_t cudaGetSymbolAddress(void** pointer, const void* symbol) {
  return WithContext([&](const DriverCalls&) {
    CUdeviceptr address = 0;
    size_t bytes = 0;
    const Status status = Registry::Get().FindVariable(symbol, &address, &bytes);
    *pointer = reinterpret_cast<void*>(address);
    return status;
  });
}

cudaError_t cudaGetSymbolSize(size_t* bytes, const void* symbol) {
  return WithContext([&](const DriverCalls&) {
    CUdeviceptr address = 0;
    return Registry::Get().FindVariable(symbol, &address, bytes);
  });
}

}  // extern "C"
