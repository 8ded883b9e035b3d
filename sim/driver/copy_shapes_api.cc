// SPDX-License-Identifier: Apache-2.0
// Copies of two and three dimensions between linear memory. Arrays are not there.
#include "sim/driver/copy_calls.h"
#include "sim/driver/driver.h"

namespace atp::sim {
namespace {

CUresult SideAddress(CUmemorytype type, const void* host, CUdeviceptr device, uint64_t* address) {
  switch (type) {
    case CU_MEMORYTYPE_HOST:
      *address = reinterpret_cast<uint64_t>(host);
      return CUDA_SUCCESS;
    case CU_MEMORYTYPE_DEVICE:
    case CU_MEMORYTYPE_UNIFIED:
      *address = device;
      return CUDA_SUCCESS;
    case CU_MEMORYTYPE_ARRAY:
      return CUDA_ERROR_NOT_SUPPORTED;
  }
  return CUDA_ERROR_INVALID_VALUE;
}

}  // namespace

CUresult ToTask(const CUDA_MEMCPY2D& copy, CopyTask* task) {
  CUresult result = SideAddress(copy.srcMemoryType, copy.srcHost, copy.srcDevice, &task->source);
  if (result != CUDA_SUCCESS) return result;
  result = SideAddress(copy.dstMemoryType, copy.dstHost, copy.dstDevice, &task->destination);
  if (result != CUDA_SUCCESS) return result;
  task->width = copy.WidthInBytes;
  task->height = copy.Height;
  task->source_pitch = copy.srcPitch ? copy.srcPitch : copy.WidthInBytes;
  task->destination_pitch = copy.dstPitch ? copy.dstPitch : copy.WidthInBytes;
  task->source += copy.srcY * task->source_pitch + copy.srcXInBytes;
  task->destination += copy.dstY * task->destination_pitch + copy.dstXInBytes;
  return CUDA_SUCCESS;
}

CUresult ToTask(const CUDA_MEMCPY3D& copy, CopyTask* task) {
  CUresult result = SideAddress(copy.srcMemoryType, copy.srcHost, copy.srcDevice, &task->source);
  if (result != CUDA_SUCCESS) return result;
  result = SideAddress(copy.dstMemoryType, copy.dstHost, copy.dstDevice, &task->destination);
  if (result != CUDA_SUCCESS) return result;
  if (copy.srcLOD || copy.dstLOD) return CUDA_ERROR_INVALID_VALUE;
  task->width = copy.WidthInBytes;
  task->height = copy.Height;
  task->depth = copy.Depth;
  task->source_pitch = copy.srcPitch ? copy.srcPitch : copy.WidthInBytes;
  task->destination_pitch = copy.dstPitch ? copy.dstPitch : copy.WidthInBytes;
  task->source_slice = (copy.srcHeight ? copy.srcHeight : copy.Height) * task->source_pitch;
  task->destination_slice =
      (copy.dstHeight ? copy.dstHeight : copy.Height) * task->destination_pitch;
  task->source +=
      copy.srcZ * task->source_slice + copy.srcY * task->source_pitch + copy.srcXInBytes;
  task->destination +=
      copy.dstZ * task->destination_slice + copy.dstY * task->destination_pitch + copy.dstXInBytes;
  return CUDA_SUCCESS;
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
  copy.srcPitch = peer.srcPitch;
  copy.srcHeight = peer.srcHeight;
  copy.dstXInBytes = peer.dstXInBytes;
  copy.dstY = peer.dstY;
  copy.dstZ = peer.dstZ;
  copy.dstMemoryType = peer.dstMemoryType;
  copy.dstHost = peer.dstHost;
  copy.dstDevice = peer.dstDevice;
  copy.dstPitch = peer.dstPitch;
  copy.dstHeight = peer.dstHeight;
  copy.WidthInBytes = peer.WidthInBytes;
  copy.Height = peer.Height;
  copy.Depth = peer.Depth;
  const CUresult result = ToTask(copy, task);
  return result == CUDA_SUCCESS ? CheckPeers(call, peer.dstContext, peer.srcContext, task) : result;
}

template <class Descriptor>
CUresult ShapeNow(Call& call, const Descriptor* copy) {
  if (!copy) return CUDA_ERROR_INVALID_VALUE;
  CopyTask task;
  const CUresult result = ToTask(*copy, &task);
  return result == CUDA_SUCCESS ? CopyNow(call, task) : result;
}

template <class Descriptor>
CUresult ShapeLater(Call& call, const Descriptor* copy, CUstream stream) {
  if (!copy) return CUDA_ERROR_INVALID_VALUE;
  CopyTask task;
  const CUresult result = ToTask(*copy, &task);
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
