// SPDX-License-Identifier: Apache-2.0
// Sets of memory, of one and two dimensions.
#include "sim/driver/capture.h"
#include "sim/driver/driver.h"

namespace atp::sim {
namespace {

SetTask Set(CUdeviceptr destination, unsigned element, uint32_t value, size_t width) {
  return {destination, width * element, element, value, width, 1};
}

// Sets do not wait for their end, except of pinned and managed memory (CUDA driver API manual, "API
// synchronization behavior").
CUresult SetNow(Call& call, const SetTask& task) {
  Stream* stream = nullptr;
  if (const CUresult result = ResolveStream(call, nullptr, &stream); result != CUDA_SUCCESS)
    return result;
  if (IsCapturing(*stream)) return RefuseInCapture(*stream);
  if (const CUresult result = CheckSet(call.driver, *call.context, task); result != CUDA_SUCCESS)
    return result;
  if (const CUresult result = Submit(call, *stream, task); result != CUDA_SUCCESS) return result;
  const Allocation* allocation = call.driver.memory().Find(task.destination);
  const bool waits = allocation && (allocation->IsHost() || allocation->IsManaged());
  return waits ? WaitForStream(call, *stream) : CUDA_SUCCESS;
}

CUresult SetLater(Call& call, const SetTask& task, CUstream handle) {
  Stream* stream = nullptr;
  if (const CUresult result = ResolveStream(call, handle, &stream); result != CUDA_SUCCESS)
    return result;
  if (const CUresult result = CheckSet(call.driver, *stream->context, task); result != CUDA_SUCCESS)
    return result;
  return Submit(call, *stream, task);
}

}  // namespace
}  // namespace atp::sim

#define ATP_SET_CALL() ATP_CALL(kNeedsContext | kUnsafeInCapture, cost::kCopy)
#define ATP_SET_ASYNC_CALL() ATP_CALL(kNeedsContext, cost::kCopy)

ATP_API cuMemsetD8_v2(CUdeviceptr destination, unsigned char value, size_t count) {
  ATP_SET_CALL();
  return SetNow(call, Set(destination, 1, value, count));
}

ATP_API cuMemsetD16_v2(CUdeviceptr destination, unsigned short value, size_t count) {
  ATP_SET_CALL();
  return SetNow(call, Set(destination, 2, value, count));
}

ATP_API cuMemsetD32_v2(CUdeviceptr destination, unsigned value, size_t count) {
  ATP_SET_CALL();
  return SetNow(call, Set(destination, 4, value, count));
}

ATP_API cuMemsetD2D8_v2(CUdeviceptr destination, size_t pitch, unsigned char value, size_t width,
                        size_t height) {
  ATP_SET_CALL();
  return SetNow(call, {destination, pitch, 1, value, width, height});
}

ATP_API cuMemsetD2D16_v2(CUdeviceptr destination, size_t pitch, unsigned short value, size_t width,
                         size_t height) {
  ATP_SET_CALL();
  return SetNow(call, {destination, pitch, 2, value, width, height});
}

ATP_API cuMemsetD2D32_v2(CUdeviceptr destination, size_t pitch, unsigned value, size_t width,
                         size_t height) {
  ATP_SET_CALL();
  return SetNow(call, {destination, pitch, 4, value, width, height});
}

ATP_API cuMemsetD8Async(CUdeviceptr destination, unsigned char value, size_t count,
                        CUstream stream) {
  ATP_SET_ASYNC_CALL();
  return SetLater(call, Set(destination, 1, value, count), stream);
}

ATP_API cuMemsetD16Async(CUdeviceptr destination, unsigned short value, size_t count,
                         CUstream stream) {
  ATP_SET_ASYNC_CALL();
  return SetLater(call, Set(destination, 2, value, count), stream);
}

ATP_API cuMemsetD32Async(CUdeviceptr destination, unsigned value, size_t count, CUstream stream) {
  ATP_SET_ASYNC_CALL();
  return SetLater(call, Set(destination, 4, value, count), stream);
}

ATP_API cuMemsetD2D8Async(CUdeviceptr destination, size_t pitch, unsigned char value, size_t width,
                          size_t height, CUstream stream) {
  ATP_SET_ASYNC_CALL();
  return SetLater(call, {destination, pitch, 1, value, width, height}, stream);
}

ATP_API cuMemsetD2D16Async(CUdeviceptr destination, size_t pitch, unsigned short value,
                           size_t width, size_t height, CUstream stream) {
  ATP_SET_ASYNC_CALL();
  return SetLater(call, {destination, pitch, 2, value, width, height}, stream);
}

ATP_API cuMemsetD2D32Async(CUdeviceptr destination, size_t pitch, unsigned value, size_t width,
                           size_t height, CUstream stream) {
  ATP_SET_ASYNC_CALL();
  return SetLater(call, {destination, pitch, 4, value, width, height}, stream);
}
