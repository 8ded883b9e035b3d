// SPDX-License-Identifier: Apache-2.0
// Streams, events and engines: starts operations when their turn comes and moves simulated time
// from one moment to the next.
//
// Each stream is first in, first out. Operations of a device's legacy default stream wait for all
// earlier work of its blocking streams, and the other way round. One kernel of a program runs at a
// time on a device, in the order in which they could start: a simplification, real devices overlap
// small kernels. Called by TimingMachine under the driver's lock.
#pragma once

#include <deque>
#include <memory>
#include <queue>
#include <set>
#include <utility>
#include <vector>

#include "sim/machine/member.h"
#include "sim/machine/run.h"

namespace atp::sim {

// One recording of an event.
struct Recording {
  bool done = false;
  Time time = kNever;
};

struct Operation {
  Time submitted = 0;
  uint64_t sequence = 0;
  bool is_kernel = false;
  bool is_counted = true;              // its duration is work of the stream
  std::unique_ptr<Run> run;            // null: takes no time (record, wait)
  std::shared_ptr<Recording> records;  // done when the operation is
  std::shared_ptr<Recording> waits_for;
  std::vector<std::pair<StreamId, uint64_t>>
      depends;  // on streams having completed a sequence number
  Time eligible = kNever;
  Time started = -1;
  Time wake = kNever;
};

class Scheduler {
 public:
  Scheduler(World* world, int devices);

  Time now() const { return now_; }
  // Streams are of the current member, which has a legacy stream of its own on each device.
  StreamId NewStream(int device, bool blocks_with_legacy);
  StreamId LegacyStream(int device) const { return legacy_[SlotOf(device, CurrentMember())]; }
  Member OwnerOf(StreamId stream) const { return streams_[stream].owner; }
  // With several programs: who may move time on.
  void TakeTurns(Turns* turns) { turns_ = turns; }
  void AddMember(Member member);
  // Nothing of what it has submitted is there any more.
  void DropMember(Member member);
  int DeviceOf(StreamId stream) const { return streams_[stream].device; }
  StreamId StreamCount() const { return static_cast<StreamId>(streams_.size()); }

  void Submit(StreamId stream, Operation operation);
  // Simulates up to `time`, inclusive.
  void AdvanceTo(Time time);
  // Simulates the next moment when it is not after `limit`; false when there is none. True also
  // when others have acted meanwhile: what the caller waits for may have happened.
  bool AdvanceOnce(Time limit);
  // Tells running kernels when pages have left their device. To be called after every change made
  // from outside.
  void NotePagesLost();

  // Nothing queued, and nothing that an operation submitted now would wait for.
  bool IsIdle(StreamId stream) const;
  bool IsEmpty(StreamId stream) const { return streams_[stream].queue.empty(); }
  size_t QueueLength(StreamId stream) const { return streams_[stream].queue.size(); }
  uint64_t LastSubmitted(StreamId stream) const { return streams_[stream].last_submitted; }
  uint64_t LastCompleted(StreamId stream) const { return streams_[stream].last_completed; }
  Time LastEnd(StreamId stream) const { return streams_[stream].last_end; }

 private:
  struct Stream {
    int device = 0;
    Member owner = 0;
    bool blocks_with_legacy = true;
    bool is_legacy = false;
    std::deque<Operation> queue;
    uint64_t last_submitted = 0, last_completed = 0;
    Time last_end = 0;
  };
  struct Timer {
    Time at;
    uint64_t order;
    StreamId stream;
    uint64_t sequence;
    bool operator>(const Timer& other) const {
      return at != other.at ? at > other.at : order > other.order;
    }
  };

  // By device and program.
  size_t SlotOf(int device, Member member) const {
    return member * devices_ + static_cast<size_t>(device);
  }
  size_t SlotOf(const Stream& stream) const { return SlotOf(stream.device, stream.owner); }
  int DeviceOfSlot(size_t slot) const { return static_cast<int>(slot % devices_); }
  bool DropStale();

  void AddLegacyDependencies(const Stream& stream, Operation* operation) const;
  bool MayStart(Stream& stream, StreamId id);
  void StartEligible();
  void Start(StreamId id);
  void Go(StreamId id);
  void Complete(StreamId id);
  void Arm(StreamId id, Time at);

  World& world_;
  const size_t devices_;
  Turns* turns_ = nullptr;
  std::deque<Stream> streams_;
  std::set<StreamId> active_;  // streams with something queued
  // By slot.
  std::vector<StreamId> legacy_;
  std::vector<StreamId> computing_;  // the stream whose kernel runs
  std::vector<uint64_t> seen_losses_;
  std::priority_queue<Timer, std::vector<Timer>, std::greater<Timer>> timers_;
  Time now_ = 0;
  uint64_t sequence_ = 0;
  uint64_t order_ = 0;
  bool must_scan_ = false;
};

}  // namespace atp::sim
