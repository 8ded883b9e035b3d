// SPDX-License-Identifier: Apache-2.0
// Serves launches of which no plan knows: what a launch lacks is fetched before it, whole and by
// the movers, instead of page by page when it faults; the data used most often is kept on the
// device (policy/hot_set.h), and what leaves has left before its room is needed. Whether that is
// done is decided by what it brings (policy/service_trial.h). The lock of the loop is held, unless
// said otherwise: a launch that lacks nothing need not wait for it (NeedsNothing, Late).
#pragma once

#include <cuda.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "policy/hot_set.h"
#include "policy/service_trial.h"
#include "shim/executor.h"
#include "shim/mover.h"
#include "shim/plain_clock.h"

namespace atp::shim {

class Demand {
 public:
  Demand(HintPort* port, Traffic::Observer* observer, PlainClock* clock);
  ~Demand();

  // Movers that play these while a plan has nothing for them to do: in the order of `planned`, and
  // as many.
  std::vector<Mover*> Share(const std::vector<Mover*>& planned);

  struct Terms {
    uint64_t room = 0;         // bytes that managed memory may take
    uint64_t piece_bytes = 0;  // of a move, at most
    bool read_mostly = false;  // what nobody writes may leave without a copy
    bool alone_counts = true;  // launches that are left alone have no more room than that
  };
  // Before a launch without a plan, which the clock has seen already. 0: it is left to the driver.
  // Else its number, for After(); it is to be submitted when what is Wanted() now has been
  // Issued(), and behind the events of LastFetches() if it Lacked() anything. What later launches
  // want may wait for this one, so it must not wait for that.
  uint64_t Before(const LaunchView& launch, const Terms& terms);
  // A launch of this signature comes soon.
  void Expect(uint64_t signature) const { trial_.Expect(signature); }
  bool Lacked() const { return lacked_; }
  bool Queued() const { return queued_; }  // the launch at hand has something for the movers to do
  uint64_t Wanted() const { return wanted_; }
  bool Issued(uint64_t wanted) const { return issued_ >= wanted || !serving_; }
  Traffic::FetchEvents LastFetches() const;
  // Any thread, without the lock. True: a mover has been waiting for it; Awaited() is to follow.
  bool After(const LaunchView& launch, uint64_t number);
  void Awaited() { awaited_ = false; }  // the movers are told now

  // Any thread, without the lock, while serving: all that it touches is there, and it changes
  // nothing that was thought to be read only. What leaves just now costs it a fault.
  bool NeedsNothing(const LaunchView& launch) const;
  // Under the lock: it has gone out like that. True: the movers have something to do.
  bool Late(const LaunchView& launch);

  void Stop();  // a plan runs from now on, or nothing at all
  bool serving() const { return serving_; }
  bool Quiet() const;                         // no mover is inside a driver call
  void Forget(const Allocation* allocation);  // its memory is about to go

  struct Counters {
    uint64_t served = 0, fetched = 0, evicted = 0;  // launches, bytes, bytes
  };
  const Counters& counters() const { return counters_; }
  const policy::ServiceTrial::Verdict& verdict() const { return trial_.verdict(); }

 private:
  class EvictMover;
  class FetchMover;
  struct Move {
    Action action;       // without an allocation: it is gone, nothing is to be done
    uint64_t after = 0;  // evict: mark of its last user; fetch: evictions that come first
    bool ahead = false;  // evict: nobody waits for its room yet
  };
  // What was filled once (weights) is read only from then on, for all that is known. A wrong guess
  // costs the end of an advice, twice at most.
  static constexpr uint8_t kReadOnly = 4;
  struct Item {
    Allocation* allocation = nullptr;
    uint64_t last_use = 0;      // number of the launch
    uint64_t seen = 0;          // the last of all launches that touch it
    uint8_t reads = kReadOnly;  // launches since the last one that writes to it, up to kReadOnly
    bool written() const { return reads < kReadOnly; }
  };
  struct Mark {
    std::atomic<uint64_t> launch{0};  // behind which it was recorded
    CUevent event = nullptr;
  };
  // Bits of Allocation::served.
  static constexpr uint8_t kHere = 1, kWritten = 2;
  static constexpr uint64_t kMarks = 1024, kEvents = 256;

  void ReadClock(bool alone_counts);
  void Note(const LaunchView& launch, bool served);
  void CollectUses(const LaunchView& launch);
  void SetServed(uint32_t slot, uint8_t bits) const;
  bool IsPassed(uint64_t launch);
  void Queue(const policy::HotSet::Moves& moves, const Terms& terms);
  void QueueMoves(uint32_t slot, const Move& like, uint64_t piece, std::deque<Move>* queue);
  uint64_t EvictsDone() const;
  uint64_t EvictsFor(uint64_t bytes_to_stay);
  bool RoomIsAwaited() const;
  void Pause();
  void Failed() { ++errors_; }

  HintPort* port_;
  Traffic::Observer* observer_;
  PlainClock* clock_;
  policy::HotSet hot_;
  policy::ServiceTrial trial_;
  std::atomic<bool> serving_{false};       // read without the lock too
  std::vector<Item> items_;                // by slot
  std::vector<policy::HotSet::Use> uses_;  // of the launch at hand, each once
  uint64_t collected_ = 0;                 // launches
  Terms terms_;                            // of the last one

  // How each launch that the clock has seen was run, and how many have been read.
  struct Seen {
    uint64_t kind = 0;
    bool served = false;
  };
  std::vector<Seen> seen_;
  uint64_t read_ = 0, unread_for_ = 0;

  uint64_t launches_ = 0;  // served
  std::unique_ptr<Mark[]> marks_;
  std::atomic<bool> awaited_{false};   // a mover waits for a mark
  std::deque<Move> evicts_, fetches_;  // not begun yet
  uint64_t evicts_begun_ = 0, evicts_queued_ = 0;
  std::deque<uint64_t> leaving_;  // bytes of the evictions queued last, those not done among them
  uint64_t issued_ = 0, wanted_ = 0;  // fetches
  uint64_t arrived_ = 0;              // of those issued, as far as anybody has asked
  bool lacked_ = false;               // the launch at hand: something that was away
  bool queued_ = false;               // and: moves
  std::array<CUevent, kEvents> events_{};
  std::deque<std::pair<CUevent, uint64_t>> in_flight_;  // event, bytes
  uint64_t in_flight_bytes_ = 0;
  unsigned stream_ = 0;
  std::vector<std::unique_ptr<EvictMover>> evict_movers_;
  std::unique_ptr<FetchMover> fetch_mover_;
  std::vector<std::unique_ptr<Mover>> shared_;
  Counters counters_;
  unsigned errors_ = 0;  // of hints; a driver that refuses them is not asked for ever
};

}  // namespace atp::shim
