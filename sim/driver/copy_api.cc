// SPDX-License-Identifier: Apache-2.0
// Copies of one dimension, of peers, and in batches. Arrays are not there.
#include "sim/driver/capture.h"
#include "sim/driver/copy_calls.h"
#include "sim/driver/driver.h"
#include "sim/driver/places.h"

namespace atp::sim {
namespace {

constexpr uint64_t kStagedAtOnce = 64
                                   << 10;  // pageable copies to the device up to here return early

CopyTask Plain(uint64_t destination, uint64_t source, uint64_t bytes) {
  CopyTask task;
  task.destination = destination;
  task.source = source;
  task.width = bytes;
  return task;
}

uint64_t Address(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }

// True when a copy that is not asked to be asynchronous waits for its end (CUDA driver API manual,
// "API synchronization behavior"): all but copies between plain device memory, and small pageable
// ones to the device.
bool SynchronousCopyWaits(const Call& call, const CopyTask& task) {
  const Memory& memory = call.driver.memory();
  const Allocation* source = memory.Find(task.source);
  const Allocation* destination = memory.Find(task.destination);
  const bool from_device = source && !source->IsHost(),
             to_device = destination && !destination->IsHost();
  if (from_device && to_device) return source->IsManaged() || destination->IsManaged();
  if (!source && to_device) return task.bytes() > kStagedAtOnce;
  return true;
}

}  // namespace

CUresult CopyNow(Call& call, const CopyTask& task) {
  Stream* stream = nullptr;
  if (const CUresult result = ResolveStream(call, nullptr, &stream); result != CUDA_SUCCESS)
    return result;
  if (IsCapturing(*stream)) return RefuseInCapture(*stream);
  if (const CUresult result = CheckCopy(call.driver, *call.context, task); result != CUDA_SUCCESS)
    return result;
  if (const CUresult result = Submit(call, *stream, task); result != CUDA_SUCCESS) return result;
  return SynchronousCopyWaits(call, task) ? WaitForStream(call, *stream) : CUDA_SUCCESS;
}

CUresult CopyLater(Call& call, const CopyTask& task, CUstream handle) {
  Stream* stream = nullptr;
  if (const CUresult result = ResolveStream(call, handle, &stream); result != CUDA_SUCCESS)
    return result;
  if (const CUresult result = CheckCopy(call.driver, *stream->context, task);
      result != CUDA_SUCCESS)
    return result;
  return Submit(call, *stream, task);
}

bool IsDevicePointer(const Call& call, uint64_t address) {
  return call.driver.memory().Find(address) != nullptr;
}

}  // namespace atp::sim

#define ATP_COPY_CALL() ATP_CALL(kNeedsContext | kUnsafeInCapture, cost::kCopy)
#define ATP_COPY_ASYNC_CALL() ATP_CALL(kNeedsContext, cost::kCopy)

ATP_API cuMemcpy(CUdeviceptr destination, CUdeviceptr source, size_t bytes) {
  ATP_COPY_CALL();
  return CopyNow(call, Plain(destination, source, bytes));
}

ATP_API cuMemcpyHtoD_v2(CUdeviceptr destination, const void* source, size_t bytes) {
  ATP_COPY_CALL();
  if (bytes == 0) return CUDA_SUCCESS;
  if (!IsDevicePointer(call, destination)) return CUDA_ERROR_INVALID_VALUE;
  return CopyNow(call, Plain(destination, Address(source), bytes));
}

ATP_API cuMemcpyDtoH_v2(void* destination, CUdeviceptr source, size_t bytes) {
  ATP_COPY_CALL();
  if (bytes == 0) return CUDA_SUCCESS;
  if (!IsDevicePointer(call, source)) return CUDA_ERROR_INVALID_VALUE;
  return CopyNow(call, Plain(Address(destination), source, bytes));
}

ATP_API cuMemcpyDtoD_v2(CUdeviceptr destination, CUdeviceptr source, size_t bytes) {
  ATP_COPY_CALL();
  if (bytes == 0) return CUDA_SUCCESS;
  if (!IsDevicePointer(call, source) || !IsDevicePointer(call, destination))
    return CUDA_ERROR_INVALID_VALUE;
  return CopyNow(call, Plain(destination, source, bytes));
}

ATP_API cuMemcpyAsync(CUdeviceptr destination, CUdeviceptr source, size_t bytes, CUstream stream) {
  ATP_COPY_ASYNC_CALL();
  return CopyLater(call, Plain(destination, source, bytes), stream);
}

ATP_API cuMemcpyHtoDAsync_v2(CUdeviceptr destination, const void* source, size_t bytes,
                             CUstream stream) {
  ATP_COPY_ASYNC_CALL();
  if (bytes == 0) return CUDA_SUCCESS;
  if (!IsDevicePointer(call, destination)) return CUDA_ERROR_INVALID_VALUE;
  return CopyLater(call, Plain(destination, Address(source), bytes), stream);
}

ATP_API cuMemcpyDtoHAsync_v2(void* destination, CUdeviceptr source, size_t bytes, CUstream stream) {
  ATP_COPY_ASYNC_CALL();
  if (bytes == 0) return CUDA_SUCCESS;
  if (!IsDevicePointer(call, source)) return CUDA_ERROR_INVALID_VALUE;
  return CopyLater(call, Plain(Address(destination), source, bytes), stream);
}

ATP_API cuMemcpyDtoDAsync_v2(CUdeviceptr destination, CUdeviceptr source, size_t bytes,
                             CUstream stream) {
  ATP_COPY_ASYNC_CALL();
  if (bytes == 0) return CUDA_SUCCESS;
  if (!IsDevicePointer(call, source) || !IsDevicePointer(call, destination))
    return CUDA_ERROR_INVALID_VALUE;
  return CopyLater(call, Plain(destination, source, bytes), stream);
}

ATP_API cuMemcpyPeer(CUdeviceptr destination, CUcontext destination_context, CUdeviceptr source,
                     CUcontext source_context, size_t bytes) {
  ATP_COPY_CALL();
  CopyTask task = Plain(destination, source, bytes);
  const CUresult result = CheckPeers(call, destination_context, source_context, &task);
  return result == CUDA_SUCCESS ? CopyNow(call, task) : result;
}

ATP_API cuMemcpyPeerAsync(CUdeviceptr destination, CUcontext destination_context,
                          CUdeviceptr source, CUcontext source_context, size_t bytes,
                          CUstream stream) {
  ATP_COPY_ASYNC_CALL();
  CopyTask task = Plain(destination, source, bytes);
  const CUresult result = CheckPeers(call, destination_context, source_context, &task);
  return result == CUDA_SUCCESS ? CopyLater(call, task, stream) : result;
}

ATP_API cuMemcpyBatchAsync_v2(CUdeviceptr* destinations, CUdeviceptr* sources, size_t* sizes,
                              size_t count, CUmemcpyAttributes* attributes, size_t* first_of,
                              size_t attribute_count, CUstream stream) {
  ATP_COPY_ASYNC_CALL();
  if (!destinations || !sources || !sizes || count == 0 || !attributes || !first_of ||
      attribute_count == 0 || attribute_count > count || first_of[0] != 0 || !stream ||
      stream == CU_STREAM_LEGACY)
    return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; ++i) {
    const CUresult result = CopyLater(call, Plain(destinations[i], sources[i], sizes[i]), stream);
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

ATP_API cuMemcpyBatchAsync(CUdeviceptr* destinations, CUdeviceptr* sources, size_t* sizes,
                           size_t count, CUmemcpyAttributes* attributes, size_t* first_of,
                           size_t attribute_count, size_t* failed, CUstream stream) {
  if (failed) *failed = SIZE_MAX;
  return cuMemcpyBatchAsync_v2(destinations, sources, sizes, count, attributes, first_of,
                               attribute_count, stream);
}
