// SPDX-License-Identifier: Apache-2.0
// A clock with a link: one job at a time in each direction, at the rates of the duplex pair while
// both run. Used by the planner's simulations. One thread.
#pragma once

#include <algorithm>

#include "policy/link_budget.h"
#include "policy/trace.h"

namespace atp::policy {

template <typename Job>  // has `int64_t bytes`
class LinkClock {
 public:
  static constexpr double kNever = 1e300;

  explicit LinkClock(const LinkRates& rates) {
    alone_[0] = rates.h2d, alone_[1] = rates.d2h;
    both_[0] = rates.duplex_h2d > 0 ? std::min(rates.duplex_h2d, rates.h2d) : rates.h2d;
    both_[1] = rates.duplex_d2h > 0 ? std::min(rates.duplex_d2h, rates.d2h) : rates.d2h;
  }
  double now() const { return now_; }
  bool Busy(Direction direction) const { return Of(direction).busy; }
  void Start(Direction direction, const Job& job) {
    engines_[static_cast<int>(direction)] = {true, job, now_, static_cast<double>(job.bytes)};
  }
  // To the end of the next job, or to `until`; calls done(direction, job, start, end) for what has
  // ended. False when nothing would ever happen.
  template <typename Done>
  bool Advance(double until, Done done) {
    const bool both = engines_[0].busy && engines_[1].busy;
    double next = until, rate[2];
    for (int d : {0, 1}) {
      rate[d] = both ? both_[d] : alone_[d];
      if (engines_[d].busy) next = std::min(next, now_ + engines_[d].left / rate[d]);
    }
    if (next >= kNever) return false;
    const double passed = next - now_;
    now_ = next;
    for (int d : {0, 1}) {
      if (!engines_[d].busy) continue;
      engines_[d].left -= passed * rate[d];
      if (engines_[d].left > 0.5) continue;  // bytes; doubles of long runs end a little off
      engines_[d].busy = false;
      const Engine engine = engines_[d];
      done(static_cast<Direction>(d), engine.job, engine.start, now_);
    }
    return true;
  }

 private:
  struct Engine {
    bool busy = false;
    Job job{};
    double start = 0, left = 0;  // bytes
  };
  const Engine& Of(Direction direction) const { return engines_[static_cast<int>(direction)]; }

  Engine engines_[2];
  double alone_[2], both_[2], now_ = 0;
};

}  // namespace atp::policy
