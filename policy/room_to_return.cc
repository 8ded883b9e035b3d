// SPDX-License-Identifier: Apache-2.0
#include "policy/room_to_return.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace atp::policy {
namespace {

// Seconds of the period until a time in which a direction carries something. Asked with rising
// times.
class Busy {
 public:
  Busy(const std::vector<Layout::Piece>& pieces, double period) {
    for (const Layout::Piece& p : pieces) {
      if (p.end <= p.start) continue;
      const double start = p.start - std::floor(p.start / period) * period;
      const double end = start + (p.end - p.start);
      spans_.push_back({start, std::min(end, period)});
      if (end > period) spans_.push_back({0, end - period});
    }
    std::sort(spans_.begin(), spans_.end());
  }
  double Until(double time) {
    for (; at_ < spans_.size() && spans_[at_].second <= time; ++at_) {
      sum_ += spans_[at_].second - spans_[at_].first;
    }
    return sum_ + (at_ < spans_.size() ? std::max(0.0, time - spans_[at_].first) : 0.0);
  }

 private:
  std::vector<std::pair<double, double>> spans_;  // start, end
  size_t at_ = 0;
  double sum_ = 0;
};

// Adds `bytes` to what is needed latest of what waits from before launch `from` until after
// launch `to`; `from` may lie in the period before.
void Add(const Lifetimes& life, int64_t n, int64_t from, int64_t to, int64_t bytes,
         std::vector<int64_t>* amounts) {
  std::vector<std::pair<int64_t, size_t>> waiting;  // next use, interval
  for (size_t i = 0; i < amounts->size(); ++i) {
    const InactiveInterval& interval = life.intervals[i];
    if ((*amounts)[i] >= static_cast<int64_t>(interval.bytes)) continue;
    for (const int64_t shift : {int64_t{0}, n}) {
      const int64_t last = static_cast<int64_t>(interval.last_use) - shift;
      const int64_t next = static_cast<int64_t>(interval.next_use) - shift;
      if (last < from && next > to) waiting.push_back({next, i});
    }
  }
  std::sort(waiting.rbegin(), waiting.rend());
  for (const auto& [next, i] : waiting) {
    const int64_t here = static_cast<int64_t>(life.intervals[i].bytes) - (*amounts)[i];
    const int64_t more = std::min(bytes, here);
    (*amounts)[i] += more, bytes -= more;
    if (bytes == 0) return;
  }
}

}  // namespace

std::vector<int64_t> WithRoomToReturn(const Lifetimes& life, const LinkRates& rates,
                                      const Layout& layout, std::vector<int64_t> amounts) {
  constexpr double kLeast = 1e-5;  // of the period: shorter waits are rounding
  constexpr size_t kMost = 16;     // launches
  const int64_t n = static_cast<int64_t>(layout.launch_start.size());
  Busy in(layout.in, layout.period), out(layout.out, layout.period);
  std::vector<double> idle;                       // of the way in, from the launch before on
  std::vector<std::pair<double, int64_t>> waits;  // seconds, launch
  double before = 0, in_before = 0, out_before = 0;
  for (int64_t k = 0; k < n; ++k) {
    const double start = layout.launch_start[static_cast<size_t>(k)];
    const double end = layout.launch_end[static_cast<size_t>(k)];
    const double wait = start - before - (out.Until(start) - out_before);
    if (wait > kLeast * layout.period) waits.push_back({wait, k});
    const double in_now = in.Until(end);
    idle.push_back(std::max(0.0, end - before - (in_now - in_before)));
    before = end, in_before = in_now, out_before = out.Until(end);
  }
  if (waits.empty()) return {};
  std::sort(waits.rbegin(), waits.rend());
  if (waits.size() > kMost) waits.resize(kMost);
  for (const auto& [wait, k] : waits) {
    double lacking = wait;
    int64_t from = k;
    while (lacking > 0 && from > k - n + 1) {
      --from;
      lacking -= idle[static_cast<size_t>((from + n) % n)];
    }
    Add(life, n, from, k, static_cast<int64_t>(wait * rates.h2d), &amounts);
  }
  return amounts;
}

}  // namespace atp::policy
