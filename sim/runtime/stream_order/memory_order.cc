// SPDX-License-Identifier: Apache-2.0
// Allocation and migration in stream order.
#include "sim/runtime/stream_order/mode.h"

namespace {

static_assert(sizeof(cudaMemLocation) == sizeof(CUmemLocation));

CUmemLocation Location(cudaMemLocation location) {
  CUmemLocation to = {};
  to.type = static_cast<CUmemLocationType>(location.type);
  to.id = location.id;
  return to;
}

CUmemLocation* Locations(cudaMemLocation* locations) {
  return reinterpret_cast<CUmemLocation*>(locations);
}

CUdeviceptr* Addresses(void** pointers) { return reinterpret_cast<CUdeviceptr*>(pointers); }

}  // namespace

extern "C" {

cudaError_t cudaMallocAsync(void** pointer, size_t bytes, cudaStream_t stream) {
  return InContext(
      [&](const DriverCalls& cu) { return cu.MemAllocAsync(AddressOut(pointer), bytes, stream); });
}

cudaError_t cudaMallocFromPoolAsync(void** pointer, size_t bytes, cudaMemPool_t pool,
                                    cudaStream_t stream) {
  return InContext([&](const DriverCalls& cu) {
    return cu.MemAllocFromPoolAsync(AddressOut(pointer), bytes, pool, stream);
  });
}

cudaError_t cudaFreeAsync(void* pointer, cudaStream_t stream) {
  return InContext([&](const DriverCalls& cu) -> Status {
    if (!pointer) return cudaSuccess;
    return cu.MemFreeAsync(Address(pointer), stream);
  });
}

cudaError_t cudaMemPrefetchAsync(const void* pointer, size_t bytes, cudaMemLocation location,
                                 unsigned flags, cudaStream_t stream) {
  return InContext([&](const DriverCalls& cu) {
    return cu.MemPrefetchAsync(Address(pointer), bytes, Location(location), flags, stream);
  });
}

cudaError_t cudaMemPrefetchBatchAsync(void** pointers, size_t* sizes, size_t count,
                                      cudaMemLocation* locations, size_t* location_starts,
                                      size_t location_count, unsigned long long flags,
                                      cudaStream_t stream) {
  return InContext([&](const DriverCalls& cu) {
    return cu.MemPrefetchBatchAsync(Addresses(pointers), sizes, count, Locations(locations),
                                    location_starts, location_count, flags, stream);
  });
}

cudaError_t cudaMemDiscardBatchAsync(void** pointers, size_t* sizes, size_t count,
                                     unsigned long long flags, cudaStream_t stream) {
  return InContext([&](const DriverCalls& cu) {
    return cu.MemDiscardBatchAsync(Addresses(pointers), sizes, count, flags, stream);
  });
}

cudaError_t cudaMemDiscardAndPrefetchBatchAsync(void** pointers, size_t* sizes, size_t count,
                                                cudaMemLocation* locations, size_t* location_starts,
                                                size_t location_count, unsigned long long flags,
                                                cudaStream_t stream) {
  return InContext([&](const DriverCalls& cu) {
    return cu.MemDiscardAndPrefetchBatchAsync(Addresses(pointers), sizes, count,
                                              Locations(locations), location_starts, location_count,
                                              flags, stream);
  });
}

}  // extern "C"
