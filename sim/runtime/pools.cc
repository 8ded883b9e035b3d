// SPDX-License-Identifier: Apache-2.0
// Memory pools of stream-ordered allocation.
#include "sim/runtime/context.h"

namespace {

using namespace atp::simrt;  // NOLINT: this file only forwards calls

static_assert(sizeof(cudaMemPoolProps) == sizeof(CUmemPoolProps));
static_assert(sizeof(cudaMemAccessDesc) == sizeof(CUmemAccessDesc));

template <typename Body>
cudaError_t ForDevice(int device, Body body) {
  return WithContext([&](const DriverCalls& cu) -> Status {
    const auto& devices = GetProcess().devices;
    if (device < 0 || device >= static_cast<int>(devices.size())) return cudaErrorInvalidDevice;
    return body(cu, devices[device]->handle);
  });
}

}  // namespace

extern "C" {

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device) {
  return ForDevice(device, [&](const DriverCalls& cu, CUdevice handle) {
    return cu.DeviceGetDefaultMemPool(pool, handle);
  });
}

cudaError_t cudaDeviceGetMemPool(cudaMemPool_t* pool, int device) {
  return ForDevice(device, [&](const DriverCalls& cu, CUdevice handle) {
    return cu.DeviceGetMemPool(pool, handle);
  });
}

cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t pool) {
  return ForDevice(device, [&](const DriverCalls& cu, CUdevice handle) {
    return cu.DeviceSetMemPool(handle, pool);
  });
}

cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps* props) {
  return WithContext([&](const DriverCalls& cu) {
    return cu.MemPoolCreate(pool, reinterpret_cast<const CUmemPoolProps*>(props));
  });
}

cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) {
  return WithContext([&](const DriverCalls& cu) { return cu.MemPoolDestroy(pool); });
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t bytes) {
  return WithContext([&](const DriverCalls& cu) { return cu.MemPoolTrimTo(pool, bytes); });
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  return WithContext([&](const DriverCalls& cu) {
    return cu.MemPoolSetAttribute(pool, static_cast<CUmemPool_attribute>(attribute), value);
  });
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  return WithContext([&](const DriverCalls& cu) {
    return cu.MemPoolGetAttribute(pool, static_cast<CUmemPool_attribute>(attribute), value);
  });
}

cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const cudaMemAccessDesc* access,
                                 size_t count) {
  return WithContext([&](const DriverCalls& cu) {
    return cu.MemPoolSetAccess(pool, reinterpret_cast<const CUmemAccessDesc*>(access), count);
  });
}

cudaError_t cudaMemPoolGetAccess(cudaMemAccessFlags* flags, cudaMemPool_t pool,
                                 cudaMemLocation* location) {
  return WithContext([&](const DriverCalls& cu) {
    return cu.MemPoolGetAccess(reinterpret_cast<CUmemAccess_flags*>(flags), pool,
                               reinterpret_cast<CUmemLocation*>(location));
  });
}

cudaError_t cudaDeviceGraphMemTrim(int device) {
  return ForDevice(device, [&](const DriverCalls& cu, CUdevice handle) {
    return cu.DeviceGraphMemTrim(handle);
  });
}

cudaError_t cudaDeviceGetGraphMemAttribute(int device, cudaGraphMemAttributeType attribute,
                                           void* value) {
  return ForDevice(device, [&](const DriverCalls& cu, CUdevice handle) {
    return cu.DeviceGetGraphMemAttribute(handle, static_cast<CUgraphMem_attribute>(attribute),
                                         value);
  });
}

cudaError_t cudaDeviceSetGraphMemAttribute(int device, cudaGraphMemAttributeType attribute,
                                           void* value) {
  return ForDevice(device, [&](const DriverCalls& cu, CUdevice handle) {
    return cu.DeviceSetGraphMemAttribute(handle, static_cast<CUgraphMem_attribute>(attribute),
                                         value);
  });
}

}  // extern "C"
