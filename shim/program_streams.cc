// SPDX-License-Identifier: Apache-2.0
#include "shim/program_streams.h"

#include <algorithm>

namespace atp::shim {

bool ProgramStreams::Remember(CUstream stream, bool per_thread) {
  for (const Stream& s : streams_) {
    if (s.handle == stream && s.per_thread == per_thread) return true;
  }
  if (streams_.size() == LaunchMark::kMaxStreams) return false;
  streams_.push_back({stream, per_thread});
  Show();
  return true;
}

void ProgramStreams::Forget(CUstream stream) {
  std::unique_lock<std::shared_mutex> alone(destroying_);
  std::erase_if(streams_, [&](const Stream& s) { return s.handle == stream; });
  Show();
}

void ProgramStreams::Show() {
  for (size_t i = 0; i < shown_.size(); ++i) {
    const bool is = i < streams_.size();
    shown_[i].store(is ? Key(streams_[i].handle, streams_[i].per_thread) : 0,
                    std::memory_order_relaxed);
  }
}

bool ProgramStreams::Knows(CUstream stream, bool per_thread) const {
  const uint64_t key = Key(stream, per_thread);
  return std::any_of(shown_.begin(), shown_.end(), [&](const std::atomic<uint64_t>& shown) {
    return shown.load(std::memory_order_relaxed) == key;
  });
}

void ProgramStreams::RecordOnFirst(CUevent event) {
  hints_->Record(event, streams_.front().handle, streams_.front().per_thread);
}

bool ProgramStreams::Record(CUevent* event, const Stream& stream) {
  if (*event == nullptr) *event = hints_->NewEvent(CU_EVENT_DISABLE_TIMING);
  return hints_->Record(*event, stream.handle, stream.per_thread) == CUDA_SUCCESS;
}

ProgramStreams::List ProgramStreams::Prepare(LaunchMark* mark) {
  List list;
  for (const Stream& stream : streams_) {
    CUevent& event = mark->events[list.count];
    if (event == nullptr) event = hints_->NewEvent(CU_EVENT_DISABLE_TIMING);
    list.streams[list.count++] = stream;
  }
  return list;
}

void ProgramStreams::Mark(const List& list, LaunchMark* mark) {
  std::shared_lock<std::shared_mutex> shared(destroying_);
  mark->count = 0;
  for (unsigned i = 0; i < list.count; ++i) {
    const Stream& stream = list.streams[i];
    if (!Knows(stream.handle, stream.per_thread)) continue;
    if (Record(&mark->events[i], stream)) std::swap(mark->events[mark->count++], mark->events[i]);
  }
}

std::vector<CUevent> ProgramStreams::Everything() {
  std::vector<CUevent> events;
  for (size_t i = 0; i < streams_.size(); ++i) {
    if (!Record(&wait_events_[i], streams_[i])) return {};
    events.push_back(wait_events_[i]);
  }
  // Those that are not blocking and launched nothing that was seen have nothing to wait for that
  // touches managed memory.
  if (!Record(&legacy_, {CU_STREAM_LEGACY, false})) return {};
  events.push_back(legacy_);
  return events;
}

LaunchMark ProgramStreams::Awaited(Wait kind, CUstream stream, bool per_thread, CUevent event) {
  LaunchMark mark;
  if (kind == Wait::kEvent) {
    mark.events[mark.count++] = event;
    return mark;
  }
  for (size_t i = 0; i < streams_.size(); ++i) {
    const Stream& s = streams_[i];
    if (kind == Wait::kStream && (s.handle != stream || s.per_thread != per_thread)) continue;
    Record(&wait_events_[i], s);
    mark.events[mark.count++] = wait_events_[i];
  }
  return mark;
}

}  // namespace atp::shim
