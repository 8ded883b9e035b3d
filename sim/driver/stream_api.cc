// SPDX-License-Identifier: Apache-2.0
// Streams: creation, queries, waiting, attributes.
#include <algorithm>

#include "sim/driver/capture.h"
#include "sim/driver/driver.h"

namespace atp::sim {
namespace {

constexpr int kLeastPriority = 0, kGreatestPriority = -5;

CUresult Create(Call& call, CUstream* out, unsigned flags, int priority) {
  if (!out || (flags & ~static_cast<unsigned>(CU_STREAM_NON_BLOCKING)))
    return CUDA_ERROR_INVALID_VALUE;
  priority = std::clamp(priority, kGreatestPriority, kLeastPriority);
  Stream* stream = NewStream(call.driver, *call.context, flags, priority);
  stream->id = call.machine().NewStream(call.context->device->index, stream->blocks_with_legacy());
  *out = reinterpret_cast<CUstream>(stream);
  return CUDA_SUCCESS;
}

// Resolves a stream for a query; `out` is checked first, as the driver does.
CUresult Find(Call& call, CUstream handle, const void* out, Stream** stream) {
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  return ResolveStream(call, handle, stream);
}

}  // namespace
}  // namespace atp::sim

ATP_API cuStreamCreate(CUstream* stream, unsigned flags) {
  ATP_CALL(kNeedsContext | kUnsafeInCapture, cost::kStream);
  return Create(call, stream, flags, 0);
}

ATP_API cuStreamCreateWithPriority(CUstream* stream, unsigned flags, int priority) {
  ATP_CALL(kNeedsContext | kUnsafeInCapture, cost::kStream);
  return Create(call, stream, flags, priority);
}

ATP_API cuStreamDestroy_v2(CUstream handle) {
  ATP_CALL(kNeedsContext | kIgnoresStickyErrors, cost::kStream);
  Stream* stream = call.driver.streams.Get(handle);
  if (!stream || stream->is_default) return CUDA_ERROR_INVALID_HANDLE;
  if (IsCapturing(*stream)) {
    RefuseInCapture(*stream);
    AbandonCapture(call.driver, *stream->capture);
  }
  // Queued work still runs; what is held up cannot without its stream, so it is waited for.
  if (stream->context->sticky == CUDA_SUCCESS &&
      (stream->in_host_function || !stream->backlog.empty()))
    WaitForStream(call, *stream);
  DropStream(call.driver, call.lane(), stream);
  return CUDA_SUCCESS;
}

ATP_API cuStreamDestroy(CUstream stream) { return cuStreamDestroy_v2(stream); }

ATP_API cuStreamSynchronize(CUstream handle) {
  ATP_CALL(kNeedsContext, cost::kSync);
  Stream* stream = nullptr;
  if (const CUresult result = ResolveStream(call, handle, &stream); result != CUDA_SUCCESS)
    return result;
  if (IsCapturing(*stream)) return RefuseInCapture(*stream);
  if (const CUresult result = CheckUnsafeInCapture(call.driver, call.thread);
      result != CUDA_SUCCESS)
    return result;
  if (const CUresult result = CheckImplicitDependency(call.driver, *stream); result != CUDA_SUCCESS)
    return result;
  return WaitForStream(call, *stream);
}

ATP_API cuStreamQuery(CUstream handle) {
  ATP_CALL(kNeedsContext, cost::kQuery);
  Stream* stream = nullptr;
  if (const CUresult result = ResolveStream(call, handle, &stream); result != CUDA_SUCCESS)
    return result;
  if (IsCapturing(*stream)) return RefuseInCapture(*stream);
  if (const CUresult result = CheckUnsafeInCapture(call.driver, call.thread);
      result != CUDA_SUCCESS)
    return result;
  Pump(call.driver);
  if (IsHeldUp(call.driver, *stream)) return CUDA_ERROR_NOT_READY;
  return call.machine().Done(call.lane(), stream->id) ? Health(call.driver, *stream->context)
                                                      : CUDA_ERROR_NOT_READY;
}

ATP_API cuStreamWaitEvent(CUstream handle, CUevent event_handle, unsigned flags) {
  ATP_CALL(kNeedsContext, cost::kEvent);
  if (flags & ~static_cast<unsigned>(CU_EVENT_WAIT_EXTERNAL)) return CUDA_ERROR_INVALID_VALUE;
  Stream* stream = nullptr;
  if (const CUresult result = ResolveStream(call, handle, &stream); result != CUDA_SUCCESS)
    return result;
  Event* event = call.driver.events.Get(event_handle);
  if (!event) return CUDA_ERROR_INVALID_HANDLE;
  if (const auto capture = event->capture.lock(); capture && !(flags & CU_EVENT_WAIT_EXTERNAL))
    return JoinCapture(call, *stream, *event, capture);
  if (IsCapturing(*stream) && !(flags & CU_EVENT_WAIT_EXTERNAL)) {
    // An event from outside the capture cannot become an edge.
    stream->capture->invalidated = true;
    return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
  }
  const uint64_t recording = event->shared ? event->shared->Latest() : 0;
  if (!event->recorded && event->records_held_up == 0 && recording == 0 && !IsCapturing(*stream))
    return CUDA_SUCCESS;
  return Submit(call, *stream, WaitTask{event->self, recording});
}

ATP_API cuStreamGetFlags(CUstream handle, unsigned* flags) {
  ATP_CALL(kNeedsContext, cost::kCall);
  Stream* stream = nullptr;
  if (const CUresult result = Find(call, handle, flags, &stream); result != CUDA_SUCCESS)
    return result;
  *flags = stream->flags;
  return CUDA_SUCCESS;
}

ATP_API cuStreamGetPriority(CUstream handle, int* priority) {
  ATP_CALL(kNeedsContext, cost::kCall);
  Stream* stream = nullptr;
  if (const CUresult result = Find(call, handle, priority, &stream); result != CUDA_SUCCESS)
    return result;
  *priority = stream->priority;
  return CUDA_SUCCESS;
}

ATP_API cuStreamGetId(CUstream handle, unsigned long long* id) {
  ATP_CALL(kNeedsContext, cost::kCall);
  Stream* stream = nullptr;
  if (const CUresult result = Find(call, handle, id, &stream); result != CUDA_SUCCESS)
    return result;
  *id = stream->number;
  return CUDA_SUCCESS;
}

ATP_API cuStreamGetCtx(CUstream handle, CUcontext* context) {
  ATP_CALL(kNeedsContext, cost::kCall);
  Stream* stream = nullptr;
  if (const CUresult result = Find(call, handle, context, &stream); result != CUDA_SUCCESS)
    return result;
  *context = reinterpret_cast<CUcontext>(stream->context);
  return CUDA_SUCCESS;
}

ATP_API cuStreamGetCtx_v2(CUstream stream, CUcontext* context, CUgreenCtx* green) {
  if (green) *green = nullptr;
  return cuStreamGetCtx(stream, context);
}

ATP_API cuStreamGetDevice(CUstream handle, CUdevice* device) {
  ATP_CALL(kNeedsContext, cost::kCall);
  Stream* stream = nullptr;
  if (const CUresult result = Find(call, handle, device, &stream); result != CUDA_SUCCESS)
    return result;
  *device = stream->context->device->ordinal;
  return CUDA_SUCCESS;
}

ATP_API cuStreamGetAttribute(CUstream handle, CUstreamAttrID attribute, CUstreamAttrValue* value) {
  ATP_CALL(kNeedsContext, cost::kCall);
  Stream* stream = nullptr;
  if (const CUresult result = Find(call, handle, value, &stream); result != CUDA_SUCCESS)
    return result;
  if (attribute <= 0 || attribute >= 16) return CUDA_ERROR_INVALID_VALUE;
  *value = stream->attributes[attribute];
  if (attribute == CU_LAUNCH_ATTRIBUTE_PRIORITY) value->priority = stream->priority;
  return CUDA_SUCCESS;
}

ATP_API cuStreamSetAttribute(CUstream handle, CUstreamAttrID attribute,
                             const CUstreamAttrValue* value) {
  ATP_CALL(kNeedsContext, cost::kCall);
  Stream* stream = nullptr;
  if (const CUresult result = Find(call, handle, value, &stream); result != CUDA_SUCCESS)
    return result;
  if (attribute <= 0 || attribute >= 16) return CUDA_ERROR_INVALID_VALUE;
  stream->attributes[attribute] = *value;
  return CUDA_SUCCESS;
}

ATP_API cuStreamCopyAttributes(CUstream destination, CUstream source) {
  ATP_CALL(kNeedsContext, cost::kCall);
  Stream *to = nullptr, *from = nullptr;
  if (const CUresult result = ResolveStream(call, destination, &to); result != CUDA_SUCCESS)
    return result;
  if (const CUresult result = ResolveStream(call, source, &from); result != CUDA_SUCCESS)
    return result;
  std::copy(std::begin(from->attributes), std::end(from->attributes), std::begin(to->attributes));
  return CUDA_SUCCESS;
}

// Which stream may touch managed memory matters only on devices without page faults.
ATP_API cuStreamAttachMemAsync(CUstream handle, CUdeviceptr address, size_t length,
                               unsigned flags) {
  ATP_CALL(kNeedsContext, cost::kCall);
  Stream* stream = nullptr;
  if (const CUresult result = ResolveStream(call, handle, &stream); result != CUDA_SUCCESS)
    return result;
  const Allocation* allocation = call.driver.memory().Find(address);
  if (!allocation || !allocation->IsManaged() || allocation->begin != address)
    return CUDA_ERROR_INVALID_VALUE;
  if (length != 0 && length != allocation->bytes) return CUDA_ERROR_INVALID_VALUE;
  const bool known =
      flags == CU_MEM_ATTACH_GLOBAL || flags == CU_MEM_ATTACH_HOST || flags == CU_MEM_ATTACH_SINGLE;
  if (!known || (flags == CU_MEM_ATTACH_SINGLE && stream->is_legacy))
    return CUDA_ERROR_INVALID_VALUE;
  return Submit(call, *stream, EmptyTask{});
}
