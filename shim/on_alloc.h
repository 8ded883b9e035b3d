// SPDX-License-Identifier: Apache-2.0
// Bodies of the allocation hooks. What they decide is in placement.cc.
#pragma once

#include "shim/capture.h"
#include "shim/placement.h"
#include "shim/resolve.h"

namespace atp::shim {

template <HookId>
CUresult OnMemAlloc(CUdeviceptr* address, size_t bytes) {
  return PlaceAllocation(address, bytes);
}

// Pitched memory of ours: rows start on multiples of 512 bytes, as the driver's do on every device
// since sm_20.
CUresult PlacePitched(CUdeviceptr* address, size_t* pitch, size_t width, size_t height,
                      unsigned element_bytes);

template <HookId>
CUresult OnMemAllocPitch(CUdeviceptr* address, size_t* pitch, size_t width, size_t height,
                         unsigned element_bytes) {
  return PlacePitched(address, pitch, width, height, element_bytes);
}

template <HookId>
CUresult OnMemFree(CUdeviceptr address) {
  return ReleaseAllocation(address);
}

// The program's own managed memory stays the program's business: it is counted, not hinted.
template <HookId id>
CUresult OnMemAllocManaged(CUdeviceptr* address, size_t bytes, unsigned flags) {
  return Row<id>::Real()(address, bytes, flags);
}

// Stream-ordered memory stays plain: the driver's pools reuse it in stream order, which managed
// memory cannot.
template <HookId id>
CUresult OnMemAllocAsync(CUdeviceptr* address, size_t bytes, CUstream stream) {
  const CUresult result = Row<id>::Real()(address, bytes, stream);
  if (result == CUDA_SUCCESS && !CaptureOpen()) AccountNative(*address, bytes);
  return result;
}

template <HookId id>
CUresult OnMemAllocFromPoolAsync(CUdeviceptr* address, size_t bytes, CUmemoryPool pool,
                                 CUstream stream) {
  const CUresult result = Row<id>::Real()(address, bytes, pool, stream);
  if (result == CUDA_SUCCESS && !CaptureOpen()) AccountNative(*address, bytes);
  return result;
}

// A stream-ordered free of memory that we placed: legal for plain memory, unknown to the driver for
// managed memory.
CUresult ReleaseInStreamOrder(CUdeviceptr address, CUstream stream, bool per_thread);

template <HookId id>
CUresult OnMemFreeAsync(CUdeviceptr address, CUstream stream) {
  if (g_tracker.Find(address) != nullptr) {
    return ReleaseInStreamOrder(address, stream, Row<id>::kPerThread);
  }
  const CUresult result = Row<id>::Real()(address, stream);
  if (result == CUDA_SUCCESS && !CaptureOpen()) UnaccountNative(address);
  return result;
}

}  // namespace atp::shim
