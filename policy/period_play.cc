// SPDX-License-Identifier: Apache-2.0
#include "policy/period_play.h"

#include <algorithm>
#include <cmath>

namespace atp::policy {
namespace {

constexpr double kSame = 1e-9;  // seconds; times of two periods this close are the same

}  // namespace

void PeriodPlay::Gone::push(const Job& job) {
  Line& line = lines_[job.interval];
  if (line.jobs.empty()) needed_.push({job.needed, job.interval});
  line.jobs.push_back(job);
}

void PeriodPlay::Gone::pop() {
  Line& line = lines_[needed_.top().second];
  if (++line.next < line.jobs.size()) return;
  line.jobs.clear();
  line.next = 0;
  needed_.pop();
}

PeriodPlay::PeriodPlay(const Trace& trace, const Lifetimes& life, const LinkRates& rates,
                       const std::vector<bool>& copied, int64_t memory, double turnaround)
    : trace_(trace),
      life_(life),
      copied_(copied),
      memory_(memory),
      n_(static_cast<int64_t>(trace.launches.size())),
      turnaround_(turnaround),
      clock_(rates),
      gone_(life.intervals.size()),
      beginning_(trace.launches.size()),
      missing_(2 * trace.launches.size(), 0) {
  for (uint32_t i = 0; i < life.intervals.size(); ++i) {
    beginning_[life.intervals[i].last_use].push_back(i);
  }
}

bool PeriodPlay::Play(int64_t periods, int64_t held_from, Layout* layout) {
  held_from_ = held_from;
  for (uint32_t i = 0; i < life_.intervals.size(); ++i) {
    if (static_cast<int64_t>(life_.intervals[i].next_use) >= n_) Begin(i, -1);
  }
  for (int64_t period = 0; period < periods; ++period) {
    EnterPeriod(period);
    for (int64_t k = 0; k < n_; ++k) {
      if (!RunLaunch(period * n_ + k)) return false;
    }
    if (period >= 2 && Repeats(period, layout)) return true;
  }
  return false;
}

double PeriodPlay::Earliest(int64_t launch) const {
  const int64_t period = launch / n_;
  if (period < held_from_ || launch % n_ == 0) return 0;
  return StartOf(period) + starts_[static_cast<size_t>(launch - n_)] - StartOf(period - 1);
}

bool PeriodPlay::RunLaunch(int64_t launch) {
  next_ = launch, running_ = false;
  const double earliest = Earliest(launch);
  while (true) {
    Pump();
    const bool ready = missing_[Slot(launch)] == 0 && Lacking() <= 0;
    if (ready && clock_.now() >= earliest) break;
    if (!Advance(clock_.now() < earliest ? earliest : clock_.kNever)) return false;
  }
  starts_.push_back(clock_.now());
  Enter(launch);
  running_ = true;
  const size_t at = static_cast<size_t>(launch % n_);
  const double end = clock_.now() + trace_.launches[at].seconds;
  Pump();
  while (clock_.now() < end) Advance(end), Pump();
  ends_.push_back(clock_.now());
  next_ = launch + 1, running_ = false;
  for (uint32_t i : beginning_[at]) Begin(i, launch / n_);
  return true;
}

void PeriodPlay::Evict(const Job& job) {
  if (copied_[job.interval]) return clock_.Start(Direction::kOut, job);
  Record(Direction::kOut, job, clock_.now(), clock_.now());
  Left(job);
}

void PeriodPlay::Left(const Job& job) {
  settling_.emplace_back(clock_.now() + turnaround_, job);
  GiveRoom(clock_.now());
}

void PeriodPlay::GiveRoom(double now) {
  while (!settling_.empty() && settling_.front().first <= now) {
    away_ += settling_.front().second.bytes;
    gone_.push(settling_.front().second);
    settling_.pop_front();
  }
}

void PeriodPlay::Fetch() {
  const Job job = gone_.top();
  gone_.pop();
  away_ -= job.bytes;
  clock_.Start(Direction::kIn, job);
}

bool PeriodPlay::Advance(double until) {
  if (!settling_.empty()) until = std::min(until, settling_.front().first);
  const auto done = [&](Direction direction, const Job& job, double start, double end) {
    Record(direction, job, start, end);
    if (direction == Direction::kOut) {
      Left(job);
    } else {
      --missing_[Slot(job.needed)];
    }
  };
  if (!clock_.Advance(until, done)) return false;
  GiveRoom(clock_.now());
  return true;
}

void PeriodPlay::Record(Direction direction, const Job& job, double start, double end) {
  auto& periods = done_[static_cast<int>(direction)];
  const size_t period = static_cast<size_t>(job.period + 1);
  if (periods.size() <= period) periods.resize(period + 1);
  periods[period].push_back(
      {job.interval, static_cast<Bytes>(job.offset), static_cast<Bytes>(job.bytes), start, end});
}

bool PeriodPlay::Repeats(int64_t period, Layout* layout) const {
  const double begin = StartOf(period - 1), length = StartOf(period) - begin;
  *layout = {length, {}, {}, {}, {}};
  for (int64_t k = (period - 1) * n_; k < period * n_; ++k) {
    const double start = starts_[static_cast<size_t>(k)], end = ends_[static_cast<size_t>(k)];
    if (std::abs(starts_[static_cast<size_t>(k + n_)] - start - length) > kSame) return false;
    layout->launch_start.push_back(start - begin);
    layout->launch_end.push_back(end - begin);
  }
  return Collect(Direction::kOut, period, length, &layout->out) &&
         Collect(Direction::kIn, period, length, &layout->in);
}

// The moves of the intervals that began in the period before, all of which have ended, if they ran
// like those before.
bool PeriodPlay::Collect(Direction direction, int64_t period, double length, Pieces* pieces) const {
  const auto& done = done_[static_cast<int>(direction)];
  if (done.empty()) return true;
  if (done.size() <= static_cast<size_t>(period)) return false;
  const Pieces& last = done[static_cast<size_t>(period)];
  const Pieces& before = done[static_cast<size_t>(period - 1)];
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

}  // namespace atp::policy
