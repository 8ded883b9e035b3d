// SPDX-License-Identifier: Apache-2.0
#include "policy/recompute_plan.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "policy/bounds.h"

namespace atp::policy {
namespace {

constexpr int kRounds = 24;
constexpr double kPart = 0.5;      // of what is lacking that is taken in a round
constexpr double kNothing = 1e-4;  // share of the period that is not worth another launch
constexpr double kGain = 1e-3;     // share of the period by which a recomputing plan must be faster

// A time in which one direction of the link never rests, up to the end of the last pause in it.
struct BusyRun {
  double start = 0, end = 0;
  double pauses = 0;  // seconds in which launches wait meanwhile
};

// Those that make launches wait.
std::vector<BusyRun> BindingRuns(const Plan& plan, const std::vector<Move>& moves) {
  constexpr double kTick = 1e-6;  // of the period: shorter rests are rounding
  const double rest = kTick * plan.period_seconds;
  std::vector<BusyRun> runs;
  for (const Move& m : moves) {  // by start
    if (!m.copies) continue;
    if (runs.empty() || m.start > runs.back().end + rest) runs.push_back({m.start, m.end, 0});
    runs.back().end = std::max(runs.back().end, m.end);
  }
  size_t r = 0;
  std::vector<double> last_pause(runs.size(), 0);
  for (size_t k = 0; k < plan.launch_start.size(); ++k) {
    const double from = k > 0 ? plan.launch_end[k - 1] : 0, to = plan.launch_start[k];
    if (to - from <= rest) continue;
    while (r < runs.size() && runs[r].end < to - rest) ++r;
    if (r == runs.size()) break;
    if (runs[r].start > to) continue;
    runs[r].pauses += to - std::max(from, runs[r].start);
    last_pause[r] = to;
  }
  for (size_t i = 0; i < runs.size(); ++i) runs[i].end = last_pause[i];
  std::erase_if(runs, [](const BusyRun& run) { return run.pauses <= 0; });
  return runs;
}

// Grows a set round by round.
class Chooser {
 public:
  Chooser(const Trace& trace, Bytes memory, bool clean_leaves_free, RecomputeSet* set)
      : trace_(trace), memory_(memory), clean_(clean_leaves_free), set_(*set) {
    taken_.resize(set_.candidates().size(), false);
  }

  // While the bound falls.
  void FollowBound() {
    const double compute = ComputeSeconds(trace_);
    for (int round = 0; round < kRounds; ++round) {
      const Recomputed now = set_.Apply();
      const TurnPoint turn = FindTurnPoint(now.trace, memory_, clean_);
      if (turn.seconds <= kNothing * compute || !Widen(now, turn)) return;
    }
  }

  // Bounds do not see all that makes a plan wait: takes what it moves while it waits.
  bool FollowPlan(const Recomputed& now, const Plan& plan) {
    bool any = false;
    for (const auto* moves : {&plan.evictions, &plan.fetches}) {
      const bool out = moves == &plan.evictions;
      const double rate = out ? trace_.link.d2h : trace_.link.h2d;
      for (const BusyRun& run : BindingRuns(plan, *moves)) {
        std::map<std::pair<uint32_t, int64_t>, Bytes> moved;  // tensor, launch of the old trace
        for (const Move& m : *moves) {
          if (m.copies && m.start >= run.start && m.start < run.end) {
            moved[{m.tensor, Old(now, m.before)}] += m.bytes;
          }
        }
        any |= Take(run.pauses * rate, rate, [&](const Recomputation& c) {
          const auto found = moved.find({c.tensor, int64_t{c.next_use}});
          return found != moved.end() && 2 * found->second > c.bytes;
        });
      }
    }
    return any;
  }

 private:
  // Of the old trace: the launch, or the one that a launch which runs again stands before.
  static int64_t Old(const Recomputed& now, int64_t position) {
    const auto& places = now.new_position;
    return std::lower_bound(places.begin(), places.end(), position) - places.begin();
  }

  bool Widen(const Recomputed& now, const TurnPoint& turn) {
    const double rate = turn.out ? trace_.link.d2h : trace_.link.h2d;
    const int64_t launch = Old(now, turn.launch);
    const int64_t first = turn.first < 0 ? 0 : Old(now, turn.first);
    const int64_t last = Old(now, turn.last);
    return Take(turn.seconds * rate, rate, [&](const Recomputation& c) {
      const bool waits = c.last_use < launch && launch < c.next_use;
      return waits && (turn.out ? c.last_use + 1 >= first : c.next_use <= last + 1);
    });
  }

  // The most efficient that help, up to a part of the bytes that are lacking.
  template <typename Helps>
  bool Take(double lacking, double rate, Helps helps) {
    bool any = false;
    lacking *= kPart;
    for (size_t i = 0; i < taken_.size() && lacking > 0; ++i) {
      const Recomputation& c = set_.candidates()[i];
      if (c.Efficiency() <= rate) break;
      if (taken_[i] || !helps(c)) continue;
      taken_[i] = true;
      if (!set_.Add(c)) continue;
      any = true;
      lacking -= static_cast<double>(c.bytes);
    }
    return any;
  }

  const Trace& trace_;
  const Bytes memory_;
  const bool clean_;
  RecomputeSet& set_;
  std::vector<bool> taken_;  // per candidate: it has been tried
};

}  // namespace

RecomputePlan BestRecompute(const Trace& trace, const PlanOptions& options,
                            const RecomputeOptions& recompute) {
  RecomputePlan best;
  best.plan = MakePlan(trace, options);
  best.made.trace = trace;
  for (uint32_t k = 0; k < trace.launches.size(); ++k) best.made.new_position.push_back(k);
  const bool link = trace.link.h2d > 0 && trace.link.d2h > 0;
  if (!link ||
      (best.plan.feasible && best.plan.stall_seconds <= kNothing * best.plan.period_seconds))
    return best;
  const Bytes total = options.memory != 0 ? options.memory : trace.device_bytes;
  RecomputeSet set(trace, recompute);
  Chooser chooser(trace, total - std::min(total, options.head_room), options.clean_leaves_free,
                  &set);
  chooser.FollowBound();
  for (int i = 1; i < kRecomputePlans; ++i) {
    if (i > 1 && !chooser.FollowPlan(best.made, best.plan)) break;
    if (set.chosen().empty()) continue;
    RecomputePlan other{set.Apply(), {}};
    other.plan = MakePlan(other.made.trace, options);
    const double must = best.plan.period_seconds * (best.made.reruns.empty() ? 1 - kGain : 1);
    if (!other.plan.feasible || (best.plan.feasible && other.plan.period_seconds > must)) break;
    best = std::move(other);
  }
  return best;
}

}  // namespace atp::policy
