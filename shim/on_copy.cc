// SPDX-License-Identifier: Apache-2.0
#include "shim/on_copy.h"

namespace atp::shim {
namespace {

// From the first to the last byte of a box with rows `pitch` apart and slices `slice` apart, which
// starts at (x, y, z) of its memory.
Side Box(uint64_t base, uint64_t pitch, uint64_t slice, uint64_t x, uint64_t y, uint64_t z,
         uint64_t width, uint64_t height, uint64_t depth) {
  if (base == 0 || width == 0 || height == 0 || depth == 0) return {};
  return {base + z * slice + y * pitch + x, (depth - 1) * slice + (height - 1) * pitch + width};
}

// Where a descriptor's end lies: an address on the host, on the device, in either, or an array (0).
uint64_t Base(CUmemorytype type, const void* host, CUdeviceptr device) {
  switch (type) {
    case CU_MEMORYTYPE_HOST:
      return AddressOf(host);
    case CU_MEMORYTYPE_DEVICE:
    case CU_MEMORYTYPE_UNIFIED:
      return device;
    default:
      return 0;
  }
}

// A zero pitch or height means that rows or slices follow each other without a gap.
uint64_t Or(uint64_t value, uint64_t fallback) { return value != 0 ? value : fallback; }

}  // namespace

template <>
Sides<CUDA_MEMCPY2D>::Sides(const CUDA_MEMCPY2D* c)
    : from(Box(Base(c->srcMemoryType, c->srcHost, c->srcDevice), Or(c->srcPitch, c->WidthInBytes),
               0, c->srcXInBytes, c->srcY, 0, c->WidthInBytes, c->Height, 1)),
      to(Box(Base(c->dstMemoryType, c->dstHost, c->dstDevice), Or(c->dstPitch, c->WidthInBytes), 0,
             c->dstXInBytes, c->dstY, 0, c->WidthInBytes, c->Height, 1)) {}

namespace {

template <typename C>
Side From3D(const C* c) {
  const uint64_t pitch = Or(c->srcPitch, c->WidthInBytes);
  return Box(Base(c->srcMemoryType, c->srcHost, c->srcDevice), pitch,
             pitch * Or(c->srcHeight, c->Height), c->srcXInBytes, c->srcY, c->srcZ, c->WidthInBytes,
             c->Height, c->Depth);
}

template <typename C>
Side To3D(const C* c) {
  const uint64_t pitch = Or(c->dstPitch, c->WidthInBytes);
  return Box(Base(c->dstMemoryType, c->dstHost, c->dstDevice), pitch,
             pitch * Or(c->dstHeight, c->Height), c->dstXInBytes, c->dstY, c->dstZ, c->WidthInBytes,
             c->Height, c->Depth);
}

}  // namespace

template <>
Sides<CUDA_MEMCPY3D>::Sides(const CUDA_MEMCPY3D* c) : from(From3D(c)), to(To3D(c)) {}
template <>
Sides<CUDA_MEMCPY3D_PEER>::Sides(const CUDA_MEMCPY3D_PEER* c) : from(From3D(c)), to(To3D(c)) {}

}  // namespace atp::shim
