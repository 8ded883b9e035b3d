// SPDX-License-Identifier: Apache-2.0
#include "policy/timetable.h"

#include <algorithm>
#include <cmath>

#include "policy/link_queue.h"

namespace atp::policy {
namespace {

constexpr double kTick = 1e-9;  // seconds; differences below are rounding of doubles

// Cuts shares (in window order) into whole granules. A granule that spans two shares belongs to the
// one with its last byte (leaving: gone only then) or with its first (returning: room from then
// on).
struct Part {
  int64_t window;
  Bytes offset, bytes;
};
std::vector<Part> WholeGranules(Greedy::Shares shares, Bytes total, Bytes granule, bool leaving) {
  std::stable_sort(shares.begin(), shares.end(),
                   [](const auto& a, const auto& b) { return a.window < b.window; });
  std::vector<Part> parts;
  Bytes sum = 0, given = 0;
  for (const auto& share : shares) {
    sum += static_cast<Bytes>(share.bytes);
    const Bytes whole = leaving ? sum / granule * granule : (sum + granule - 1) / granule * granule;
    const Bytes until = sum >= total ? total : std::min(whole, total);
    if (until > given) parts.push_back({share.window, given, until - given});
    given = std::max(given, until);
  }
  return parts;
}

}  // namespace

Timetable::Timetable(const Trace& trace, const Lifetimes& life, Greedy& greedy,
                     const TimetableOptions& options)
    : trace_(trace), life_(life), greedy_(greedy), options_(options), n_(trace.launches.size()) {}

void Timetable::SetLaunchTimes() {
  const auto& seconds = greedy_.budget().seconds();
  start_.assign(n_, 0.0);
  end_.assign(n_, 0.0);
  cuts_.clear();
  double time = 0;
  for (size_t k = 0; k < n_; ++k) {
    start_[k] = time;
    end_[k] = time + seconds[2 * k];
    time = end_[k] + seconds[2 * k + 1];
    cuts_.push_back(start_[k]);
    if (end_[k] > start_[k] && seconds[2 * k + 1] > 0) cuts_.push_back(end_[k]);
  }
  period_ = time;
}

void Timetable::RunOut() {
  const LinkBudget& budget = greedy_.budget();
  RateProfile profile{{0.0}, {budget.Rate(Direction::kOut)}, period_};
  if (budget.coupled()) {
    profile.from.clear(), profile.rate.clear();
    double time = 0;
    for (size_t w = 0; w < 2 * n_; ++w) {
      profile.from.push_back(time);
      profile.rate.push_back(budget.PlannedRate(Direction::kOut, w));
      time += budget.seconds()[w];
    }
  }
  std::vector<LinkJob> jobs;
  std::vector<Piece> origin;  // of each job
  out_.clear();
  for (uint32_t i = 0; i < greedy_.amounts().size(); ++i) {
    const auto& amounts = greedy_.amounts()[i];
    if (amounts.bytes == 0) continue;
    const double release = end_[life_.intervals[i].last_use];
    if (!amounts.copies) {
      out_.push_back({{i, 0, static_cast<Bytes>(amounts.bytes), release, release}, 0});
      continue;
    }
    const Bytes total = static_cast<Bytes>(amounts.bytes);
    for (const Part& part : WholeGranules(amounts.out, total, options_.granule, true)) {
      jobs.push_back({release, part.window, static_cast<uint32_t>(origin.size()), part.bytes});
      origin.push_back({{i, part.offset, part.bytes, 0, 0}, part.window});
    }
  }
  LinkQueueOptions queue{options_.granule, options_.largest_move, false,
                         static_cast<int64_t>(2 * n_)};
  for (const LinkPiece& p : RunLinkQueue(jobs, profile, cuts_, queue)) {
    const Piece& job = origin[p.id];
    out_.push_back({{job.interval, job.offset + p.offset, p.bytes, p.start, p.end}, job.window});
  }
}

// In reversed time: a fetch is released by its deadline and wants to run as soon as possible.
void Timetable::RunIn() {
  const LinkBudget& budget = greedy_.budget();
  RateProfile profile{{0.0}, {budget.Rate(Direction::kIn)}, period_};
  if (budget.coupled()) {                          // what the way out, already laid out, leaves
    std::vector<std::pair<double, double>> steps;  // reversed time, change of the outgoing rate
    for (const Piece& piece : out_) {
      if (piece.end - piece.start < kTick) continue;
      const double rate = static_cast<double>(piece.bytes) / (piece.end - piece.start);
      double a = WrapInto(piece.start), b = a + (piece.end - piece.start);
      auto add = [&](double from, double to) {
        steps.push_back({period_ - to, rate});
        steps.push_back({period_ - from, -rate});
      };
      add(a, std::min(b, period_));
      if (b > period_) add(0, b - period_);
    }
    std::sort(steps.begin(), steps.end());
    double out_rate = 0;
    profile.rate[0] = budget.RateBeside(Direction::kIn, 0);
    for (const auto& [time, change] : steps) {
      out_rate = std::max(0.0, out_rate + change);
      const double rate = budget.RateBeside(Direction::kIn, out_rate);
      if (time <= profile.from.back() + kTick) {
        profile.rate.back() = rate;
      } else if (time < period_) {
        profile.from.push_back(time), profile.rate.push_back(rate);
      }
    }
  }
  std::vector<LinkJob> jobs;
  std::vector<Piece> origin;
  for (uint32_t i = 0; i < greedy_.amounts().size(); ++i) {
    const auto& amounts = greedy_.amounts()[i];
    const size_t next = life_.intervals[i].next_use;
    const int64_t shift = next >= n_ ? static_cast<int64_t>(2 * n_) : 0;
    const Bytes total = static_cast<Bytes>(amounts.bytes);
    for (const Part& part : WholeGranules(amounts.in, total, options_.granule, false)) {
      jobs.push_back({period_ - start_[next % n_], shift - part.window,
                      static_cast<uint32_t>(origin.size()), part.bytes});
      origin.push_back({{i, part.offset, part.bytes, 0, 0}, part.window});
    }
  }
  std::vector<double> cuts;
  for (size_t c = cuts_.size(); c-- > 0;) cuts.push_back(period_ - cuts_[c]);
  LinkQueueOptions queue{options_.granule, options_.largest_move, true,
                         static_cast<int64_t>(2 * n_)};
  in_.clear();
  for (const LinkPiece& p : RunLinkQueue(jobs, profile, cuts, queue)) {
    const Piece& job = origin[p.id];
    const double base = life_.intervals[job.interval].next_use >= n_ ? 2 * period_ : period_;
    const Bytes begin = job.offset + job.bytes - p.offset - p.bytes;
    in_.push_back({{job.interval, begin, p.bytes, base - p.end, base - p.start}, job.window});
  }
  std::reverse(in_.begin(), in_.end());
}

double Timetable::WrapInto(double time) const {
  time = std::fmod(time, period_);
  return time < 0 ? time + period_ : time;
}

// The pause at or after a time: the first one in which waiting would help.
size_t Timetable::PauseAfter(double time) const {
  const double t = WrapInto(time);
  const size_t k = static_cast<size_t>(std::upper_bound(start_.begin(), start_.end(), t + kTick) -
                                       start_.begin());
  return k == 0 ? n_ - 1 : k - 1;
}

void Timetable::Lengthen(size_t pause, double seconds) {
  added_[pause] = std::max(added_[pause], seconds);
}

// Per launch, the bytes that began to return before it though they were meant to after it.
std::vector<Bytes> Timetable::ReturnedEarly() const {
  std::vector<Bytes> early(n_, 0);
  for (const Piece& p : in_) {
    const double laps = std::floor(p.start / period_), within = p.start - laps * period_;
    size_t k = static_cast<size_t>(std::upper_bound(start_.begin(), start_.end(), within + kTick) -
                                   start_.begin());
    const int64_t base = static_cast<int64_t>(laps) * static_cast<int64_t>(2 * n_);
    for (; base + static_cast<int64_t>(2 * k) < p.window; ++k) early[k % n_] += p.bytes;
  }
  return early;
}

// Memory at each launch and at the start of each fetch. Room counts from there to the end of the
// eviction, so what is away at a time is what has left before it less what has begun to return.
bool Timetable::RepairRoom() {
  struct Event {
    double time;
    int64_t away;  // change
  };
  std::vector<Event> events;
  events.reserve(out_.size() + in_.size());
  int64_t away = 0;  // just before time 0; a time t stands for t + j * period
  auto add = [&](double time, int64_t change) {
    double periods = std::floor(time / period_);
    double wrapped = time - periods * period_;
    if (period_ - wrapped < kTick) wrapped = 0, periods += 1;
    away -= static_cast<int64_t>(periods) * change;
    events.push_back({wrapped + (change > 0 ? -kTick : kTick), change});
  };
  for (const Piece& p : out_) add(p.end, static_cast<int64_t>(p.bytes));
  for (const Piece& p : in_) add(p.start, -static_cast<int64_t>(p.bytes));
  std::sort(events.begin(), events.end(),
            [](const Event& a, const Event& b) { return a.time < b.time; });
  const std::vector<Bytes> early = ReturnedEarly();
  bool fits = true;
  auto check = [&](Bytes live, size_t pause) {
    const int64_t over = static_cast<int64_t>(live) - away - options_.memory;
    if (over <= 0) return;
    fits = false;
    Lengthen(pause, static_cast<double>(over) / greedy_.budget().Rate(Direction::kOut));
  };
  auto check_start = [&](size_t k) {
    const int64_t over = static_cast<int64_t>(life_.live[k]) - away - options_.memory;
    const int64_t returned = std::min(over, static_cast<int64_t>(early[k]));
    if (returned > 0) {
      fits = false;
      Lengthen(k, static_cast<double>(returned) / greedy_.budget().Rate(Direction::kIn));
    }
    if (over > returned) check(life_.live[k], k == 0 ? n_ - 1 : k - 1);
  };
  size_t next = 0;
  auto play = [&](double until, Bytes live, size_t pause) {
    for (; next < events.size() && events[next].time < until; ++next) {
      away += events[next].away;
      if (events[next].away < 0) check(live, pause);
    }
  };
  play(0, 0, n_ - 1);  // what has left by time 0
  for (size_t k = 0; k < n_; ++k) {
    check_start(k);
    play(end_[k], life_.live[k], k);
    play(k + 1 < n_ ? start_[k + 1] : period_ + 1, life_.live_after[k], k);
  }
  return fits;
}

// No byte returns before it has left.
bool Timetable::RepairOrder() {
  std::vector<std::vector<uint32_t>> out(life_.intervals.size()), in(life_.intervals.size());
  for (uint32_t p = 0; p < out_.size(); ++p) out[out_[p].interval].push_back(p);
  for (uint32_t p = 0; p < in_.size(); ++p) in[in_[p].interval].push_back(p);
  bool ordered = true;
  for (uint32_t i = 0; i < in.size(); ++i) {
    if (in[i].empty()) continue;
    std::sort(out[i].begin(), out[i].end(),
              [&](uint32_t a, uint32_t b) { return out_[a].offset < out_[b].offset; });
    std::sort(in[i].begin(), in[i].end(),
              [&](uint32_t a, uint32_t b) { return in_[a].offset < in_[b].offset; });
    size_t o = 0;
    for (uint32_t p : in[i]) {
      const Piece& back = in_[p];
      while (o < out[i].size() && out_[out[i][o]].offset + out_[out[i][o]].bytes <= back.offset)
        ++o;
      for (size_t j = o; j < out[i].size() && out_[out[i][j]].offset < back.offset + back.bytes;
           ++j) {
        const double late = out_[out[i][j]].end - back.start;
        if (late <= kTick) continue;
        ordered = false;
        Lengthen(PauseAfter(back.start), late);
      }
    }
  }
  return ordered;
}

// The steady state was reached: moves of one period do not run into those of the next.
bool Timetable::RepairOverlap(const std::vector<Piece>& pieces) {
  double first = period_ * 4, last = 0;
  std::vector<std::pair<double, double>> busy;
  for (const Piece& p : pieces) {
    if (p.end <= p.start) continue;  // left without a copy
    const double start = WrapInto(p.start), end = start + (p.end - p.start);
    busy.push_back({start, end});
    first = std::min(first, start);
    last = std::max(last, end);
  }
  std::sort(busy.begin(), busy.end());
  double late = last - period_ - first;
  for (size_t i = 1; i < busy.size(); ++i) {
    late = std::max(late, busy[i - 1].second - busy[i].first);
  }
  if (late <= kTick) return true;
  Lengthen(n_ - 1, late);
  return false;
}

bool Timetable::Complete() const {
  int64_t planned = 0, out = 0, in = 0;
  for (const auto& amounts : greedy_.amounts()) planned += amounts.bytes;
  for (const Piece& p : out_) out += static_cast<int64_t>(p.bytes);
  for (const Piece& p : in_) in += static_cast<int64_t>(p.bytes);
  return out == planned && in == planned;
}

Layout Timetable::layout() const {
  return {period_, start_, end_, {out_.begin(), out_.end()}, {in_.begin(), in_.end()}};
}

bool Timetable::Build(int rounds, const std::function<bool(size_t)>& go_on) {
  for (int round = 0; round < rounds; ++round) {
    SetLaunchTimes();
    RunOut();
    RunIn();
    if (!Complete()) return false;
    added_.assign(n_, 0.0);
    const bool room = RepairRoom(), order = RepairOrder();
    const bool steady = RepairOverlap(out_) && RepairOverlap(in_);
    const bool more = go_on(out_.size() + in_.size());
    if (room && order && steady) return true;
    if (!more) return false;
    for (size_t k = 0; k < n_; ++k) {
      if (added_[k] > 0) greedy_.budget().Lengthen(static_cast<int64_t>(2 * k + 1), added_[k]);
    }
  }
  return false;
}

}  // namespace atp::policy
