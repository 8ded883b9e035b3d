// SPDX-License-Identifier: Apache-2.0
// The streams on which the program launches on one device, and events behind what it has submitted
// there. The lock of the loop is held, unless said otherwise.
#pragma once

#include <cuda.h>

#include <array>
#include <atomic>
#include <shared_mutex>
#include <vector>

#include "shim/hints.h"
#include "shim/loop.h"

namespace atp::shim {

class ProgramStreams {
 public:
  explicit ProgramStreams(DriverHints* hints) : hints_(hints) {}

  // False when there would be more than LaunchMark::kMaxStreams.
  bool Remember(CUstream stream, bool per_thread);
  void Forget(CUstream stream);
  bool Knows(CUstream stream, bool per_thread) const;  // any thread, without the lock
  bool empty() const { return streams_.empty(); }
  bool IsOnly(CUstream stream, bool per_thread) const {
    return streams_.size() == 1 && streams_[0].handle == stream &&
           streams_[0].per_thread == per_thread;
  }
  // Records an event behind everything submitted on the first stream.
  void RecordOnFirst(CUevent event);
  // ... on all streams, in two steps. First, the mark's events are made where it has none yet;
  // then, any thread, without the lock, they are recorded. A stream that the program destroys in
  // between is left out.
  struct Stream {
    CUstream handle;
    bool per_thread;
  };
  struct List {
    std::array<Stream, LaunchMark::kMaxStreams> streams;
    unsigned count = 0;
  };
  List Prepare(LaunchMark* mark);
  void Mark(const List& list, LaunchMark* mark);
  // As events, all that the program has submitted: on the streams remembered and on every other one
  // that waits for the legacy default stream. Empty: a stream could not be asked.
  std::vector<CUevent> Everything();
  // What the program is about to wait for, as events.
  LaunchMark Awaited(Wait kind, CUstream stream, bool per_thread, CUevent event);

 private:
  bool Record(CUevent* event, const Stream& stream);

  // Never 0. Handles are addresses, or small numbers.
  static uint64_t Key(CUstream stream, bool per_thread) {
    return (reinterpret_cast<uint64_t>(stream) << 1 | (per_thread ? 1 : 0)) + 1;
  }
  void Show();

  DriverHints* hints_;
  std::vector<Stream> streams_;
  // Shared by those who record without the lock, and alone by who destroys a stream. Whoever has it
  // takes no other lock of ours.
  std::shared_mutex destroying_;
  std::array<std::atomic<uint64_t>, LaunchMark::kMaxStreams> shown_{};  // their keys; 0 = none
  std::array<CUevent, LaunchMark::kMaxStreams> wait_events_{};
  CUevent legacy_ = nullptr;
};

}  // namespace atp::shim
