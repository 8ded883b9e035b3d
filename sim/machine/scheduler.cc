// SPDX-License-Identifier: Apache-2.0
#include "sim/machine/scheduler.h"

#include <algorithm>

namespace atp::sim {
namespace {

constexpr StreamId kNoStream = UINT32_MAX;

}  // namespace

Scheduler::Scheduler(World* world, int devices)
    : world_(*world), devices_(static_cast<size_t>(devices)) {
  AddMember(0);
}

void Scheduler::AddMember(Member member) {
  while (legacy_.size() < (member + 1) * devices_) {
    Stream stream;
    stream.device = DeviceOfSlot(legacy_.size());
    stream.owner = static_cast<Member>(legacy_.size() / devices_);
    stream.is_legacy = true;
    legacy_.push_back(StreamCount());
    computing_.push_back(kNoStream);
    seen_losses_.push_back(world_.unified.losses(stream.device));
    streams_.push_back(std::move(stream));
  }
}

void Scheduler::DropMember(Member member) {
  for (StreamId id = 0; id < StreamCount(); ++id) {
    Stream& stream = streams_[id];
    if (stream.owner != member) continue;
    computing_[SlotOf(stream)] = kNoStream;
    stream.queue.clear();
    stream.last_completed = stream.last_submitted;
    active_.erase(id);
  }
  must_scan_ = true;
}

StreamId Scheduler::NewStream(int device, bool blocks_with_legacy) {
  Stream stream;
  stream.device = device;
  stream.owner = CurrentMember();
  stream.blocks_with_legacy = blocks_with_legacy;
  streams_.push_back(std::move(stream));
  return static_cast<StreamId>(streams_.size() - 1);
}

void Scheduler::AddLegacyDependencies(const Stream& stream, Operation* operation) const {
  if (!stream.is_legacy && !stream.blocks_with_legacy) return;
  for (StreamId id : active_) {
    const Stream& other = streams_[id];
    if (&other == &stream || SlotOf(other) != SlotOf(stream)) continue;
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
      StreamId& best = next[SlotOf(streams_[id])];
      auto rank = [&](StreamId s) {
        const Operation& operation = streams_[s].queue.front();
        return std::make_pair(operation.eligible, operation.sequence);
      };
      if (best == kNoStream || rank(id) < rank(best)) best = id;
    }
    for (size_t slot = 0; slot < next.size(); ++slot) {
      if (next[slot] == kNoStream || computing_[slot] != kNoStream) continue;
      computing_[slot] = next[slot];
      Start(next[slot]);
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
  if (head.is_kernel) computing_[SlotOf(stream)] = kNoStream;
  if (head.run != nullptr && head.is_counted) world_.stats.streams[id] += now_ - head.started;
  stream.last_completed = head.sequence;
  stream.last_end = now_;
  stream.queue.pop_front();
  if (stream.queue.empty()) active_.erase(id);
  must_scan_ = true;
}

void Scheduler::NotePagesLost() {
  for (size_t slot = 0; slot < computing_.size(); ++slot) {
    uint64_t losses = world_.unified.losses(DeviceOfSlot(slot));
    if (losses == seen_losses_[slot]) continue;
    seen_losses_[slot] = losses;
    StreamId id = computing_[slot];
    if (id == kNoStream || streams_[id].queue.empty()) continue;
    Operation& head = streams_[id].queue.front();
    if (head.started < 0 || head.wake == kNever) continue;
    Time wake = head.run->PagesLost(now_, head.wake);
    if (wake != head.wake) Arm(id, wake);
  }
}

// Timers of what has ended or moved. False: none is left.
bool Scheduler::DropStale() {
  for (; !timers_.empty(); timers_.pop()) {
    const Timer& timer = timers_.top();
    const Stream& stream = streams_[timer.stream];
    if (!stream.queue.empty() && stream.queue.front().sequence == timer.sequence &&
        stream.queue.front().wake == timer.at) {
      return true;
    }
  }
  return false;
}

bool Scheduler::AdvanceOnce(Time limit) {
  StartEligible();
  const Time next = DropStale() ? timers_.top().at : kNever;
  if (turns_ != nullptr && turns_->Await(std::min(next, limit))) return true;
  if (next == kNever || next > limit) return false;
  const Timer timer = timers_.top();
  timers_.pop();
  now_ = std::max(now_, timer.at);
  if (streams_[timer.stream].queue.front().started >= 0) {
    Go(timer.stream);
  } else {
    must_scan_ = true;
  }
  StartEligible();
  return true;
}

void Scheduler::AdvanceTo(Time time) {
  while (AdvanceOnce(time)) {
  }
  now_ = std::max(now_, time);
  StartEligible();
}

}  // namespace atp::sim
