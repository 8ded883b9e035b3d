// SPDX-License-Identifier: Apache-2.0
#include "policy/link_queue.h"

#include <algorithm>
#include <numeric>
#include <queue>
#include <tuple>

namespace atp::policy {
namespace {

// Walks forward through the repeating profile.
class Clock {
 public:
  explicit Clock(const RateProfile& profile) : profile_(profile) {}
  // Time at which `bytes` that start at `time` have passed; times must not go back.
  double Finish(double time, double bytes) {
    Seek(time);
    size_t at = at_;
    double base = base_;
    while (true) {
      const double end = End(at, base);
      const double can = (end - time) * profile_.rate[at];
      if (can >= bytes && profile_.rate[at] > 0) return time + bytes / profile_.rate[at];
      bytes -= can;
      time = end;
      Next(at, base);
    }
  }
  double BytesUntil(double time, double until) {
    Seek(time);
    size_t at = at_;
    double base = base_, bytes = 0;
    while (time < until) {
      const double end = std::min(End(at, base), until);
      bytes += (end - time) * profile_.rate[at];
      time = end;
      Next(at, base);
    }
    return bytes;
  }

 private:
  double End(size_t at, double base) const {
    return base + (at + 1 < profile_.from.size() ? profile_.from[at + 1] : profile_.period);
  }
  void Next(size_t& at, double& base) const {
    if (++at < profile_.from.size()) return;
    at = 0;
    base += profile_.period;
  }
  void Seek(double time) {
    while (End(at_, base_) <= time) Next(at_, base_);
  }
  const RateProfile& profile_;
  size_t at_ = 0;
  double base_ = 0;
};

// The next time after `time` in a repeating list of times, which is not empty.
class Cuts {
 public:
  Cuts(const std::vector<double>& cuts, double period) : cuts_(cuts), period_(period) {}
  double After(double time) {
    while (base_ + cuts_[at_] <= time) {
      if (++at_ == cuts_.size()) at_ = 0, base_ += period_;
    }
    return base_ + cuts_[at_];
  }

 private:
  const std::vector<double>& cuts_;
  double period_, base_ = 0;
  size_t at_ = 0;
};

struct Ready {
  int64_t order;
  uint32_t lap, job;
  Bytes done;
  bool operator<(const Ready& other) const {  // the top of the heap is the smallest
    return std::tie(order, lap, job) > std::tie(other.order, other.lap, other.job);
  }
};

Bytes PieceSize(Bytes left, double fits, const LinkQueueOptions& options) {
  const Bytes limit = std::max(options.largest, options.granule);
  Bytes want = std::min(left, limit);
  if (fits < static_cast<double>(want)) want = static_cast<Bytes>(std::max(fits, 0.0));
  if (!options.tail_first) {
    if (want == left) return left;
    const Bytes whole = want / options.granule * options.granule;
    return whole > 0 ? whole : std::min(left, options.granule);
  }
  const Bytes tail = left % options.granule;
  if (want >= tail + options.granule || (tail > 0 && want >= tail)) {
    return tail + (want - tail) / options.granule * options.granule;
  }
  return tail > 0 ? tail : options.granule;
}

}  // namespace

std::vector<LinkPiece> RunLinkQueue(const std::vector<LinkJob>& jobs, const RateProfile& profile,
                                    const std::vector<double>& cuts,
                                    const LinkQueueOptions& options) {
  double capacity = 0;  // of a whole period
  for (size_t i = 0; i < profile.from.size(); ++i) {
    const double end = i + 1 < profile.from.size() ? profile.from[i + 1] : profile.period;
    capacity += (end - profile.from[i]) * profile.rate[i];
  }
  if (!(capacity > 0)) return {};
  std::vector<uint32_t> by_release(jobs.size());
  std::iota(by_release.begin(), by_release.end(), 0u);
  std::stable_sort(by_release.begin(), by_release.end(),
                   [&](uint32_t a, uint32_t b) { return jobs[a].release < jobs[b].release; });
  std::vector<LinkPiece> pieces[2];
  Clock clock(profile);
  Cuts next_cut(cuts, profile.period);
  std::priority_queue<Ready> ready;
  double time = 0;
  size_t released = 0;  // over all laps
  size_t unfinished[2] = {jobs.size(), jobs.size()};
  const size_t laps = 3;  // the first without work left over, the second is the steady one
  while (!jobs.empty() && unfinished[1] > 0) {
    auto release_time = [&] {
      const size_t lap = released / jobs.size();
      return jobs[by_release[released % jobs.size()]].release +
             static_cast<double>(lap) * profile.period;
    };
    const double idle_before = time;
    if (ready.empty() && released < laps * jobs.size()) time = std::max(time, release_time());
    while (released < laps * jobs.size() && release_time() <= time) {
      const uint32_t lap = static_cast<uint32_t>(released / jobs.size());
      const uint32_t job = by_release[released % jobs.size()];
      // All of the first period is done before the second begins: nothing is left over.
      const bool second_begins = released == jobs.size();
      if (second_begins && unfinished[0] == 0 && idle_before <= release_time()) return pieces[0];
      ready.push({jobs[job].order + lap * options.order_period, lap, job, 0});
      ++released;
    }
    Ready top = ready.top();
    const LinkJob& job = jobs[top.job];
    double fits = static_cast<double>(std::max(options.largest, options.granule));
    if (!cuts.empty()) fits = std::min(fits, clock.BytesUntil(time, next_cut.After(time)));
    const Bytes size = PieceSize(job.bytes - top.done, fits * (1 + 1e-12), options);
    const double end = clock.Finish(time, static_cast<double>(size));
    if (top.lap < 2) {
      pieces[top.lap].push_back({job.id, top.done, size, time - top.lap * profile.period,
                                 end - top.lap * profile.period});
    }
    ready.pop();
    top.done += size;
    if (top.done < job.bytes) {
      ready.push(top);
    } else if (top.lap < 2) {
      --unfinished[top.lap];
    }
    time = end;
  }
  return pieces[1];
}

}  // namespace atp::policy
