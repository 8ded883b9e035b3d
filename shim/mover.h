// SPDX-License-Identifier: Apache-2.0
// Movers execute a schedule: eviction movers and one fetch mover share a Traffic, the state of all
// moves of one device. Safety does not depend on any of this: a range that is not where the plan
// wants it costs time (a fault), never data.
#pragma once

#include <cuda.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "shim/executor.h"
#include "shim/link_meter.h"
#include "shim/schedule.h"

namespace atp::shim {

// The driver calls that movers and the period's timer make. Tests replace it.
class HintPort {
 public:
  virtual ~HintPort() = default;
  // Moves a range to the host on the idle stream of eviction mover `mover`; returns when it has
  // left.
  virtual CUresult Evict(unsigned mover, uint64_t address, uint64_t bytes) = 0;
  // Makes a range leave that nobody writes: the copy on the host is valid, or is made when it is
  // not `duplicated` yet, and the one on the device is given up.
  virtual CUresult Drop(unsigned mover, uint64_t address, uint64_t bytes, bool duplicated) = 0;
  // Gives up what a range holds, on the device and on the host; returns when that has happened.
  virtual CUresult Discard(unsigned /*mover*/, uint64_t /*address*/, uint64_t /*bytes*/) {
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  // Starts to move a range to the device on fetch stream `stream`, which is idle, and records
  // `done` behind it.
  virtual CUresult Fetch(unsigned stream, uint64_t address, uint64_t bytes, CUevent done) = 0;
  virtual CUevent NewEvent() = 0;
  virtual uint64_t NowNs() = 0;  // of the calling thread or lane
  // When a `done` that has completed did so, on the clock of NowNs; 0 = not known.
  virtual uint64_t DoneAtNs(CUevent done) = 0;
  virtual CUresult Record(CUevent event, CUstream stream, bool per_thread) = 0;
  virtual bool Done(CUevent event) = 0;
  // Seconds between two completed events, negative when not known.
  virtual double Elapsed(CUevent begin, CUevent end) = 0;
};

// While one copies, the pages of others are mapped on the host: a fast link needs several (h200
// costs, modelled: a call for 2 MiB takes 121 us, 43 of them on the link). Those that a slow link
// does not need cost it next to nothing.
inline constexpr unsigned kEvictMovers = 4;
// A prefetch on a busy stream is handed to the driver's one thread for such work and waits there
// for its turn; each goes to a stream that is idle, so that the link has its next copy before the
// last one ends.
inline constexpr unsigned kFetchStreams = 4;
inline constexpr uint64_t kMaxInFlight =
    32u << 20;  // per direction: what a device-wide synchronisation may wait for
inline constexpr uint64_t kPieceBytes = 8u << 20;
// Small cards get small pieces: a piece in flight takes room on both sides.
uint64_t PieceBytes(uint64_t budget);

// Where the program's last users of a position are: one event a stream.
struct LaunchMark {
  static constexpr unsigned kMaxStreams = 8;
  std::array<CUevent, kMaxStreams> events{};
  unsigned count = 0;
};

class Traffic {
 public:
  Traffic(HintPort* port, uint64_t capacity) : port_(port), capacity_(capacity), room_(capacity) {}

  std::mutex& mutex() { return mutex_; }
  HintPort& port() { return *port_; }
  uint64_t capacity() const { return capacity_; }
  void SetCapacity(uint64_t capacity) { capacity_ = capacity; }
  // What is left of the capacity for the program's managed memory: plain memory takes from it.
  void SetRoom(uint64_t room) { room_ = room; }

  // At most kEvictMovers.
  void UseEvictMovers(unsigned count) { evict_movers_ = count; }

  // All below: the lock is held, unless said otherwise.
  // Starts a schedule at a period's start. `evict_first` and `fetch_first` bring residency to where
  // the schedule expects it, the latter among the fetches of the first period, each before the
  // launch at its position; `resident` counts bytes on the device between the two. The start mark
  // must have been recorded: everything that the program has submitted so far.
  void Activate(std::shared_ptr<const Schedule> schedule, std::vector<Action> evict_first,
                std::vector<Action> fetch_first, uint64_t resident);
  LaunchMark& StartMark() { return start_mark_; }
  void Deactivate();
  // True when a mover may still name this allocation to the driver.
  bool Uses(const Allocation* allocation) const;
  bool active() const { return schedule_ != nullptr; }
  bool Quiet() const;  // no mover is inside a driver call

  // The program is at `position` of period `period`: how many fetches must have been issued before
  // that launch. `news`: movers may go on now that could not before. HasFetches: some of them are
  // for this launch and for no earlier one.
  uint64_t Need(uint64_t period, uint32_t position, bool* news = nullptr);
  bool HasFetches(uint64_t period, uint32_t position) const;
  bool FetchesIssued(uint64_t needed) const { return fetch_issued_ >= needed; }
  // The events behind the last of them, one for each fetch stream at most; those long done are left
  // out.
  struct FetchEvents {
    std::array<CUevent, kFetchStreams> events{};
    unsigned count = 0;
  };
  FetchEvents LastFetches(uint64_t needed);

  // The slot for the marks of a flagged position; false while movers still need the slot's previous
  // use.
  bool MarkFree(uint64_t flag_sequence) const;
  LaunchMark& MarkSlot(uint64_t flag_sequence) { return marks_[flag_sequence % marks_.size()]; }
  // Those before it count as recorded too. Threads may come here in another order than they launch.
  void MarkRecorded(uint64_t flag_sequence) {
    marks_recorded_ = std::max(marks_recorded_, flag_sequence + 1);
  }

  // Told of every move that a mover has issued, with the lock held.
  class Observer {
   public:
    virtual ~Observer() = default;
    virtual void OnMoved(const Action& action, bool to_device) = 0;
    virtual bool IsDuplicated(const Action& action) = 0;  // a valid copy is known to be on the host
    // What this eviction holds may be given up, in this period of the schedule, and will be before
    // the lock is taken again; Dropped follows, whatever the driver said. False: it stays.
    virtual bool BeginDrop(const Action& /*action*/, uint64_t /*period*/) { return false; }
    virtual void Dropped(const Action& /*action*/) {}
  };
  void Observe(Observer* observer) { observer_ = observer; }

  struct Counters {
    uint64_t evict_calls = 0, fetch_calls = 0, evict_bytes = 0, fetch_bytes = 0, errors = 0;
  };
  const Counters& counters() const { return counters_; }
  const LinkMeter& meter() const { return meter_; }
  LinkMeter& meter() { return meter_; }
  uint64_t resident() const { return resident_; }  // the account, in bytes

  std::vector<Mover*> movers();

 private:
  friend class EvictMover;
  friend class FetchMover;
  const Action& EvictAt(uint64_t sequence, uint64_t* flag_sequence) const;
  void MakeFirstFetches(std::vector<Action> fetch_first);
  const Action& FetchAt(uint64_t sequence) const;
  const Action& NextFetch() const { return FetchAt(fetch_issued_); }
  uint64_t PeriodOfFetch(uint64_t sequence) const;
  bool PartnerStaying(uint64_t fetch) const;
  bool FetchMayGo() const;
  bool PutOff(uint64_t evict) const;
  const std::vector<uint32_t>& FetchCut(uint64_t period) const;
  void SkipTouches();
  uint64_t EvictsDone() const;  // every eviction below this sequence number has left
  void Moved(const Action& action, bool to_device);
  void Failed();

  std::mutex mutex_;
  HintPort* port_;
  uint64_t capacity_;
  uint64_t room_;
  unsigned evict_movers_ = kEvictMovers;
  Observer* observer_ = nullptr;
  Counters counters_;

  LinkMeter meter_;
  uint64_t generation_ =
      0;  // of the schedule: what a mover waited for may belong to an earlier one
  std::shared_ptr<const Schedule> schedule_;
  std::vector<Action> evict_first_;
  std::vector<Action> first_fetches_;  // of the first period: the schedule's and those before it
  std::vector<uint32_t> first_cut_;    // what Schedule::fetch_cut is, for them
  LaunchMark start_mark_;
  uint64_t resident_ = 0;
  uint64_t touch_every_ = 1;  // periods

  // Sequence numbers count the first list, then period after period of the schedule.
  uint64_t evict_next_ = 0;
  uint64_t fetch_issued_ = 0;
  std::vector<LaunchMark> marks_;
  uint64_t marks_recorded_ = 0;

  // One driver call brings back one or more fetches, and one event stands behind it.
  static constexpr uint64_t kFetchCalls = 256;
  struct FetchCall {
    CUevent done = nullptr;  // used again with its slot
    uint64_t first = 0;      // the sequence number of its first fetch
  };
  std::array<FetchCall, kFetchCalls> fetch_calls_{};
  uint64_t calls_ = 0;         // issued
  uint64_t needed_calls_ = 0;  // of them, those that the newest launch needs
  struct InFlight {
    CUevent done;
    uint64_t bytes;
    uint64_t begin_ns;  // 0: says nothing about the link
  };
  std::deque<InFlight> in_flight_;
  uint64_t in_flight_bytes_ = 0;
  unsigned fetch_stream_ = 0;
  uint64_t fetch_needed_ = 0;  // by the newest launch: its event must not be reused

  std::vector<std::unique_ptr<Mover>> movers_;
};

}  // namespace atp::shim
