// SPDX-License-Identifier: Apache-2.0
#include "sim/machine/scheduler.h"

#include <algorithm>

namespace atp::sim {
namespace {

constexpr StreamId kNoStream = UINT32_MAX;

}  // namespace

Scheduler::Scheduler(World* world, int devices)
    : world_(*world),
      computing_(static_cast<size_t>(devices), kNoStream),
      seen_losses_(static_cast<size_t>(devices), 0) {
  for (int device = 0; device < devices; ++device) {
    Stream stream;
    stream.device = device;
    stream.is_legacy = true;
    streams_.push_back(std::move(stream));
  }
}

StreamId Scheduler::NewStream(int device, bool blocks_with_legacy) {
  Stream stream;
  stream.device = device;
  stream.blocks_with_legacy = blocks_with_legacy;
  streams_.push_back(std::move(stream));
  return static_cast<StreamId>(streams_.size() - 1);
}

void Scheduler::AddLegacyDependencies(const Stream& stream, Operation* operation) const {
  if (!stream.is_legacy && !stream.blocks_with_legacy) return;
  for (StreamId id : active_) {
    const Stream& other = streams_[id];
    if (&other == &stream || other.device != stream.device) continue;
    bool ordered = stream.is_legacy ? other.blocks_with_legacy : other.is_legacy;
    if (ordered) operation->depends.emplace_back(id, other.last_submitted);
  }
}

void Scheduler::Submit(StreamId id, Operation operation) {
  Stream& stream = streams_[id];
  AddLegacyDependencies(stream, &operation);
  operation.sequence = ++sequence_;
  operation.submitted = std::max(operation.submitted, now_);
  stream.last_submitted = operation.sequence;
  stream.queue.push_back(std::move(operation));
  active_.insert(id);
  must_scan_ = true;
}

bool Scheduler::IsIdle(StreamId id) const {
  const Stream& stream = streams_[id];
  if (!stream.queue.empty()) return false;
  Operation probe;
  AddLegacyDependencies(stream, &probe);
  return probe.depends.empty();
}

void Scheduler::Arm(StreamId id, Time at) {
  Operation& head = streams_[id].queue.front();
  head.wake = at;
  timers_.push({at, ++order_, id, head.sequence});
}

// True when the head of the queue can start now. One whose time has not come yet gets a timer.
bool Scheduler::MayStart(Stream& stream, StreamId id) {
  Operation& head = stream.queue.front();
  if (head.started >= 0) return false;
  if (head.waits_for != nullptr && !head.waits_for->done) return false;
  for (const auto& [other, sequence] : head.depends) {
    if (streams_[other].last_completed < sequence) return false;
  }
  if (head.submitted > now_) {
    if (head.wake != head.submitted) Arm(id, head.submitted);
    return false;
  }
  head.eligible = std::min(head.eligible, now_);
  return true;
}

void Scheduler::StartEligible() {
  while (must_scan_) {
    must_scan_ = false;
    std::vector<StreamId> next(computing_.size(), kNoStream);
    const std::vector<StreamId> ids(active_.begin(), active_.end());
    for (StreamId id : ids) {
      if (streams_[id].queue.empty() || !MayStart(streams_[id], id)) continue;
      const Operation& head = streams_[id].queue.front();
      if (!head.is_kernel) {
        Start(id);
        continue;
      }
      StreamId& best = next[static_cast<size_t>(streams_[id].device)];
      auto rank = [&](StreamId s) {
        const Operation& operation = streams_[s].queue.front();
        return std::make_pair(operation.eligible, operation.sequence);
      };
      if (best == kNoStream || rank(id) < rank(best)) best = id;
    }
    for (size_t device = 0; device < next.size(); ++device) {
      if (next[device] == kNoStream || computing_[device] != kNoStream) continue;
      computing_[device] = next[device];
      Start(next[device]);
    }
  }
}

void Scheduler::Start(StreamId id) {
  streams_[id].queue.front().started = now_;
  Go(id);
}

void Scheduler::Go(StreamId id) {
  Operation& head = streams_[id].queue.front();
  Time next = head.run == nullptr ? Run::kDone : head.run->Step(now_);
  if (next == Run::kDone) {
    Complete(id);
  } else {
    Arm(id, next);
  }
  NotePagesLost();
}

void Scheduler::Complete(StreamId id) {
  Stream& stream = streams_[id];
  Operation& head = stream.queue.front();
  if (head.records != nullptr) *head.records = {true, now_};
  if (head.is_kernel) computing_[static_cast<size_t>(stream.device)] = kNoStream;
  if (head.run != nullptr && head.is_counted) world_.stats.streams[id] += now_ - head.started;
  stream.last_completed = head.sequence;
  stream.last_end = now_;
  stream.queue.pop_front();
  if (stream.queue.empty()) active_.erase(id);
  must_scan_ = true;
}

void Scheduler::NotePagesLost() {
  for (size_t device = 0; device < computing_.size(); ++device) {
    uint64_t losses = world_.unified.losses(static_cast<int>(device));
    if (losses == seen_losses_[device]) continue;
    seen_losses_[device] = losses;
    StreamId id = computing_[device];
    if (id == kNoStream || streams_[id].queue.empty()) continue;
    Operation& head = streams_[id].queue.front();
    if (head.started < 0 || head.wake == kNever) continue;
    Time wake = head.run->PagesLost(now_, head.wake);
    if (wake != head.wake) Arm(id, wake);
  }
}

bool Scheduler::AdvanceOnce(Time limit) {
  StartEligible();
  while (!timers_.empty()) {
    Timer timer = timers_.top();
    if (timer.at > limit) return false;
    timers_.pop();
    Stream& stream = streams_[timer.stream];
    if (stream.queue.empty() || stream.queue.front().sequence != timer.sequence) continue;
    Operation& head = stream.queue.front();
    if (head.wake != timer.at) continue;  // moved
    now_ = std::max(now_, timer.at);
    if (head.started >= 0) {
      Go(timer.stream);
    } else {
      must_scan_ = true;
    }
    StartEligible();
    return true;
  }
  return false;
}

void Scheduler::AdvanceTo(Time time) {
  while (AdvanceOnce(time)) {
  }
  now_ = std::max(now_, time);
  StartEligible();
}

}  // namespace atp::sim
