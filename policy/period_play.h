// SPDX-License-Identifier: Apache-2.0
// Plays a period over and over in a simulation of device memory and link, until it repeats itself:
// what is common to flow.h and chase.h, which decide what moves. A launch starts when all it
// touches is there and memory holds it. Called by the planner only. One thread.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

#include "policy/layout.h"
#include "policy/lifetimes.h"
#include "policy/link_clock.h"
#include "policy/trace.h"

namespace atp::policy {

class PeriodPlay {
 public:
  // All but the rates must outlive the play. `copied`: per interval, false leaves without the link.
  // `turnaround`: PlanOptions::turnaround_seconds.
  PeriodPlay(const Trace& trace, const Lifetimes& life, const LinkRates& rates,
             const std::vector<bool>& copied, int64_t memory, double turnaround);
  virtual ~PeriodPlay() = default;
  PeriodPlay(const PeriodPlay&) = delete;
  PeriodPlay& operator=(const PeriodPlay&) = delete;

  // True when a period has run just like the one before it: that one is the layout. From period
  // `held_from` on, launches are held to their times in the period before: one that alternates
  // settles at the slower of its turns.
  bool Play(int64_t periods, int64_t held_from, Layout* layout);

 protected:
  struct Job {           // bytes of one instance of an interval
    int64_t needed = 0;  // launch over all periods
    uint32_t interval = 0;
    int32_t period = 0;  // in which the interval began
    int64_t offset = 0, bytes = 0;
  };
  // Jobs by need: the top is needed soonest, and of one launch's the first interval. An interval's
  // jobs come back in the order in which they left; all of one instance before the next one leaves.
  class Gone {
   public:
    explicit Gone(size_t intervals) : lines_(intervals) {}
    bool empty() const { return needed_.empty(); }
    const Job& top() const {
      const Line& line = lines_[needed_.top().second];
      return line.jobs[line.next];
    }
    void push(const Job& job);
    void pop();

   private:
    struct Line {
      std::vector<Job> jobs;
      size_t next = 0;  // those before it are on the way back
    };
    using Need = std::pair<int64_t, uint32_t>;  // launch over all periods, interval
    std::priority_queue<Need, std::vector<Need>, std::greater<>> needed_;
    std::vector<Line> lines_;  // by interval
  };

  // The interval's last user has ended; period -1 for what waits across the start of all.
  virtual void Begin(uint32_t interval, int64_t period) = 0;
  // The launch starts; `period` counts from 0.
  virtual void Enter(int64_t /*launch*/) {}
  virtual void EnterPeriod(int64_t /*period*/) {}
  // Starts what may start now.
  virtual void Pump() = 0;

  int64_t Live(int64_t launch) const {
    return static_cast<int64_t>(life_.live[static_cast<size_t>(launch % n_)]);
  }
  int64_t Coming() const { return running_ ? next_ + 1 : next_; }  // the launch that starts next
  // The launch that starts next waits for something to come back.
  bool Waits() const { return !running_ && missing_[Slot(next_)] > 0; }
  // Bytes that the device holds now, in flight included.
  int64_t Held() const {
    const size_t before = static_cast<size_t>((next_ - 1 + n_) % n_);
    const int64_t live = running_ ? Live(next_) : static_cast<int64_t>(life_.live_after[before]);
    return live - away_;
  }
  // Bytes that a launch would lack if all that waits for it or lives then were here but what is
  // away now.
  int64_t LackingAt(int64_t launch) const { return Live(launch) - away_ - memory_; }
  int64_t Lacking() const { return LackingAt(Coming()); }
  // The launch waits for this job to have come back; to be called once for each.
  void Announce(const Job& job) { ++missing_[Slot(job.needed)]; }
  // Starts an eviction (the way out must be idle where it copies), or a fetch from `gone_`.
  void Evict(const Job& job);
  void Fetch();

  const Trace& trace_;
  const Lifetimes& life_;
  const std::vector<bool>& copied_;
  const int64_t memory_, n_;
  const double turnaround_;
  LinkClock<Job> clock_;
  Gone gone_;  // away, not yet on the way back

 private:
  using Pieces = std::vector<Layout::Piece>;

  size_t Slot(int64_t launch) const { return static_cast<size_t>(launch % (2 * n_)); }
  double StartOf(int64_t period) const { return starts_[static_cast<size_t>(period * n_)]; }
  double Earliest(int64_t launch) const;
  bool RunLaunch(int64_t launch);
  bool Advance(double until);
  void Left(const Job& job);
  void GiveRoom(double now);
  void Record(Direction direction, const Job& job, double start, double end);
  bool Repeats(int64_t period, Layout* layout) const;
  bool Collect(Direction direction, int64_t period, double length, Pieces* pieces) const;

  std::vector<std::vector<uint32_t>> beginning_;  // intervals by last use
  std::vector<int64_t> missing_;                  // jobs that a launch waits for
  int64_t next_ = 0, away_ = 0, held_from_ = 0;
  bool running_ = false;                         // launch next_ runs
  std::deque<std::pair<double, Job>> settling_;  // has left; when its room is there to be used
  std::vector<double> starts_, ends_;            // of launches, over all periods
  std::vector<Pieces> done_[2];                  // by the period in which the interval began
};

}  // namespace atp::policy
