// SPDX-License-Identifier: Apache-2.0
// Bodies of the copy hooks. A copy is a launch that reads its source and writes its destination. A
// copy between two pieces of device memory returns before it is done; between managed memory it
// would wait: so it goes out as its asynchronous twin on the same default stream.
#pragma once

#include "shim/observation.h"
#include "shim/placement.h"
#include "shim/resolve.h"
#include "shim/settings.h"

namespace atp::shim {

struct Side {            // of a copy, as far as it is an address range
  uint64_t address = 0;  // 0 = an array, or nothing
  uint64_t bytes = 0;
};

inline uint64_t AddressOf(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer); }

template <HookId id, typename Call>
CUresult ObserveCopy(const char* name, Side from, Side to, CUstream stream, bool blocks,
                     Call call) {
  if (!Watching()) return call();
  Observation observation(static_cast<uint64_t>(id), name, stream, Row<id>::kPerThread);
  observation.Touch(from.address, from.bytes, true, false);
  observation.Touch(to.address, to.bytes, false, true);
  return observation.Submit(blocks, call);
}

// Both ends are memory that the program believes to be plain device memory.
inline bool BothPlaced(uint64_t from, uint64_t to) {
  return g_tracker.Find(from) != nullptr && g_tracker.Find(to) != nullptr &&
         !Settings().Disabled(kDisableAsyncTwins);
}

template <HookId id>
CUresult OnCopyUnified(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  const bool twin = BothPlaced(from, to);
  return ObserveCopy<id>("memcpy", {from, bytes}, {to, bytes}, nullptr, !twin, [&] {
    if (!twin) return Row<id>::Real()(to, from, bytes);
    return Row<id>::kPerThread ? real().cuMemcpyAsync_ptsz(to, from, bytes, nullptr)
                               : real().cuMemcpyAsync(to, from, bytes, nullptr);
  });
}

template <HookId id>
CUresult OnCopyUnifiedAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return ObserveCopy<id>("memcpy", {from, bytes}, {to, bytes}, stream, false,
                         [&] { return Row<id>::Real()(to, from, bytes, stream); });
}

template <HookId id>
CUresult OnCopyHtoD(CUdeviceptr to, const void* from, size_t bytes) {
  return ObserveCopy<id>("memcpy_h2d", {AddressOf(from), bytes}, {to, bytes}, nullptr, true,
                         [&] { return Row<id>::Real()(to, from, bytes); });
}

template <HookId id>
CUresult OnCopyHtoDAsync(CUdeviceptr to, const void* from, size_t bytes, CUstream stream) {
  return ObserveCopy<id>("memcpy_h2d", {AddressOf(from), bytes}, {to, bytes}, stream, false,
                         [&] { return Row<id>::Real()(to, from, bytes, stream); });
}

template <HookId id>
CUresult OnCopyDtoH(void* to, CUdeviceptr from, size_t bytes) {
  return ObserveCopy<id>("memcpy_d2h", {from, bytes}, {AddressOf(to), bytes}, nullptr, true,
                         [&] { return Row<id>::Real()(to, from, bytes); });
}

template <HookId id>
CUresult OnCopyDtoHAsync(void* to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return ObserveCopy<id>("memcpy_d2h", {from, bytes}, {AddressOf(to), bytes}, stream, false,
                         [&] { return Row<id>::Real()(to, from, bytes, stream); });
}

template <HookId id>
CUresult OnCopyDtoD(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return ObserveCopy<id>("memcpy_d2d", {from, bytes}, {to, bytes}, nullptr, false, [&] {
    if (!BothPlaced(from, to)) return Row<id>::Real()(to, from, bytes);
    return Row<id>::kPerThread ? real().cuMemcpyDtoDAsync_v2_ptsz(to, from, bytes, nullptr)
                               : real().cuMemcpyDtoDAsync_v2(to, from, bytes, nullptr);
  });
}

template <HookId id>
CUresult OnCopyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return ObserveCopy<id>("memcpy_d2d", {from, bytes}, {to, bytes}, stream, false,
                         [&] { return Row<id>::Real()(to, from, bytes, stream); });
}

template <HookId id>
CUresult OnCopyPeer(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                    size_t bytes) {
  return ObserveCopy<id>("memcpy_peer", {from, bytes}, {to, bytes}, nullptr, true, [&] {
    return Row<id>::Real()(to, to_context, from, from_context, bytes);
  });
}

template <HookId id>
CUresult OnCopyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
                         CUcontext from_context, size_t bytes, CUstream stream) {
  return ObserveCopy<id>("memcpy_peer", {from, bytes}, {to, bytes}, stream, false, [&] {
    return Row<id>::Real()(to, to_context, from, from_context, bytes, stream);
  });
}

template <HookId id>
CUresult OnCopyAtoD(CUdeviceptr to, CUarray from, size_t from_offset, size_t bytes) {
  return ObserveCopy<id>("memcpy_a2d", {}, {to, bytes}, nullptr, true,
                         [&] { return Row<id>::Real()(to, from, from_offset, bytes); });
}

template <HookId id>
CUresult OnCopyDtoA(CUarray to, size_t to_offset, CUdeviceptr from, size_t bytes) {
  return ObserveCopy<id>("memcpy_d2a", {from, bytes}, {}, nullptr, true,
                         [&] { return Row<id>::Real()(to, to_offset, from, bytes); });
}

// The two ends of a copy that is given by a descriptor (2D, 3D, 3D between peers).
template <typename Descriptor>
struct Sides {
  Side from, to;
  explicit Sides(const Descriptor* copy);
};
template <>
Sides<CUDA_MEMCPY2D>::Sides(const CUDA_MEMCPY2D* copy);
template <>
Sides<CUDA_MEMCPY3D>::Sides(const CUDA_MEMCPY3D* copy);
template <>
Sides<CUDA_MEMCPY3D_PEER>::Sides(const CUDA_MEMCPY3D_PEER* copy);

template <HookId id, typename Descriptor, typename... Stream>
CUresult ObserveDescribedCopy(const char* name, const Descriptor* copy, bool blocks,
                              Stream... stream) {
  const auto submit = [&] { return Row<id>::Real()(copy, stream...); };
  if (!Watching() || copy == nullptr) return submit();
  const Sides<Descriptor> sides(copy);
  CUstream on = nullptr;
  ((on = stream), ...);
  return ObserveCopy<id>(name, sides.from, sides.to, on, blocks, submit);
}

template <HookId id>
CUresult OnCopy2D(const CUDA_MEMCPY2D* copy) {
  return ObserveDescribedCopy<id>("memcpy_2d", copy, true);
}
template <HookId id>
CUresult OnCopy2DAsync(const CUDA_MEMCPY2D* copy, CUstream stream) {
  return ObserveDescribedCopy<id>("memcpy_2d", copy, false, stream);
}
template <HookId id>
CUresult OnCopy3D(const CUDA_MEMCPY3D* copy) {
  return ObserveDescribedCopy<id>("memcpy_3d", copy, true);
}
template <HookId id>
CUresult OnCopy3DAsync(const CUDA_MEMCPY3D* copy, CUstream stream) {
  return ObserveDescribedCopy<id>("memcpy_3d", copy, false, stream);
}
template <HookId id>
CUresult OnCopy3DPeer(const CUDA_MEMCPY3D_PEER* copy) {
  return ObserveDescribedCopy<id>("memcpy_3d_peer", copy, true);
}
template <HookId id>
CUresult OnCopy3DPeerAsync(const CUDA_MEMCPY3D_PEER* copy, CUstream stream) {
  return ObserveDescribedCopy<id>("memcpy_3d_peer", copy, false, stream);
}

template <HookId id, typename Call>
CUresult ObserveBatch(const CUdeviceptr* to, const CUdeviceptr* from, const size_t* bytes,
                      size_t count, CUstream stream, Call call) {
  if (!Watching() || to == nullptr || from == nullptr || bytes == nullptr) return call();
  Observation observation(static_cast<uint64_t>(id), "memcpy_batch", stream, Row<id>::kPerThread);
  for (size_t i = 0; i < count; ++i) {
    observation.Touch(from[i], bytes[i], true, false);
    observation.Touch(to[i], bytes[i], false, true);
  }
  return observation.Submit(false, call);
}

template <HookId id>
CUresult OnCopyBatch(CUdeviceptr* to, CUdeviceptr* from, size_t* bytes, size_t count,
                     CUmemcpyAttributes* attributes, size_t* attribute_indices,
                     size_t attribute_count, size_t* fail_index, CUstream stream) {
  return ObserveBatch<id>(to, from, bytes, count, stream, [&] {
    return Row<id>::Real()(to, from, bytes, count, attributes, attribute_indices, attribute_count,
                           fail_index, stream);
  });
}

template <HookId id>
CUresult OnCopyBatchV2(CUdeviceptr* to, CUdeviceptr* from, size_t* bytes, size_t count,
                       CUmemcpyAttributes* attributes, size_t* attribute_indices,
                       size_t attribute_count, CUstream stream) {
  return ObserveBatch<id>(to, from, bytes, count, stream, [&] {
    return Row<id>::Real()(to, from, bytes, count, attributes, attribute_indices, attribute_count,
                           stream);
  });
}

}  // namespace atp::shim
