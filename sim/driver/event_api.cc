// SPDX-License-Identifier: Apache-2.0
// Events. Times between them are virtual.
#include "sim/driver/capture.h"
#include "sim/driver/driver.h"

namespace atp::sim {
namespace {

CUresult Record(Call& call, CUevent event_handle, CUstream handle, unsigned flags) {
  Event* event = call.driver.events.Get(event_handle);
  if (!event) return CUDA_ERROR_INVALID_HANDLE;
  Stream* stream = nullptr;
  if (const CUresult result = ResolveStream(call, handle, &stream); result != CUDA_SUCCESS)
    return result;
  if (stream->context->device != event->context->device) return CUDA_ERROR_INVALID_HANDLE;
  if (IsCapturing(*stream) && !(flags & CU_EVENT_RECORD_EXTERNAL))
    return RecordInCapture(*stream, *event);
  if (!IsCapturing(*stream)) event->capture.reset();
  if (event->shared && IsCapturing(*stream)) return RefuseInCapture(*stream);
  return Submit(call, *stream,
                RecordTask{event->self, event->shared ? event->shared->Record() : 0});
}

// An event of a capture cannot be asked about, nor may a global capture be disturbed by asking.
CUresult CheckQuery(Call& call, const Event& event) {
  if (const auto capture = event.capture.lock()) {
    capture->invalidated = true;
    return CUDA_ERROR_CAPTURED_EVENT;
  }
  return CheckUnsafeInCapture(call.driver, call.thread);
}

CUresult Elapsed(Call& call, float* milliseconds, CUevent start_handle, CUevent end_handle) {
  if (!milliseconds) return CUDA_ERROR_INVALID_VALUE;
  const Event* start = call.driver.events.Get(start_handle);
  const Event* end = call.driver.events.Get(end_handle);
  if (!start || !end || !start->recorded || !end->recorded) return CUDA_ERROR_INVALID_HANDLE;
  if ((start->flags | end->flags) & CU_EVENT_DISABLE_TIMING) return CUDA_ERROR_INVALID_HANDLE;
  if (start->context->device != end->context->device) return CUDA_ERROR_INVALID_HANDLE;
  for (const Event* event : {start, end}) {
    if (event->records_held_up || !call.machine().EventDone(call.lane(), event->id))
      return CUDA_ERROR_NOT_READY;
  }
  const Time span = call.machine().EventTime(end->id) - call.machine().EventTime(start->id);
  *milliseconds = static_cast<float>(static_cast<double>(span) / static_cast<double>(kMs));
  return CUDA_SUCCESS;
}

}  // namespace

Event* NewEvent(Call& call, unsigned flags) {
  Driver& driver = call.driver;
  const std::shared_ptr<Event> event(new Event, [&driver](Event* gone) {
    driver.machine().DropEvent(gone->id);
    delete gone;
  });
  event->self = event;
  event->id = call.machine().NewEvent();
  event->context = call.context;
  event->flags = flags;
  return driver.events.Add(event.get());
}

}  // namespace atp::sim

ATP_API cuEventCreate(CUevent* out, unsigned flags) {
  ATP_CALL(kNeedsContext, cost::kEvent);
  constexpr unsigned kKnown =
      CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;
  if (!out || (flags & ~kKnown)) return CUDA_ERROR_INVALID_VALUE;
  std::shared_ptr<SharedEvent> shared;
  if (flags & CU_EVENT_INTERPROCESS) {
    if (!(flags & CU_EVENT_DISABLE_TIMING)) return CUDA_ERROR_INVALID_VALUE;
    shared = SharedEvent::Create();
    if (!shared) return CUDA_ERROR_OUT_OF_MEMORY;
  }
  Event* event = NewEvent(call, flags);
  event->shared = std::move(shared);
  *out = reinterpret_cast<CUevent>(event);
  return CUDA_SUCCESS;
}

ATP_API cuEventDestroy_v2(CUevent handle) {
  ATP_CALL(kNeedsInit, cost::kEvent);
  Event* event = call.driver.events.Get(handle);
  if (!event) return CUDA_ERROR_INVALID_HANDLE;
  call.driver.events.Remove(event);
  const std::shared_ptr<Event> last = std::move(event->self);
  return CUDA_SUCCESS;
}

ATP_API cuEventDestroy(CUevent event) { return cuEventDestroy_v2(event); }

ATP_API cuEventRecord(CUevent event, CUstream stream) {
  ATP_CALL(kNeedsContext, cost::kEvent);
  return Record(call, event, stream, 0);
}

ATP_API cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned flags) {
  ATP_CALL(kNeedsContext, cost::kEvent);
  if (flags & ~static_cast<unsigned>(CU_EVENT_RECORD_EXTERNAL)) return CUDA_ERROR_INVALID_VALUE;
  return Record(call, event, stream, flags);
}

ATP_API cuEventQuery(CUevent handle) {
  ATP_CALL(kNeedsInit, cost::kQuery);
  Event* event = call.driver.events.Get(handle);
  if (!event) return CUDA_ERROR_INVALID_HANDLE;
  if (const CUresult result = CheckQuery(call, *event); result != CUDA_SUCCESS) return result;
  Pump(call.driver);
  if (event->records_held_up > 0) return CUDA_ERROR_NOT_READY;
  if (event->shared && !event->shared->IsDone(event->shared->Latest())) return CUDA_ERROR_NOT_READY;
  if (!event->recorded) return CUDA_SUCCESS;
  return call.machine().EventDone(call.lane(), event->id) ? Health(call.driver, *event->context)
                                                          : CUDA_ERROR_NOT_READY;
}

ATP_API cuEventSynchronize(CUevent handle) {
  ATP_CALL(kNeedsInit, cost::kSync);
  Event* event = call.driver.events.Get(handle);
  if (!event) return CUDA_ERROR_INVALID_HANDLE;
  if (const CUresult result = CheckQuery(call, *event); result != CUDA_SUCCESS) return result;
  if (!event->recorded && event->records_held_up == 0 && !event->shared) return CUDA_SUCCESS;
  return WaitForEvent(call, *event);
}

ATP_API cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end) {
  ATP_CALL(kNeedsInit, cost::kCall);
  return Elapsed(call, milliseconds, start, end);
}

ATP_API cuEventElapsedTime_v2(float* milliseconds, CUevent start, CUevent end) {
  ATP_CALL(kNeedsInit, cost::kCall);
  return Elapsed(call, milliseconds, start, end);
}
