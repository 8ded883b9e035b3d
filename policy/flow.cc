// SPDX-License-Identifier: Apache-2.0
#include "policy/flow.h"

#include <algorithm>
#include <deque>

#include "policy/overflow_row.h"
#include "policy/period_play.h"

namespace atp::policy {
namespace {

constexpr int64_t kHeldFrom = 4;
// Moves that have room already where evictions wait: with less, copies in would wait for them.
constexpr int64_t kSpare = 3;
constexpr int64_t kPeriods = 10;  // a period that has not repeated itself by then never will

class Flow : public PeriodPlay {
 public:
  Flow(const Trace& trace, const Lifetimes& life, const LinkRates& rates,
       const std::vector<int64_t>& amounts, const std::vector<bool>& copied,
       const FlowOptions& options)
      : PeriodPlay(trace, life, rates, copied, options.memory, options.turnaround),
        amounts_(amounts),
        largest_(std::max<int64_t>(options.largest_move, 1)),
        put_off_(options.put_off),
        planned_(Planned(life, amounts, options)) {
    for (int64_t k = 0; k < n_; ++k) base_.push_back(planned_[k]);
  }

 private:
  static OverflowRow Planned(const Lifetimes& life, const std::vector<int64_t>& amounts,
                             const FlowOptions& options) {
    std::vector<int64_t> over;
    for (Bytes live : life.live) over.push_back(static_cast<int64_t>(live) - options.memory);
    OverflowRow row(over);
    const int64_t n = static_cast<int64_t>(over.size());
    for (size_t i = 0; i < amounts.size(); ++i) {
      AddCyclic(row, n, life.intervals[i].last_use + 1, life.intervals[i].next_use - 1,
                -amounts[i]);
    }
    return row;
  }
  static void AddCyclic(OverflowRow& row, int64_t n, int64_t first, int64_t last, int64_t bytes) {
    if (first > last) return;
    const int64_t base = first / n * n;
    first -= base, last -= base;
    row.Add(first, std::min(last, n - 1), bytes);
    if (last >= n) row.Add(0, last - n, bytes);
  }

  void Begin(uint32_t i, int64_t period) override {
    const int64_t needed = static_cast<int64_t>(life_.intervals[i].next_use) + period * n_;
    for (int64_t offset = 0; offset < amounts_[i]; offset += largest_) {
      const Job job{needed, i, static_cast<int32_t>(period), offset,
                    std::min(largest_, amounts_[i] - offset)};
      Announce(job);
      copied_[i] ? leaving_.push_back(job) : Evict(job);
    }
  }

  // What came back early over this launch was for this period only.
  void Enter(int64_t launch) override {
    const int64_t at = launch % n_;
    planned_.Add(at, at, base_[static_cast<size_t>(at)] - planned_[at]);
  }

  void Pump() override {
    if (!clock_.Busy(Direction::kOut) && !leaving_.empty() && !Hinders()) {
      Evict(leaving_.front());
      leaving_.pop_front();
    }
    if (clock_.Busy(Direction::kIn) || gone_.empty() || !MayReturn(gone_.top())) return;
    AddCyclic(planned_, n_, Coming(), gone_.top().needed - 1, gone_.top().bytes);
    Fetch();
  }

  // A copy out would slow the copies in that a launch waits for, and those have room.
  bool Hinders() const {
    return put_off_ && Waits() && Lacking() <= 0 && !gone_.empty() &&
           gone_.top().needed <= Coming() && Held() + kSpare * gone_.top().bytes <= memory_;
  }

  bool MayReturn(const Job& job) const {
    if (Held() + job.bytes > memory_) return false;
    if (job.needed <= Coming()) return true;
    if (Lacking() + job.bytes > 0) return false;
    const int64_t first = Coming() % n_, last = first + job.needed - 1 - Coming();
    int64_t most = planned_.Greatest(first, std::min(last, n_ - 1));
    if (last >= n_) most = std::max(most, planned_.Greatest(0, last - n_));
    return most + job.bytes <= 0;
  }

  const std::vector<int64_t>& amounts_;
  const int64_t largest_;
  const bool put_off_;
  OverflowRow planned_;        // above memory, with all amounts away and some back early
  std::vector<int64_t> base_;  // the same with nothing back early
  std::deque<Job> leaving_;
};

}  // namespace

bool FlowLayout(const Trace& trace, const Lifetimes& life, const LinkRates& rates,
                const std::vector<int64_t>& amounts, const std::vector<bool>& copied,
                const FlowOptions& options, Layout* layout) {
  return Flow(trace, life, rates, amounts, copied, options).Play(kPeriods, kHeldFrom, layout);
}

}  // namespace atp::policy
