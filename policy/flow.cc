// SPDX-License-Identifier: Apache-2.0
#include "policy/flow.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <queue>

#include "policy/overflow_row.h"

namespace atp::policy {
namespace {

constexpr double kSame = 1e-9;  // seconds; times of two periods this close are the same
// A period that has not come to repeat itself by the third is held to the launch times of the one
// before it; one that has not by the last never will.
constexpr int64_t kFreePeriods = 4, kPeriods = 10;
constexpr double kNever = 1e300;

class Flow {
 public:
  Flow(const Trace& trace, const Lifetimes& life, const LinkRates& rates,
       const std::vector<int64_t>& amounts, const std::vector<bool>& copies,
       const FlowOptions& options)
      : trace_(trace),
        life_(life),
        amounts_(amounts),
        copies_(copies),
        options_(options),
        n_(static_cast<int64_t>(trace.launches.size())),
        planned_(Planned(life, amounts, options)),
        ending_(static_cast<size_t>(n_)),
        missing_(static_cast<size_t>(2 * n_), 0) {
    alone_[0] = rates.h2d, alone_[1] = rates.d2h;
    both_[0] = rates.duplex_h2d > 0 ? std::min(rates.duplex_h2d, rates.h2d) : rates.h2d;
    both_[1] = rates.duplex_d2h > 0 ? std::min(rates.duplex_d2h, rates.d2h) : rates.d2h;
    for (int64_t k = 0; k < n_; ++k) base_.push_back(planned_[k]);
    for (uint32_t i = 0; i < amounts.size(); ++i) {
      if (amounts[i] > 0) ending_[life.intervals[i].last_use].push_back(i);
    }
  }

  bool Run(Layout* layout) {
    BeginBefore();
    for (int64_t period = 0; period < kPeriods; ++period) {
      for (int64_t k = 0; k < n_; ++k) {
        if (!RunLaunch(period * n_ + k)) return false;
      }
      if (period >= 2 && Repeats(period, layout)) return true;
    }
    return false;
  }

 private:
  struct Job {  // bytes of one instance of an interval
    uint32_t interval;
    int64_t needed;  // launch over all periods
    int64_t period;  // in which the interval began
    int64_t offset, bytes;
    bool operator<(const Job& other) const {  // the top of the heap is needed soonest
      if (needed != other.needed) return needed > other.needed;
      if (interval != other.interval) return interval > other.interval;
      return offset > other.offset;
    }
  };
  struct Engine {
    bool busy = false;
    Job job{};
    double start = 0, left = 0;  // bytes
  };
  enum { kIn = 0, kOut = 1 };

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

  size_t Fold(int64_t k) const { return static_cast<size_t>(k % n_); }
  size_t Slot(int64_t k) const { return static_cast<size_t>(k % (2 * n_)); }
  int64_t Live(int64_t k) const { return static_cast<int64_t>(life_.live[Fold(k)]); }
  int64_t LiveAfter(int64_t k) const {
    return static_cast<int64_t>(life_.live_after[Fold(k + n_)]);
  }

  // What waits across the start is away, as after many periods.
  void BeginBefore() {
    for (uint32_t i = 0; i < amounts_.size(); ++i) {
      const auto& interval = life_.intervals[i];
      if (amounts_[i] == 0 || static_cast<int64_t>(interval.next_use) < n_) continue;
      Release(i, -1);
      if (!copies_[i]) continue;
      while (!leaving_.empty()) {
        gone_.push(leaving_.front());
        away_ += leaving_.front().bytes;
        leaving_.pop_front();
      }
    }
  }

  // The last user of the interval has ended.
  void Release(uint32_t i, int64_t period) {
    const auto& interval = life_.intervals[i];
    const int64_t needed = static_cast<int64_t>(interval.next_use) + period * n_;
    for (int64_t offset = 0; offset < amounts_[i]; offset += options_.largest_move) {
      const Job job{i, needed, period, offset,
                    std::min(options_.largest_move, amounts_[i] - offset)};
      ++missing_[Slot(needed)];
      if (copies_[i]) {
        leaving_.push_back(job);
        continue;
      }
      away_ += job.bytes;
      Record(kOut, job, now_, now_);
      gone_.push(job);
    }
  }

  double StartOf(int64_t period) const { return starts_[static_cast<size_t>(period * n_)]; }
  // The earliest start of a launch that is held to the period before.
  double Held(int64_t k) const {
    const int64_t period = k / n_;
    if (period < kFreePeriods || k % n_ == 0) return 0;
    return StartOf(period) + starts_[static_cast<size_t>(k - n_)] - StartOf(period - 1);
  }

  bool RunLaunch(int64_t k) {
    next_ = k;
    running_ = false;
    const double held = Held(k);
    while (true) {
      Pump();
      if (missing_[Slot(k)] == 0 && Live(k) - away_ <= options_.memory && now_ >= held) break;
      if (!Advance(now_ < held ? held : kNever)) return false;
    }
    starts_.push_back(now_);
    running_ = true;
    // What came back early over this launch was for this period only.
    const int64_t at = static_cast<int64_t>(Fold(k));
    planned_.Add(at, at, base_[Fold(k)] - planned_[at]);
    const double end = now_ + trace_.launches[Fold(k)].seconds;
    Pump();
    while (now_ < end) Advance(end), Pump();
    ends_.push_back(now_);
    next_ = k + 1;
    running_ = false;
    for (uint32_t i : ending_[Fold(k)]) Release(i, k / n_);
    return true;
  }

  void Pump() {
    if (!engines_[kOut].busy && !leaving_.empty()) {
      Start(kOut, leaving_.front());
      leaving_.pop_front();
    }
    if (!engines_[kIn].busy && !gone_.empty() && MayReturn(gone_.top())) {
      const Job job = gone_.top();
      gone_.pop();
      away_ -= job.bytes;
      AddCyclic(planned_, n_, Coming(), job.needed - 1, job.bytes);
      Start(kIn, job);
    }
  }

  int64_t Coming() const { return next_ + (running_ ? 1 : 0); }  // the launch that starts next
  bool MayReturn(const Job& job) const {
    const int64_t away = away_ - job.bytes;
    const int64_t held = running_ ? Live(next_) : LiveAfter(next_ - 1);
    if (held - away > options_.memory) return false;
    if (job.needed <= Coming()) return true;
    if (Live(Coming()) - away > options_.memory) return false;
    const int64_t first = static_cast<int64_t>(Fold(Coming()));
    const int64_t last = first + job.needed - 1 - Coming();
    int64_t most = planned_.Greatest(first, std::min(last, n_ - 1));
    if (last >= n_) most = std::max(most, planned_.Greatest(0, last - n_));
    return most + job.bytes <= 0;
  }

  void Start(int direction, const Job& job) {
    engines_[direction] = {true, job, now_, static_cast<double>(job.bytes)};
  }

  // To the end of the next piece, or to `until`; false when nothing would ever happen.
  bool Advance(double until) {
    const bool both = engines_[kIn].busy && engines_[kOut].busy;
    double next = until;
    double rate[2];
    for (int d : {kIn, kOut}) {
      rate[d] = both ? both_[d] : alone_[d];
      if (engines_[d].busy) next = std::min(next, now_ + engines_[d].left / rate[d]);
    }
    if (next >= kNever) return false;
    for (int d : {kIn, kOut}) {
      Engine& engine = engines_[d];
      if (!engine.busy) continue;
      engine.left -= (next - now_) * rate[d];
      if (engine.left > 0.5) continue;  // bytes; doubles of long runs end a little off
      engine.busy = false;
      Finish(d, engine, next);
    }
    now_ = next;
    return true;
  }

  void Finish(int direction, const Engine& engine, double end) {
    Record(direction, engine.job, engine.start, end);
    if (direction == kOut) {
      away_ += engine.job.bytes;
      gone_.push(engine.job);
    } else {
      --missing_[Slot(engine.job.needed)];
    }
  }

  void Record(int direction, const Job& job, double start, double end) {
    auto& periods = done_[direction];
    const size_t period = static_cast<size_t>(job.period + 1);  // one began before all
    if (periods.size() <= period) periods.resize(period + 1);
    periods[period].push_back(
        {job.interval, static_cast<Bytes>(job.offset), static_cast<Bytes>(job.bytes), start, end});
  }

  // Fills the layout from the period before this one, all of whose moves have ended, when this one
  // ran just like it.
  bool Repeats(int64_t period, Layout* layout) const {
    const double begin = StartOf(period - 1), length = StartOf(period) - begin;
    layout->period = length;
    layout->launch_start.clear();
    layout->launch_end.clear();
    for (int64_t k = (period - 1) * n_; k < period * n_; ++k) {
      const double start = starts_[static_cast<size_t>(k)], end = ends_[static_cast<size_t>(k)];
      if (std::abs(starts_[static_cast<size_t>(k + n_)] - start - length) > kSame) return false;
      layout->launch_start.push_back(start - begin);
      layout->launch_end.push_back(end - begin);
    }
    return Collect(done_[kOut], period, length, &layout->out) &&
           Collect(done_[kIn], period, length, &layout->in);
  }

  // The moves of the intervals that began in the period before, if they ran like those before.
  bool Collect(const std::vector<std::vector<Layout::Piece>>& done, int64_t period, double length,
               std::vector<Layout::Piece>* pieces) const {
    pieces->clear();
    if (done.empty()) return true;
    if (done.size() <= static_cast<size_t>(period)) return false;
    const auto& last = done[static_cast<size_t>(period)];
    const auto& before = done[static_cast<size_t>(period - 1)];
    if (last.size() != before.size()) return false;
    for (size_t i = 0; i < last.size(); ++i) {
      Layout::Piece piece = last[i];
      if (piece.interval != before[i].interval || piece.offset != before[i].offset) return false;
      if (std::abs(piece.start - length - before[i].start) > kSame) return false;
      if (std::abs(piece.end - length - before[i].end) > kSame) return false;
      piece.start -= StartOf(period - 1), piece.end -= StartOf(period - 1);
      pieces->push_back(piece);
    }
    return true;
  }

  const Trace& trace_;
  const Lifetimes& life_;
  const std::vector<int64_t>& amounts_;
  const std::vector<bool>& copies_;
  const FlowOptions& options_;
  int64_t n_;
  OverflowRow planned_;        // above memory, with all amounts away and some back early
  std::vector<int64_t> base_;  // the same with nothing back early
  std::vector<std::vector<uint32_t>> ending_;  // intervals by last use
  std::vector<int64_t> missing_;               // pieces that a launch still waits for
  double alone_[2], both_[2];
  double now_ = 0;
  int64_t next_ = 0, away_ = 0;
  bool running_ = false;
  Engine engines_[2];
  std::deque<Job> leaving_;
  std::priority_queue<Job> gone_;
  std::vector<double> starts_, ends_;                // of launches, over all periods
  std::vector<std::vector<Layout::Piece>> done_[2];  // by the period in which the interval began
};

}  // namespace

bool FlowLayout(const Trace& trace, const Lifetimes& life, const LinkRates& rates,
                const std::vector<int64_t>& amounts, const std::vector<bool>& copies,
                const FlowOptions& options, Layout* layout) {
  return Flow(trace, life, rates, amounts, copies, options).Run(layout);
}

}  // namespace atp::policy
