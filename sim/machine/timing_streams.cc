// SPDX-License-Identifier: Apache-2.0
// The calls of TimingMachine on streams and events.
#include <algorithm>

#include "sim/machine/copy_run.h"
#include "sim/machine/kernel_run.h"
#include "sim/machine/timing_machine.h"

namespace atp::sim {

StreamId TimingMachine::NewStream(int device, bool blocks_with_legacy) {
  return scheduler_.NewStream(device, blocks_with_legacy);
}

void TimingMachine::DropStream(Lane lane, StreamId stream) {
  (void)stream;  // queued work still runs; the number is not used again
  CatchUp(lane);
}

EventId TimingMachine::NewEvent() {
  if (free_events_.empty()) {
    events_.push_back(nullptr);
    return static_cast<EventId>(events_.size() - 1);
  }
  EventId event = free_events_.back();
  free_events_.pop_back();
  return event;
}

// Waits that were queued keep their recording.
void TimingMachine::DropEvent(EventId event) {
  events_[event] = nullptr;
  free_events_.push_back(event);
}

// A program that runs far ahead of the device is held up until the queue has room.
void TimingMachine::Submit(Lane lane, StreamId stream, Operation operation) {
  size_t depth = static_cast<size_t>(std::max<int64_t>(1, world_.costs.queue_depth));
  if (scheduler_.QueueLength(stream) >= depth) {
    CatchUp(lane);
    while (scheduler_.QueueLength(stream) >= depth && scheduler_.AdvanceOnce(kNever)) {
      if (scheduler_.QueueLength(stream) < depth) {
        lanes_[lane] = std::max(lanes_[lane], scheduler_.LastEnd(stream));
      }
    }
  }
  operation.submitted = lanes_[lane];
  scheduler_.Submit(stream, std::move(operation));
}

void TimingMachine::SubmitKernel(Lane lane, StreamId stream, KernelWork work) {
  Operation operation;
  operation.is_kernel = true;
  operation.run =
      std::make_unique<KernelRun>(&world_, scheduler_.DeviceOf(stream), std::move(work));
  Submit(lane, stream, std::move(operation));
}

void TimingMachine::SubmitCopy(Lane lane, StreamId stream, CopyWork work) {
  Operation operation;
  operation.run = std::make_unique<CopyRun>(&world_, scheduler_.DeviceOf(stream), work);
  Submit(lane, stream, std::move(operation));
  if (work.pageable_host) SyncStream(lane, stream);
}

void TimingMachine::SubmitDelay(Lane lane, StreamId stream, Time duration) {
  Operation operation;
  operation.run = std::make_unique<DelayRun>(duration);
  Submit(lane, stream, std::move(operation));
}

void TimingMachine::Record(Lane lane, StreamId stream, EventId event) {
  Operation operation;
  operation.records = std::make_shared<Recording>();
  events_[event] = operation.records;
  Submit(lane, stream, std::move(operation));
}

void TimingMachine::Wait(Lane lane, StreamId stream, EventId event) {
  if (events_[event] == nullptr) return;
  Operation operation;
  operation.waits_for = events_[event];
  Submit(lane, stream, std::move(operation));
}

bool TimingMachine::Done(Lane lane, StreamId stream) {
  CatchUp(lane);
  return scheduler_.IsEmpty(stream) && scheduler_.LastEnd(stream) <= lanes_[lane];
}

bool TimingMachine::IsDone(EventId event, Time at) const {
  const Recording* recording = events_[event].get();
  return recording == nullptr || (recording->done && recording->time <= at);
}

bool TimingMachine::EventDone(Lane lane, EventId event) {
  CatchUp(lane);
  return IsDone(event, lanes_[lane]);
}

void TimingMachine::SyncStream(Lane lane, StreamId stream) {
  CatchUp(lane);
  uint64_t last = scheduler_.LastSubmitted(stream);
  while (scheduler_.LastCompleted(stream) < last && scheduler_.AdvanceOnce(kNever)) {
  }
  lanes_[lane] = std::max(lanes_[lane], scheduler_.LastEnd(stream));
}

void TimingMachine::SyncEvent(Lane lane, EventId event) {
  CatchUp(lane);
  std::shared_ptr<Recording> recording = events_[event];
  if (recording == nullptr) return;
  while (!recording->done && scheduler_.AdvanceOnce(kNever)) {
  }
  if (recording->done) lanes_[lane] = std::max(lanes_[lane], recording->time);
}

void TimingMachine::SyncDevice(Lane lane, int device) {
  CatchUp(lane);
  for (StreamId stream = 0; stream < scheduler_.StreamCount(); ++stream) {
    const bool own = scheduler_.OwnerOf(stream) == CurrentMember();
    if (own && scheduler_.DeviceOf(stream) == device) SyncStream(lane, stream);
  }
}

Time TimingMachine::EventTime(EventId event) const {
  const Recording* recording = events_[event].get();
  return recording != nullptr && recording->done ? recording->time : kNever;
}

int TimingMachine::WaitAny(Lane lane, std::span<const EventId> events, Time deadline) {
  CatchUp(lane);
  auto first_done = [&](Time at) {
    int best = -1;
    Time best_time = kNever;
    for (size_t i = 0; i < events.size(); ++i) {
      if (!IsDone(events[i], at)) continue;
      Time time = events_[events[i]] == nullptr ? 0 : events_[events[i]]->time;
      if (time >= best_time) continue;
      best = static_cast<int>(i);
      best_time = time;
    }
    return best;
  };
  while (true) {
    int done = first_done(std::max(lanes_[lane], std::min(deadline, scheduler_.now())));
    if (done >= 0) {
      Time time = events_[events[static_cast<size_t>(done)]] == nullptr
                      ? 0
                      : events_[events[static_cast<size_t>(done)]]->time;
      lanes_[lane] = std::max(lanes_[lane], time);
      return done;
    }
    if (!scheduler_.AdvanceOnce(deadline)) break;
  }
  if (deadline == kNever) return -1;  // nothing left that could complete
  scheduler_.AdvanceTo(deadline);
  lanes_[lane] = std::max(lanes_[lane], deadline);
  return -1;
}

}  // namespace atp::sim
