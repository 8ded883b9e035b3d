// SPDX-License-Identifier: Apache-2.0
#include "sim/runtime/copy_shapes.h"

#include "sim/runtime/arrays.h"

namespace atp::simrt {
namespace {

CUmemorytype SourceType(cudaMemcpyKind kind) {
  switch (kind) {
    case cudaMemcpyHostToHost:
    case cudaMemcpyHostToDevice:
      return CU_MEMORYTYPE_HOST;
    case cudaMemcpyDeviceToHost:
    case cudaMemcpyDeviceToDevice:
      return CU_MEMORYTYPE_DEVICE;
    default:
      return CU_MEMORYTYPE_UNIFIED;
  }
}

CUmemorytype DestinationType(cudaMemcpyKind kind) {
  switch (kind) {
    case cudaMemcpyHostToHost:
    case cudaMemcpyDeviceToHost:
      return CU_MEMORYTYPE_HOST;
    case cudaMemcpyHostToDevice:
    case cudaMemcpyDeviceToDevice:
      return CU_MEMORYTYPE_DEVICE;
    default:
      return CU_MEMORYTYPE_UNIFIED;
  }
}

// 2D, 3D and peer descriptions share these member names.
template <typename Copy>
void FillEnds(void* to, size_t to_pitch, const void* from, size_t from_pitch, Copy* copy) {
  copy->srcHost = from;
  copy->srcDevice = Address(from);
  copy->srcPitch = from_pitch;
  copy->dstHost = to;
  copy->dstDevice = Address(to);
  copy->dstPitch = to_pitch;
}

template <typename Parms, typename Copy>
void FillPositions(const Parms& from, Copy* to) {
  to->srcXInBytes = from.srcPos.x;
  to->srcY = from.srcPos.y;
  to->srcZ = from.srcPos.z;
  to->srcHeight = from.srcPtr.ysize;
  to->dstXInBytes = from.dstPos.x;
  to->dstY = from.dstPos.y;
  to->dstZ = from.dstPos.z;
  to->dstHeight = from.dstPtr.ysize;
  to->WidthInBytes = from.extent.width;
  to->Height = from.extent.height;
  to->Depth = from.extent.depth;
}

}  // namespace

CUDA_MEMCPY2D Copy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                     size_t height, cudaMemcpyKind kind) {
  CUDA_MEMCPY2D copy = {};
  copy.srcMemoryType = SourceType(kind);
  copy.dstMemoryType = DestinationType(kind);
  FillEnds(to, to_pitch, from, from_pitch, &copy);
  copy.WidthInBytes = width;
  copy.Height = height;
  return copy;
}

namespace {

// Where an array takes part, positions in it and the extent are in elements; the driver wants
// bytes.
template <typename Parms, typename Copy>
Status UseArrays(const Parms& from, Copy* to) {
  const DriverCalls& cu = GetProcess().driver->legacy;
  size_t element = 1;
  for (cudaArray_t array : {from.srcArray, from.dstArray}) {
    if (!array) continue;
    const Status status = ElementBytes(cu, array, &element);
    if (!status.ok()) return status;
  }
  if (from.srcArray) {
    to->srcMemoryType = CU_MEMORYTYPE_ARRAY;
    to->srcArray = Handle(from.srcArray);
    to->srcXInBytes *= element;
  }
  if (from.dstArray) {
    to->dstMemoryType = CU_MEMORYTYPE_ARRAY;
    to->dstArray = Handle(from.dstArray);
    to->dstXInBytes *= element;
  }
  to->WidthInBytes *= element;
  return cudaSuccess;
}

}  // namespace

Status Copy3D(const cudaMemcpy3DParms& from, CUDA_MEMCPY3D* to) {
  *to = {};
  to->srcMemoryType = SourceType(from.kind);
  to->dstMemoryType = DestinationType(from.kind);
  FillEnds(from.dstPtr.ptr, from.dstPtr.pitch, from.srcPtr.ptr, from.srcPtr.pitch, to);
  FillPositions(from, to);
  return UseArrays(from, to);
}

Status Copy3DPeer(const cudaMemcpy3DPeerParms& from, CUDA_MEMCPY3D_PEER* to) {
  *to = {};
  to->srcMemoryType = CU_MEMORYTYPE_DEVICE;
  to->dstMemoryType = CU_MEMORYTYPE_DEVICE;
  FillEnds(from.dstPtr.ptr, from.dstPtr.pitch, from.srcPtr.ptr, from.srcPtr.pitch, to);
  FillPositions(from, to);
  Status status = UseArrays(from, to);
  if (status.ok()) status = PrimaryContext(from.srcDevice, &to->srcContext);
  if (status.ok()) status = PrimaryContext(from.dstDevice, &to->dstContext);
  return status;
}

}  // namespace atp::simrt
