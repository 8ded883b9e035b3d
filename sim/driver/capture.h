// SPDX-License-Identifier: Apache-2.0
// Stream capture: work submitted to a capturing stream becomes graph nodes. Waiting on an event
// that was recorded in a capture draws another stream into it. Calls that would disturb a capture
// are refused and invalidate it. Under the driver's lock.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "sim/driver/stream.h"

namespace atp::sim {

struct Graph;
struct ThreadState;

struct Capture {
  uint64_t id = 0;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  ThreadState* thread = nullptr;  // that began it
  Stream* origin = nullptr;
  Graph* graph = nullptr;
  bool owns_graph = true;  // false when it captures into a graph of the program
  bool invalidated = false;
  std::vector<Stream*> streams;  // origin and those that joined
};

// For calls that are unsafe while a capture is under way (allocation, synchronisation of everything
// ...): 900, and the conflicting captures are invalidated, unless the thread has asked for relaxed
// mode.
CUresult CheckUnsafeInCapture(Driver& driver, const ThreadState& thread);

// Adds a task to the capture that `stream` is in.
CUresult CaptureTask(Call& call, Stream& stream, Task task);

// What a call that can never be captured answers in a capturing stream: 900 and the capture is
// invalid.
CUresult RefuseInCapture(Stream& stream);

// Legacy-stream work while a stream that synchronises with it is capturing: 906 and the captures
// are invalid.
CUresult CheckImplicitDependency(Driver& driver, const Stream& stream);

// Records an event in a capturing stream: it then stands for the stream's frontier.
CUresult RecordInCapture(Stream& stream, Event& event);

// A stream waits for an event of a capture: it becomes part of that capture.
CUresult JoinCapture(Call& call, Stream& stream, Event& event,
                     const std::shared_ptr<Capture>& capture);

// Ends a capture without a result.
void AbandonCapture(Driver& driver, Capture& capture);

inline bool IsCapturing(const Stream& stream) { return stream.capture != nullptr; }

}  // namespace atp::sim
