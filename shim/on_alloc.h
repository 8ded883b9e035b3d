// SPDX-License-Identifier: Apache-2.0
// Bodies of the allocation hooks. What they decide is in placement.cc.
#pragma once

#include "shim/capture.h"
#include "shim/findings.h"
#include "shim/host_promise.h"
#include "shim/placement.h"
#include "shim/pools.h"
#include "shim/resolve.h"
#include "shim/turn_plain.h"

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

// The program's own managed memory stays the program's business: it is told in the report, and
// neither counted against the budget nor hinted.
template <HookId id>
CUresult OnMemAllocManaged(CUdeviceptr* address, size_t bytes, unsigned flags) {
  const CUresult result = Row<id>::Real()(address, bytes, flags);
  if (result == CUDA_SUCCESS) {
    g_findings.own_managed_count.fetch_add(1, std::memory_order_relaxed);
    g_findings.own_managed_bytes.fetch_add(bytes, std::memory_order_relaxed);
  }
  return result;
}

// Stream-ordered memory is managed too; what pools.cc leaves to the driver is counted as plain.
template <HookId id, typename Call>
CUresult AllocateInOrder(CUdeviceptr* address, size_t bytes, CUmemoryPool pool, CUstream stream,
                         Call driver) {
  bool packed = false;
  const CUresult placed = PlaceInOrder(address, bytes, pool, stream, Row<id>::kPerThread, &packed);
  if (placed != CUDA_ERROR_NOT_SUPPORTED) return placed;
  const WhyNative why = packed ? WhyNative::kSmall : WhyNative::kPool;
  const CUresult result = WithPatience([&] {
    const CUresult answer = driver();
    SayIfPlainMemoryIsOut(answer, bytes, why);
    return answer;
  });
  if (result == CUDA_SUCCESS && !CaptureOpen()) {
    AccountNative(*address, bytes, why, packed);
    Count(why, bytes);
  }
  return result;
}

template <HookId id>
CUresult OnMemAllocAsync(CUdeviceptr* address, size_t bytes, CUstream stream) {
  return AllocateInOrder<id>(address, bytes, nullptr, stream,
                             [&] { return Row<id>::Real()(address, bytes, stream); });
}

template <HookId id>
CUresult OnMemAllocFromPoolAsync(CUdeviceptr* address, size_t bytes, CUmemoryPool pool,
                                 CUstream stream) {
  const auto driver = [&] { return Row<id>::Real()(address, bytes, pool, stream); };
  if (pool == nullptr) return driver();
  return AllocateInOrder<id>(address, bytes, pool, stream, driver);
}

// A stream-ordered free of memory that we placed: legal for plain memory, unknown to the driver for
// managed memory.
CUresult ReleaseInStreamOrder(CUdeviceptr address, CUstream stream, bool per_thread);

template <HookId id>
CUresult OnMemFreeAsync(CUdeviceptr address, CUstream stream) {
  if (Record* record = g_tracker.Find(address)) {
    if (record->pieces != nullptr) {
      return ReleasePieceInOrder(record, address, stream, Row<id>::kPerThread);
    }
    return ReleaseInStreamOrder(address, stream, Row<id>::kPerThread);
  }
  if (uint64_t start = 0, bytes = 0; IsTurned(address, &start, &bytes)) {
    return ReleaseInStreamOrder(address, stream, Row<id>::kPerThread);
  }
  NativeSizes::Entry was;
  const bool known = !CaptureOpen() && UnaccountNative(address, &was);
  const CUresult result = Row<id>::Real()(address, stream);
  if (known && result != CUDA_SUCCESS) Account(was);
  return result;
}

// Pools: what is managed in them is counted by us, so their numbers are the sum.
template <HookId id>
CUresult OnMemPoolCreate(CUmemoryPool* pool, const CUmemPoolProps* props) {
  const CUresult result = Row<id>::Real()(pool, props);
  if (result == CUDA_SUCCESS) NotePool(*pool, *props);
  return result;
}

template <HookId id>
CUresult OnMemPoolDestroy(CUmemoryPool pool) {
  const CUresult result = Row<id>::Real()(pool);
  if (result == CUDA_SUCCESS) RetirePool(pool);
  return result;
}

template <HookId id>
CUresult OnMemPoolTrimTo(CUmemoryPool pool, size_t keep) {
  const CUresult result = Row<id>::Real()(pool, keep);
  if (result == CUDA_SUCCESS) TrimPieces(pool, keep);
  return result;
}

template <HookId id>
CUresult OnMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void* value) {
  const CUresult result = Row<id>::Real()(pool, attribute, value);
  if (result == CUDA_SUCCESS) AddPoolNumber(pool, attribute, static_cast<uint64_t*>(value));
  return result;
}

template <HookId id>
CUresult OnMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void* value) {
  const CUresult result = Row<id>::Real()(pool, attribute, value);
  if (result == CUDA_SUCCESS) NotePoolAttribute(pool, attribute);
  return result;
}

}  // namespace atp::shim
