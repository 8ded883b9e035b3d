// SPDX-License-Identifier: Apache-2.0
#include "sim/driver/stream.h"

#include <algorithm>
#include <chrono>

#include "sim/driver/capture.h"
#include "sim/driver/driver.h"
#include "sim/driver/graph.h"
#include "sim/driver/pool.h"

namespace atp::sim {
namespace {

// How long a later call waits, in wall time, for a host function of the same stream before its work
// goes into the backlog. Host functions that return promptly so never change the order of anything,
// and the virtual times of a run stay the same; one that waits for the program does not hang it.
constexpr auto kHostFunctionPatience = std::chrono::seconds(1);
// How often held-up work is looked at again while a thread waits for it: values in memory give no
// signal.
constexpr auto kPollInterval = std::chrono::microseconds(100);

// The order number before which `stream` has nothing outstanding.
uint64_t FirstOrder(const Stream& stream) {
  if (stream.in_host_function) return 0;
  return stream.backlog.empty() ? UINT64_MAX : stream.backlog.front().order;
}

// True when work of that order number may run with respect to the legacy stream's rule: it waits
// for all earlier work of the streams that block with it, and they for its.
bool LegacyRuleAllows(const Stream& stream, uint64_t order) {
  for (const Stream* other : stream.context->streams) {
    const bool ordered = stream.is_legacy ? other->blocks_with_legacy() : other->is_legacy;
    if (ordered && other != &stream && (stream.is_legacy || stream.blocks_with_legacy()) &&
        FirstOrder(*other) < order)
      return false;
  }
  return true;
}

bool TaskIsReady(Driver& driver, const Task& task) {
  if (const auto* wait = std::get_if<WaitTask>(&task)) {
    const SharedEvent* shared = wait->event->shared.get();
    return wait->event->records_held_up == 0 && (!shared || shared->IsDone(wait->recording));
  }
  if (const auto* value = std::get_if<ValueTask>(&task))
    return !value->wait || ValueIsThere(driver, *value);
  return true;
}

bool MayRun(Driver& driver, Stream& stream, const Task& task, uint64_t order) {
  return !stream.in_host_function && LegacyRuleAllows(stream, order) && TaskIsReady(driver, task);
}

// Waits a while for host functions that the stream's next task depends on.
void AwaitHostFunctions(Call& call, const Stream& stream) {
  const auto deadline = std::chrono::steady_clock::now() + kHostFunctionPatience;
  const auto blocked = [&] {
    const auto& streams = stream.context->streams;
    return std::any_of(streams.begin(), streams.end(), [&](const Stream* other) {
      const bool ordered = other == &stream || (stream.is_legacy && other->blocks_with_legacy()) ||
                           (other->is_legacy && stream.blocks_with_legacy());
      return ordered && other->in_host_function;
    });
  };
  while (blocked() && std::chrono::steady_clock::now() < deadline)
    call.driver.changed.wait_until(call.lock, deadline);
}

}  // namespace

CUresult ResolveStream(Call& call, CUstream handle, Stream** stream) {
  const bool per_thread =
      handle == CU_STREAM_PER_THREAD || (!handle && PerThreadStreams::Selected());
  if (!handle || handle == CU_STREAM_LEGACY || per_thread) {
    if (!call.context) return CUDA_ERROR_INVALID_CONTEXT;
    *stream = per_thread ? PerThreadStream(call.driver, *call.context, call.thread)
                         : call.context->legacy;
    return CUDA_SUCCESS;
  }
  *stream = call.driver.streams.Get(handle);
  return *stream ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult Submit(Call& call, Stream& stream, Task task) {
  if (IsCapturing(stream)) return CaptureTask(call, stream, std::move(task));
  if (const CUresult result = CheckImplicitDependency(call.driver, stream); result != CUDA_SUCCESS)
    return result;
  if (call.slow) call.machine().SubmitDelay(call.lane(), stream.id, call.slow);
  AwaitHostFunctions(call, stream);
  Pump(call.driver);
  const uint64_t order = call.driver.NextOrder();
  if (stream.backlog.empty() && MayRun(call.driver, stream, task, order))
    return RunTask(call.driver, call.lane(), stream, task);
  if (const auto* record = std::get_if<RecordTask>(&task)) ++record->event->records_held_up;
  stream.backlog.push_back({std::move(task), call.lane(), order});
  return CUDA_SUCCESS;
}

void Pump(Driver& driver) {
  for (;;) {
    Stream* next = nullptr;  // the ready one whose task was submitted first
    for (Stream* stream : driver.streams.all()) {
      if (stream->backlog.empty()) continue;
      const HeldUp& front = stream->backlog.front();
      const bool first = !next || front.order < next->backlog.front().order;
      if (first && MayRun(driver, *stream, front.task, front.order)) next = stream;
    }
    if (!next) return;
    const HeldUp held = std::move(next->backlog.front());
    next->backlog.pop_front();
    if (const auto* record = std::get_if<RecordTask>(&held.task)) --record->event->records_held_up;
    const CUresult result = RunTask(driver, held.lane, *next, held.task);
    if (result != CUDA_SUCCESS && next->context->sticky == CUDA_SUCCESS)
      next->context->sticky = result;
  }
}

bool IsHeldUp(const Driver&, const Stream& stream) {
  if (stream.in_host_function || !stream.backlog.empty()) return true;
  return !LegacyRuleAllows(stream, UINT64_MAX - 1);
}

CUresult WaitForStream(Call& call, Stream& stream) {
  for (Pump(call.driver); IsHeldUp(call.driver, stream); Pump(call.driver))
    call.driver.changed.wait_for(call.lock, kPollInterval);
  call.machine().SyncStream(call.lane(), stream.id);
  TrimPools(call.driver, call.lane(), stream.context->device->index, /*to_thresholds=*/true);
  call.driver.FlushDeviceOutput();
  call.driver.trace().Flush();
  return Health(call.driver, *stream.context);
}

CUresult WaitForEvent(Call& call, Event& event) {
  const uint64_t recording = event.shared ? event.shared->Latest() : 0;
  const auto held_up = [&] {
    return event.records_held_up > 0 || (event.shared && !event.shared->IsDone(recording));
  };
  for (Pump(call.driver); held_up(); Pump(call.driver))
    call.driver.changed.wait_for(call.lock, kPollInterval);
  call.machine().SyncEvent(call.lane(), event.id);
  call.driver.FlushDeviceOutput();
  return Health(call.driver, *event.context);
}

CUresult WaitForContext(Call& call, Context& context) {
  const auto held_up = [&] {
    return std::any_of(context.streams.begin(), context.streams.end(),
                       [&](const Stream* stream) { return IsHeldUp(call.driver, *stream); });
  };
  for (Pump(call.driver); held_up(); Pump(call.driver))
    call.driver.changed.wait_for(call.lock, kPollInterval);
  call.machine().SyncDevice(call.lane(), context.device->index);
  TrimPools(call.driver, call.lane(), context.device->index, /*to_thresholds=*/true);
  call.driver.FlushDeviceOutput();
  call.driver.trace().Flush();
  return Health(call.driver, context);
}

Stream* NewStream(Driver& driver, Context& context, unsigned flags, int priority) {
  auto* stream = new Stream;
  stream->context = &context;
  stream->flags = flags;
  stream->priority = priority;
  stream->number = driver.NextNumber();
  context.streams.insert(stream);
  return driver.streams.Add(stream);
}

void DropStream(Driver& driver, Lane lane, Stream* stream) {
  if (!stream->is_legacy) driver.machine().DropStream(lane, stream->id);
  stream->context->streams.erase(stream);
  driver.streams.Remove(stream);
  if (stream->context->legacy == stream) stream->context->legacy = nullptr;
  for (auto it = stream->context->per_thread.begin(); it != stream->context->per_thread.end();
       ++it) {
    if (it->second != stream) continue;
    stream->context->per_thread.erase(it);
    break;
  }
  delete stream;
}

Stream* PerThreadStream(Driver& driver, Context& context, ThreadState& thread) {
  Stream*& stream = context.per_thread[&thread];
  if (!stream) {
    stream = NewStream(driver, context, 0, 0);
    stream->is_default = true;
    stream->id = driver.machine().NewStream(context.device->index, /*blocks_with_legacy=*/true);
  }
  return stream;
}

CUresult Health(Driver& driver, Context& context) {
  if (context.sticky == CUDA_SUCCESS &&
      driver.machine().Health(context.device->index) != MachineStatus::kOk) {
    // The UVM driver cancels the faults it cannot serve; the device reports them as bad addresses.
    context.sticky = CUDA_ERROR_ILLEGAL_ADDRESS;
  }
  return context.sticky;
}

CUresult RunTask(Driver& driver, Lane lane, Stream& stream, const Task& task) {
  struct Runner {
    Driver& driver;
    Lane lane;
    Stream& stream;
    CUresult operator()(const KernelTask& t) { return RunKernel(driver, lane, stream, t); }
    CUresult operator()(const CopyTask& t) { return RunCopy(driver, lane, stream, t); }
    CUresult operator()(const SetTask& t) { return RunSet(driver, lane, stream, t); }
    CUresult operator()(const HostTask& t) { return RunHostFunction(driver, lane, stream, t); }
    CUresult operator()(const RecordTask& t) {
      t.event->recorded = true;
      driver.machine().Record(lane, stream.id, t.event->id);
      if (t.event->shared) t.event->shared->Finish(t.recording);
      return CUDA_SUCCESS;
    }
    CUresult operator()(const WaitTask& t) {
      driver.machine().Wait(lane, stream.id, t.event->id);
      return CUDA_SUCCESS;
    }
    CUresult operator()(const ValueTask& t) { return RunValue(driver, lane, stream, t); }
    CUresult operator()(const HintTask& t) { return RunHint(driver, lane, stream, t); }
    CUresult operator()(const EmptyTask&) { return CUDA_SUCCESS; }
    CUresult operator()(const ChildTask&) { return CUDA_SUCCESS; }  // RunNodes goes into it
    CUresult operator()(const GraphAllocTask&) { return CUDA_SUCCESS; }
    CUresult operator()(const FreeTask& t) {
      Allocation* allocation = driver.memory().Find(t.address);
      if (!allocation || allocation->begin != t.address) return CUDA_ERROR_INVALID_VALUE;
      if (allocation->pool && !allocation->of_graph) {
        PoolFree(driver, lane, allocation, &stream);  // it is gone after that
        return CUDA_SUCCESS;
      }
      // Work before it in the stream has been executed: the bytes can go. The model gives them back
      // now, not when virtual time has passed that work.
      if (allocation->kind == MemoryKind::kDevice) driver.memory().Free(lane, allocation);
      return CUDA_SUCCESS;
    }
  };
  return std::visit(Runner{driver, lane, stream}, task);
}

}  // namespace atp::sim
