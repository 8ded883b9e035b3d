// SPDX-License-Identifier: Apache-2.0
#include "policy/validate.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <queue>
#include <utility>

namespace atp::policy {
namespace {

// Byte ranges of one tensor.
class RangeSet {
 public:
  Bytes Overlap(Bytes begin, Bytes end) const {
    Bytes sum = 0;
    for (auto it = First(begin); it != ranges_.end() && it->first < end; ++it) {
      const Bytes from = std::max(begin, it->first), to = std::min(end, it->second);
      if (from < to) sum += to - from;
    }
    return sum;
  }
  void Insert(Bytes begin, Bytes end) {
    if (begin >= end) return;
    for (auto it = First(begin); it != ranges_.end() && it->first <= end;) {
      begin = std::min(begin, it->first), end = std::max(end, it->second);
      it = ranges_.erase(it);
    }
    ranges_[begin] = end;
  }
  void Erase(Bytes begin, Bytes end) {
    for (auto it = First(begin); it != ranges_.end() && it->first < end;) {
      const auto [from, to] = *it;
      it = ranges_.erase(it);
      if (from < begin) ranges_[from] = begin;
      if (to > end) it = std::next(ranges_.emplace(end, to).first);
    }
  }
  bool operator==(const RangeSet& other) const { return ranges_ == other.ranges_; }

 private:
  // The first range that ends at or after `begin`.
  std::map<Bytes, Bytes>::const_iterator First(Bytes begin) const {
    auto it = ranges_.upper_bound(begin);
    if (it != ranges_.begin() && std::prev(it)->second >= begin) --it;
    return it;
  }
  std::map<Bytes, Bytes> ranges_;
};

class Validator {
 public:
  Validator(const Trace& trace, const Schedule& schedule, const ValidateOptions& options)
      : trace_(trace),
        schedule_(schedule),
        options_(options),
        memory_(options.memory > 0 ? options.memory : trace.device_bytes),
        period_(schedule.period_seconds) {}

  std::vector<std::string> Run() {
    CheckShape();
    if (!problems_.empty()) return problems_;  // the rest relies on it
    CollectUses();
    CheckLaunchTimes();
    CheckRate(Schedule::Kind::kD2h, trace_.link.d2h, "d2h");
    CheckRate(Schedule::Kind::kH2d, trace_.link.h2d, "h2d");
    CheckCoupling();
    CheckUseInMotion();
    Play();
    return problems_;
  }

 private:
  void Problem(std::string text) {
    if (problems_.size() < options_.most_problems) problems_.push_back(std::move(text));
  }
  std::string LaunchName(uint32_t k) const {
    return "launch " + std::to_string(k) + " (" + trace_.launches[k].name + ")";
  }
  std::string MoveName(const Schedule::Move& m) const {
    const char* kind = m.kind == Schedule::Kind::kD2h   ? "d2h"
                       : m.kind == Schedule::Kind::kH2d ? "h2d"
                                                        : "discard";
    return std::string(kind) + " of tensor " + trace_.tensors[m.tensor].id + " [" +
           std::to_string(m.offset) + ", " + std::to_string(m.offset + m.bytes) + ") at " +
           std::to_string(m.start) + " s";
  }

  void CheckShape() {
    if (!std::isfinite(period_) || period_ < 0) Problem("the period is no time");
    if (schedule_.launches.size() != trace_.launches.size()) {
      Problem("the schedule has " + std::to_string(schedule_.launches.size()) +
              " launches, the trace " + std::to_string(trace_.launches.size()));
    }
    for (uint32_t k = 0; k < schedule_.launches.size(); ++k) {
      if (schedule_.launches[k].launch != k) Problem("launches are not in the trace's order");
    }
    auto in_tensor = [&](uint32_t tensor, Bytes offset, Bytes bytes) {
      return tensor < trace_.tensors.size() && offset <= trace_.tensors[tensor].bytes &&
             bytes <= trace_.tensors[tensor].bytes - offset;
    };
    for (const auto& m : schedule_.moves) {
      if (!in_tensor(m.tensor, m.offset, m.bytes)) {
        Problem("a move lies outside tensor " + std::to_string(m.tensor));
      } else if (!(m.start >= 0 && m.start <= period_ && m.end >= m.start &&
                   m.end <= m.start + period_ + options_.tolerance_seconds)) {
        Problem(MoveName(m) + " has impossible times");
      }
    }
    for (const auto& p : schedule_.initial) {
      if (!in_tensor(p.tensor, p.offset, p.bytes)) {
        Problem("an initial piece lies outside tensor " + std::to_string(p.tensor));
      }
    }
    for (const Launch& launch : trace_.launches) {
      for (const auto* list : {&launch.reads, &launch.writes}) {
        for (uint32_t t : *list) {
          if (t >= trace_.tensors.size()) Problem("the trace names a tensor it does not have");
        }
      }
    }
  }

  // What a launch does to the tensors it touches, and where tensors are born and die.
  void CollectUses() {
    touches_.resize(trace_.launches.size());
    written_.assign(trace_.tensors.size(), false);
    std::vector<uint32_t> previous(trace_.tensors.size(), kNone);  // launch of the last use so far
    for (uint32_t k = 0; k < trace_.launches.size(); ++k) {
      auto& list = touches_[k];
      for (uint32_t t : trace_.launches[k].reads) list[t].reads = true;
      for (uint32_t t : trace_.launches[k].writes) list[t].writes = true, written_[t] = true;
      const auto& restores = trace_.launches[k].restores;
      for (auto& [t, touch] : list) {
        const bool overwrites = touch.writes && !touch.reads;
        const bool restored = std::find(restores.begin(), restores.end(), t) != restores.end();
        touch.born = trace_.tensors[t].global ? restored && previous[t] != kNone
                                              : previous[t] == kNone || overwrites;
        if (touch.born && previous[t] != kNone) touches_[previous[t]][t].dies = true;
        previous[t] = k;
      }
    }
    for (uint32_t t = 0; t < previous.size(); ++t) {
      if (previous[t] != kNone && !trace_.tensors[t].global) touches_[previous[t]][t].dies = true;
    }
  }

  void CheckLaunchTimes() {
    const double eps = options_.tolerance_seconds;
    double free = 0;
    for (uint32_t k = 0; k < schedule_.launches.size(); ++k) {
      const auto& time = schedule_.launches[k];
      if (time.start < free - eps) Problem(LaunchName(k) + " starts before the one before it ends");
      if (time.end - time.start < trace_.launches[k].seconds - eps) {
        Problem(LaunchName(k) + " is given less than its duration");
      }
      free = time.end;
    }
    if (free > period_ + eps) Problem("the last launch ends after the period");
  }

  // Earliest deadline first is optimal for one machine with interruptions: if it fails, nothing
  // works.
  void CheckRate(Schedule::Kind kind, double rate, const char* name) {
    struct Job {
      double start, end, seconds;
      size_t move;
    };
    std::vector<Job> jobs;
    for (int lap = 0; lap < 3; ++lap) {
      for (size_t i = 0; i < schedule_.moves.size(); ++i) {
        const auto& m = schedule_.moves[i];
        if (m.kind != kind || m.bytes == 0) continue;
        const double shift = lap * period_;
        jobs.push_back({m.start + shift, m.end + shift, static_cast<double>(m.bytes) / rate, i});
      }
    }
    if (jobs.empty()) return;
    if (!(rate > 0)) return Problem(std::string("moves ") + name + " over a link without a rate");
    std::stable_sort(jobs.begin(), jobs.end(),
                     [](const Job& a, const Job& b) { return a.start < b.start; });
    auto later = [&](size_t a, size_t b) { return jobs[a].end > jobs[b].end; };
    std::priority_queue<size_t, std::vector<size_t>, decltype(later)> ready(later);
    double time = 0;
    for (size_t next = 0; next < jobs.size() || !ready.empty();) {
      if (ready.empty()) time = std::max(time, jobs[next].start);
      while (next < jobs.size() && jobs[next].start <= time) ready.push(next++);
      Job& job = jobs[ready.top()];
      const double until = next < jobs.size() ? jobs[next].start : job.end + job.seconds + period_;
      const double step = std::min(job.seconds, until - time);
      time += step;
      job.seconds -= step;
      if (job.seconds > 1e-15) continue;
      if (time > job.end + options_.tolerance_seconds) {
        return Problem(std::string("the link cannot carry all ") + name +
                       " in time: " + MoveName(schedule_.moves[job.move]) + " is late by " +
                       std::to_string((time - job.end) * 1e6) + " us");
      }
      ready.pop();
    }
  }

  // With a duplex pair: in every row of launches, bytes as if spread evenly over each move, the two
  // directions stay in the region that the two corners span, up to two moves at the rim.
  void CheckCoupling() {
    const LinkRates& link = trace_.link;
    if (!(link.duplex_h2d > 0 && link.duplex_d2h > 0) || schedule_.launches.empty()) return;
    const double both_in = std::min(link.duplex_h2d, link.h2d);
    const double both_out = std::min(link.duplex_d2h, link.d2h);
    const double b1 = (1 - both_in / link.h2d) / both_out, b2 = (1 - both_out / link.d2h) / both_in;
    const size_t n = schedule_.launches.size();
    std::vector<double> in(n, 0), out(n, 0);
    Bytes largest = 0;
    for (const auto& m : schedule_.moves) {
      if (m.kind == Schedule::Kind::kDiscard || m.end <= m.start) continue;
      largest = std::max(largest, m.bytes);
      auto& sums = m.kind == Schedule::Kind::kH2d ? in : out;
      for (size_t k = FirstAfter(m.start);; ++k) {
        const double base = period_ * static_cast<double>(k / n);
        const double from = base + schedule_.launches[k % n].start;
        const double to =
            k % n + 1 < n ? base + schedule_.launches[k % n + 1].start : base + period_;
        if (from >= m.end) break;
        const double shared = std::min(to, m.end) - std::max(from, m.start);
        sums[k % n] += std::max(shared, 0.0) / (m.end - m.start) * static_cast<double>(m.bytes);
      }
    }
    const double rim = 2 * static_cast<double>(largest) * (1 / both_in + 1 / both_out);
    double first = 0, second = 0;  // worst excess of a row that ends at the launch
    for (uint32_t i = 0; i < 2 * n; ++i) {
      const uint32_t k = i % static_cast<uint32_t>(n);
      const double to = k + 1 < n ? schedule_.launches[k + 1].start : period_;
      const double span = to - schedule_.launches[k].start;
      first = std::max(first, 0.0) + in[k] / link.h2d + out[k] * b1 - span;
      second = std::max(second, 0.0) + out[k] / link.d2h + in[k] * b2 - span;
      if (std::max(first, second) > rim) {
        return Problem("both directions together carry too much before the end of " +
                       LaunchName(k));
      }
    }
  }
  // The launch that runs at a time or before it.
  size_t FirstAfter(double time) const {
    const auto it = std::upper_bound(schedule_.launches.begin(), schedule_.launches.end(), time,
                                     [](double t, const auto& launch) { return t < launch.start; });
    return it == schedule_.launches.begin()
               ? 0
               : static_cast<size_t>(it - schedule_.launches.begin()) - 1;
  }

  void CheckUseInMotion() {
    const size_t n = schedule_.launches.size();
    const double eps = options_.tolerance_seconds;
    for (const auto& m : schedule_.moves) {
      for (size_t k = n == 0 ? 1 : FirstAfter(m.start); n > 0; ++k) {
        const double base = period_ * static_cast<double>(k / n);
        const auto& time = schedule_.launches[k % n];
        if (base + time.start >= m.end - eps || k >= 3 * n) break;
        const bool overlaps = base + time.end > m.start + eps;
        if (overlaps && touches_[k % n].contains(m.tensor)) {
          Problem(MoveName(m) + " is under way while " + LaunchName(static_cast<uint32_t>(k % n)) +
                  " uses it");
        }
      }
    }
  }

  enum class Step { kFree, kArrive, kTake };  // order of what happens at one time
  struct Event {
    double time;
    Step step;
    uint32_t index;
    bool is_launch;
  };

  void Play() {
    resident_.resize(trace_.tensors.size());
    taken_.assign(schedule_.moves.size(), false);
    for (const auto& p : schedule_.initial) Hold(p.tensor, p.offset, p.offset + p.bytes, nullptr);
    std::vector<Event> events;
    for (uint32_t k = 0; k < schedule_.launches.size(); ++k) {
      events.push_back({schedule_.launches[k].start, Step::kTake, k, true});
      events.push_back({schedule_.launches[k].end, Step::kFree, k, true});
    }
    for (uint32_t i = 0; i < schedule_.moves.size(); ++i) {
      const auto& m = schedule_.moves[i];
      const bool in = m.kind == Schedule::Kind::kH2d;
      const bool wraps = m.end > period_ + options_.tolerance_seconds;
      if (wraps && in) in_flight_ += m.bytes;  // since the period before
      events.push_back(
          {wraps ? m.end - period_ : m.end, in ? Step::kArrive : Step::kFree, i, false});
      if (in) events.push_back({m.start, Step::kTake, i, false});
    }
    const RangeSets at_start = resident_;
    CheckMemory("at the start of the period");
    const double eps = options_.tolerance_seconds;
    auto key = [&](const Event& e) { return e.time + static_cast<double>(e.step) * eps; };
    std::stable_sort(events.begin(), events.end(),
                     [&](const Event& a, const Event& b) { return key(a) < key(b); });
    for (const Event& event : events) {
      event.is_launch ? PlayLaunch(event.index, event.step) : PlayMove(event.index, event.step);
    }
    for (uint32_t t = 0; t < resident_.size(); ++t) {
      if (!(resident_[t] == at_start[t])) {
        Problem("tensor " + trace_.tensors[t].id + " does not end where it began");
      }
    }
  }

  void PlayLaunch(uint32_t k, Step step) {
    const Bytes workspace = trace_.launches[k].workspace;
    if (step == Step::kFree) {
      workspace_ -= workspace;
      for (const auto& [t, touch] : touches_[k]) {
        if (touch.dies) Release(t, 0, trace_.tensors[t].bytes);
      }
      return;
    }
    workspace_ += workspace;
    for (const auto& [t, touch] : touches_[k]) {
      const Bytes size = trace_.tensors[t].bytes;
      if (touch.born) {
        Hold(t, 0, size, nullptr);
      } else if (resident_[t].Overlap(0, size) != size) {
        Problem(LaunchName(k) + " does not find tensor " + trace_.tensors[t].id + ": " +
                std::to_string(size - resident_[t].Overlap(0, size)) + " bytes are away");
      }
    }
    CheckMemory("at " + LaunchName(k));
  }

  void PlayMove(uint32_t i, Step step) {
    const auto& m = schedule_.moves[i];
    const Bytes end = m.offset + m.bytes;
    // A move shorter than the tolerance may seem to arrive before it starts.
    const bool wraps = m.end > period_ + options_.tolerance_seconds;
    if (step == Step::kArrive && !wraps && !taken_[i]) PlayMove(i, Step::kTake);
    if (step == Step::kTake) {
      if (taken_[i]) return;
      taken_[i] = true;
      in_flight_ += m.bytes;
      if (resident_[m.tensor].Overlap(m.offset, end) != 0) {
        Problem(MoveName(m) + " fetches what is on the device");
      }
      CheckMemory("at the " + MoveName(m));
    } else if (step == Step::kArrive) {
      in_flight_ -= m.bytes;
      Hold(m.tensor, m.offset, end, &m);
    } else {
      if (resident_[m.tensor].Overlap(m.offset, end) != m.bytes) {
        Problem(MoveName(m) + " moves what is not on the device");
      }
      if (m.kind == Schedule::Kind::kDiscard && written_[m.tensor]) {
        Problem(MoveName(m) + " discards what is alive");
      }
      Release(m.tensor, m.offset, end);
    }
  }

  void Hold(uint32_t t, Bytes begin, Bytes end, const Schedule::Move* move) {
    const Bytes already = resident_[t].Overlap(begin, end);
    if (already > 0 && move != nullptr) Problem(MoveName(*move) + " arrives twice");
    resident_[t].Insert(begin, end);
    resident_bytes_ += end - begin - already;
  }
  void Release(uint32_t t, Bytes begin, Bytes end) {
    resident_bytes_ -= resident_[t].Overlap(begin, end);
    resident_[t].Erase(begin, end);
  }
  void CheckMemory(const std::string& when) {
    const Bytes used = resident_bytes_ + in_flight_ + workspace_;
    if (used <= memory_) return;
    Problem("memory is exceeded by " + std::to_string(used - memory_) + " bytes " + when);
  }

  static constexpr uint32_t kNone = ~0u;
  struct Touch {
    bool reads = false, writes = false;
    bool born = false, dies = false;  // begins or ends to exist with this launch
  };
  using RangeSets = std::vector<RangeSet>;

  const Trace& trace_;
  const Schedule& schedule_;
  const ValidateOptions& options_;
  const Bytes memory_;
  const double period_;
  std::vector<std::string> problems_;
  std::vector<std::map<uint32_t, Touch>> touches_;
  std::vector<bool> written_;
  RangeSets resident_;
  std::vector<bool> taken_;  // per move: its room has been taken
  Bytes resident_bytes_ = 0, in_flight_ = 0, workspace_ = 0;
};

}  // namespace

std::vector<std::string> Validate(const Trace& trace, const Schedule& schedule,
                                  const ValidateOptions& options) {
  return Validator(trace, schedule, options).Run();
}

}  // namespace atp::policy
