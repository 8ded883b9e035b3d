// SPDX-License-Identifier: Apache-2.0
// Streams and events. Work normally runs at the moment it is submitted; only its timing lies in the
// future. It waits in the stream's backlog when something outside the program's call order holds it
// up: a host function that has not returned, a value that has not been written, an event whose
// record is itself held up. Under the driver's lock.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "sim/driver/entry.h"
#include "sim/driver/shared_event.h"
#include "sim/driver/task.h"

namespace atp::sim {

struct Capture;
struct GraphNode;

struct Event {
  std::shared_ptr<SharedEvent> shared;  // of an event between processes
  std::shared_ptr<Event> self;  // until the program destroys it; tasks that name it keep it longer
  EventId id = 0;
  Context* context = nullptr;
  unsigned flags = 0;
  bool recorded = false;
  int records_held_up = 0;           // records that are in a backlog
  std::weak_ptr<Capture> capture;    // the capture in which it was recorded last
  std::vector<GraphNode*> captured;  // what a wait in that capture depends on
};

struct HeldUp {
  Task task;
  Lane lane = 0;
  uint64_t order = 0;  // of submission, over all streams
};

struct Stream {
  Context* context = nullptr;
  StreamId id = 0;
  unsigned flags = 0;
  int priority = 0;
  uint64_t number = 0;  // cuStreamGetId
  bool is_legacy = false;
  bool is_default = false;  // legacy or per-thread: not the program's to destroy
  std::deque<HeldUp> backlog;
  bool in_host_function = false;
  std::shared_ptr<Capture> capture;
  std::vector<GraphNode*> frontier;  // of the capture: what the next node depends on
  CUstreamAttrValue attributes[16]{};

  bool blocks_with_legacy() const { return !is_legacy && !(flags & CU_STREAM_NON_BLOCKING); }
};

// A new event of the call's context, known to the driver.
Event* NewEvent(Call& call, unsigned flags);

// The stream that a handle means for this thread: 0, CU_STREAM_LEGACY and CU_STREAM_PER_THREAD
// included.
CUresult ResolveStream(Call& call, CUstream handle, Stream** stream);

// Adds a task to a stream: as a node when the stream is capturing, else to be run now or when it
// can be.
CUresult Submit(Call& call, Stream& stream, Task task);

// Runs everything in backlogs that has become ready.
void Pump(Driver& driver);

// Block the calling thread (and its lane) until the work is done. Return the context's health.
CUresult WaitForStream(Call& call, Stream& stream);
CUresult WaitForEvent(Call& call, Event& event);
CUresult WaitForContext(Call& call, Context& context);
// True when nothing submitted to the stream, or to those it waits for, is held up.
bool IsHeldUp(const Driver& driver, const Stream& stream);

Stream* NewStream(Driver& driver, Context& context, unsigned flags, int priority);
void DropStream(Driver& driver, Lane lane, Stream* stream);
Stream* PerThreadStream(Driver& driver, Context& context, ThreadState& thread);

// What went wrong in a context or on its device, CUDA_SUCCESS when all is well. Takes note of a
// dead device.
CUresult Health(Driver& driver, Context& context);

}  // namespace atp::sim
