// SPDX-License-Identifier: Apache-2.0
#include "tests/policy/exhaustive.h"

#include <algorithm>
#include <bit>
#include <deque>
#include <vector>

namespace atp::policy {
namespace {

using Mask = uint32_t;

struct Step {
  int seconds = 0;
  uint32_t workspace = 0;
  Mask touched = 0, born = 0, dead = 0;  // dead: ends to exist with this launch
};

std::vector<Step> Steps(const Trace& trace, Mask* written) {
  std::vector<Step> steps(trace.launches.size());
  std::vector<int> last(trace.tensors.size(), -1);
  const Bytes unit = trace.tensors.empty() ? 1 : trace.tensors[0].bytes;
  for (size_t k = 0; k < steps.size(); ++k) {
    const Launch& launch = trace.launches[k];
    steps[k].seconds = static_cast<int>(launch.seconds + 0.5);
    steps[k].workspace = static_cast<uint32_t>(launch.workspace / unit);
    Mask reads = 0, writes = 0;
    for (uint32_t t : launch.reads) reads |= 1u << t;
    for (uint32_t t : launch.writes) writes |= 1u << t;
    *written |= writes;
    steps[k].touched = reads | writes;
    for (uint32_t t = 0; t < trace.tensors.size(); ++t) {
      if ((steps[k].touched >> t & 1) == 0) continue;
      const bool overwritten = (reads >> t & 1) == 0;
      const auto& restores = launch.restores;
      const bool restored = std::find(restores.begin(), restores.end(), t) != restores.end();
      if (trace.tensors[t].global ? restored : last[t] < 0 || overwritten) {
        steps[k].born |= 1u << t;
        if (last[t] >= 0) steps[static_cast<size_t>(last[t])].dead |= 1u << t;
      }
      last[t] = static_cast<int>(k);
    }
  }
  for (uint32_t t = 0; t < trace.tensors.size(); ++t) {
    if (!trace.tensors[t].global && last[t] >= 0)
      steps[static_cast<size_t>(last[t])].dead |= 1u << t;
  }
  return steps;
}

class Search {
 public:
  Search(const Trace& trace, uint32_t blocks, bool clean_leaves_free)
      : blocks_(blocks), one_way_(HalfDuplex(trace.link)) {
    Mask written = 0;
    steps_ = Steps(trace, &written);
    for (uint32_t t = 0; t < trace.tensors.size(); ++t) {
      if (trace.tensors[t].global) globals_ |= 1u << t;
    }
    Mask used = 0;
    for (const Step& step : steps_) used |= step.touched;
    globals_ &= used;
    clean_ = clean_leaves_free ? ~written : 0;
    all_ = Mask{1} << trace.tensors.size();
    most_ = 0;
    for (const Step& step : steps_) most_ = std::max(most_, step.seconds);
  }

  std::optional<int> Best() {
    std::optional<int> best;
    for (Mask start = 0; start < all_; ++start) {
      if ((start & ~globals_) != 0 || std::popcount(start) > static_cast<int>(blocks_)) continue;
      if (const auto time = From(start); time && (!best || *time < *best)) best = time;
    }
    return best;
  }

 private:
  // A state: launch `at` runs for another `left` seconds, or is the next to start (left 0).
  size_t Index(size_t at, int left, Mask on, Mask exists) const {
    return ((at * static_cast<size_t>(most_ + 1) + static_cast<size_t>(left)) * all_ + on) * all_ +
           exists;
  }

  struct State {
    size_t at;
    int left;
    Mask on, exists;
  };

  std::optional<int> From(Mask start) {
    std::vector<int> time((steps_.size() + 1) * static_cast<size_t>(most_ + 1) * all_ * all_, -1);
    std::deque<std::pair<State, int>> queue;
    queue.push_back({{0, 0, start, globals_}, 0});
    while (!queue.empty()) {
      const auto [s, t] = queue.front();
      queue.pop_front();
      int& known = time[Index(s.at, s.left, s.on, s.exists)];
      if (known >= 0 && known <= t) continue;
      known = t;
      if (s.at == steps_.size() && s.on == start) return t;
      auto now = [&](State to) { queue.push_front({to, t}); };
      const Mask busy = s.left > 0 ? steps_[s.at].touched : 0;
      for (Mask rest = s.on & clean_ & ~busy; rest != 0; rest &= rest - 1) {
        now({s.at, s.left, s.on & ~(rest & -rest), s.exists});
      }
      if (s.left == 0 && s.at < steps_.size()) {
        const Step& step = steps_[s.at];
        const Mask needed = step.touched & ~step.born;
        if ((needed & ~s.on) == 0)
          now({s.at, step.seconds, s.on | step.born, s.exists | step.born});
      }
      OneSecond(s, busy, [&](State to) { queue.push_back({to, t + 1}); });
    }
    return std::nullopt;
  }

  // Everything that can happen on the link in the next second.
  template <typename Visit>
  void OneSecond(const State& s, Mask busy, Visit visit) const {
    const uint32_t workspace = s.left > 0 ? steps_[s.at].workspace : 0;
    const Mask may_leave = s.on & ~busy, may_come = s.exists & ~s.on;
    for (Mask out = 0, outs = may_leave;; out = outs & -outs, outs &= outs - 1) {
      for (Mask in = 0, ins = may_come;; in = ins & -ins, ins &= ins - 1) {
        const uint32_t room = static_cast<uint32_t>(std::popcount(s.on | in)) + workspace;
        const bool carries = !one_way_ || in == 0 || out == 0;
        if (room <= blocks_ && carries) {
          State to = {s.at, s.left, (s.on & ~out) | in, s.exists};
          if (s.left > 0 && --to.left == 0) {
            to.on &= ~steps_[s.at].dead;
            to.exists &= ~steps_[s.at].dead;
            ++to.at;
          }
          visit(to);
        }
        if (ins == 0) break;
      }
      if (outs == 0) break;
    }
  }

  static bool HalfDuplex(const LinkRates& link) {
    return link.duplex_h2d == link.h2d / 2 && link.duplex_d2h == link.d2h / 2;
  }

  uint32_t blocks_;
  bool one_way_;  // a second of the link carries a block in or out
  std::vector<Step> steps_;
  Mask globals_ = 0, clean_ = 0, all_ = 1;
  int most_ = 0;
};

}  // namespace

std::optional<int> ShortestPeriod(const Trace& trace, uint32_t blocks, bool clean_leaves_free) {
  return Search(trace, blocks, clean_leaves_free).Best();
}

}  // namespace atp::policy
