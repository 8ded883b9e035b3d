// SPDX-License-Identifier: Apache-2.0
// Copies of two and three dimensions between memory and arrays.
#include "sim/driver/array.h"
#include "sim/driver/copy_calls.h"
#include "sim/driver/driver.h"

namespace atp::sim {
namespace {

// One side of a copy: where it starts and how far rows and slices are apart.
struct Side {
  CUmemorytype type;
  const void* host;
  CUdeviceptr device;
  CUarray array;
  size_t x, y, z;        // x in bytes
  size_t pitch, height;  // of memory; arrays know their own
};

// `width`, `rows` and `slices` are what is copied.
CUresult Resolve(Call& call, const Side& side, uint64_t width, uint64_t rows, uint64_t slices,
                 uint64_t* start, uint64_t* pitch, uint64_t* slice) {
  *pitch = side.pitch ? side.pitch : width;
  *slice = (side.height ? side.height : rows) * *pitch;
  switch (side.type) {
    case CU_MEMORYTYPE_HOST:
      *start = reinterpret_cast<uint64_t>(side.host);
      break;
    case CU_MEMORYTYPE_DEVICE:
    case CU_MEMORYTYPE_UNIFIED:
      *start = side.device;
      break;
    case CU_MEMORYTYPE_ARRAY: {
      const Array* array = call.driver.arrays.Get(side.array);
      if (!array) return CUDA_ERROR_INVALID_HANDLE;
      if (side.x + width > array->row_bytes || side.y + rows > array->height() ||
          side.z + slices > array->depth())
        return CUDA_ERROR_INVALID_VALUE;
      *start = array->memory->begin;
      *pitch = array->row_pitch;
      *slice = array->slice_pitch;
      break;
    }
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
  *start += side.z * *slice + side.y * *pitch + side.x;
  return CUDA_SUCCESS;
}

CUresult Resolve(Call& call, const Side& source, const Side& destination, CopyTask* task) {
  const CUresult result = Resolve(call, source, task->width, task->height, task->depth,
                                  &task->source, &task->source_pitch, &task->source_slice);
  if (result != CUDA_SUCCESS) return result;
  return Resolve(call, destination, task->width, task->height, task->depth, &task->destination,
                 &task->destination_pitch, &task->destination_slice);
}

}  // namespace

CUresult ToTask(Call& call, const CUDA_MEMCPY2D& copy, CopyTask* task) {
  task->width = copy.WidthInBytes;
  task->height = copy.Height;
  return Resolve(call,
                 {copy.srcMemoryType, copy.srcHost, copy.srcDevice, copy.srcArray, copy.srcXInBytes,
                  copy.srcY, 0, copy.srcPitch, 0},
                 {copy.dstMemoryType, copy.dstHost, copy.dstDevice, copy.dstArray, copy.dstXInBytes,
                  copy.dstY, 0, copy.dstPitch, 0},
                 task);
}

CUresult ToTask(Call& call, const CUDA_MEMCPY3D& copy, CopyTask* task) {
  if (copy.srcLOD || copy.dstLOD) return CUDA_ERROR_INVALID_VALUE;
  task->width = copy.WidthInBytes;
  task->height = copy.Height;
  task->depth = copy.Depth;
  return Resolve(call,
                 {copy.srcMemoryType, copy.srcHost, copy.srcDevice, copy.srcArray, copy.srcXInBytes,
                  copy.srcY, copy.srcZ, copy.srcPitch, copy.srcHeight},
                 {copy.dstMemoryType, copy.dstHost, copy.dstDevice, copy.dstArray, copy.dstXInBytes,
                  copy.dstY, copy.dstZ, copy.dstPitch, copy.dstHeight},
                 task);
}

CUDA_MEMCPY3D ToDescriptor(const CopyTask& task) {
  CUDA_MEMCPY3D copy{};
  copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
  copy.srcDevice = task.source;
  copy.dstDevice = task.destination;
  copy.WidthInBytes = task.width;
  copy.Height = task.height;
  copy.Depth = task.depth;
  copy.srcPitch = task.source_pitch ? task.source_pitch : task.width;
  copy.dstPitch = task.destination_pitch ? task.destination_pitch : task.width;
  copy.srcHeight = task.source_slice ? task.source_slice / copy.srcPitch : task.height;
  copy.dstHeight = task.destination_slice ? task.destination_slice / copy.dstPitch : task.height;
  return copy;
}

CUresult CheckPeers(Call& call, CUcontext destination, CUcontext source, CopyTask* task) {
  if (!call.driver.contexts.Get(destination) || !call.driver.contexts.Get(source))
    return CUDA_ERROR_INVALID_CONTEXT;
  if (task->bytes() &&
      (!IsDevicePointer(call, task->source) || !IsDevicePointer(call, task->destination)))
    return CUDA_ERROR_INVALID_VALUE;
  task->peer = true;
  return CUDA_SUCCESS;
}

namespace {

// A peer descriptor is a 3D descriptor that also names contexts.
CUresult ToPeerTask(Call& call, const CUDA_MEMCPY3D_PEER& peer, CopyTask* task) {
  CUDA_MEMCPY3D copy{};
  copy.srcXInBytes = peer.srcXInBytes;
  copy.srcY = peer.srcY;
  copy.srcZ = peer.srcZ;
  copy.srcMemoryType = peer.srcMemoryType;
  copy.srcHost = peer.srcHost;
  copy.srcDevice = peer.srcDevice;
  copy.srcArray = peer.srcArray;
  copy.srcPitch = peer.srcPitch;
  copy.srcHeight = peer.srcHeight;
  copy.dstXInBytes = peer.dstXInBytes;
  copy.dstY = peer.dstY;
  copy.dstZ = peer.dstZ;
  copy.dstMemoryType = peer.dstMemoryType;
  copy.dstHost = peer.dstHost;
  copy.dstDevice = peer.dstDevice;
  copy.dstArray = peer.dstArray;
  copy.dstPitch = peer.dstPitch;
  copy.dstHeight = peer.dstHeight;
  copy.WidthInBytes = peer.WidthInBytes;
  copy.Height = peer.Height;
  copy.Depth = peer.Depth;
  const CUresult result = ToTask(call, copy, task);
  return result == CUDA_SUCCESS ? CheckPeers(call, peer.dstContext, peer.srcContext, task) : result;
}

template <class Descriptor>
CUresult ShapeNow(Call& call, const Descriptor* copy) {
  if (!copy) return CUDA_ERROR_INVALID_VALUE;
  CopyTask task;
  const CUresult result = ToTask(call, *copy, &task);
  return result == CUDA_SUCCESS ? CopyNow(call, task) : result;
}

template <class Descriptor>
CUresult ShapeLater(Call& call, const Descriptor* copy, CUstream stream) {
  if (!copy) return CUDA_ERROR_INVALID_VALUE;
  CopyTask task;
  const CUresult result = ToTask(call, *copy, &task);
  return result == CUDA_SUCCESS ? CopyLater(call, task, stream) : result;
}

}  // namespace
}  // namespace atp::sim

ATP_API cuMemcpy2D_v2(const CUDA_MEMCPY2D* copy) {
  ATP_CALL(kNeedsContext | kUnsafeInCapture, cost::kCopy);
  return ShapeNow(call, copy);
}

ATP_API cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D* copy) {
  ATP_CALL(kNeedsContext | kUnsafeInCapture, cost::kCopy);
  return ShapeNow(call, copy);
}

ATP_API cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D* copy, CUstream stream) {
  ATP_CALL(kNeedsContext, cost::kCopy);
  return ShapeLater(call, copy, stream);
}

ATP_API cuMemcpy3D_v2(const CUDA_MEMCPY3D* copy) {
  ATP_CALL(kNeedsContext | kUnsafeInCapture, cost::kCopy);
  return ShapeNow(call, copy);
}

ATP_API cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D* copy, CUstream stream) {
  ATP_CALL(kNeedsContext, cost::kCopy);
  return ShapeLater(call, copy, stream);
}

ATP_API cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER* copy) {
  ATP_CALL(kNeedsContext | kUnsafeInCapture, cost::kCopy);
  if (!copy) return CUDA_ERROR_INVALID_VALUE;
  CopyTask task;
  const CUresult result = ToPeerTask(call, *copy, &task);
  return result == CUDA_SUCCESS ? CopyNow(call, task) : result;
}

ATP_API cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER* copy, CUstream stream) {
  ATP_CALL(kNeedsContext, cost::kCopy);
  if (!copy) return CUDA_ERROR_INVALID_VALUE;
  CopyTask task;
  const CUresult result = ToPeerTask(call, *copy, &task);
  return result == CUDA_SUCCESS ? CopyLater(call, task, stream) : result;
}
