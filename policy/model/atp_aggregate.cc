// SPDX-License-Identifier: Apache-2.0
#include "policy/model/atp_aggregate.h"

#include <algorithm>
#include <map>

namespace atp::policy {
namespace {

struct Choice {
  InactiveInterval interval;
  const Recomputation* recompute =
      nullptr;  // when that saves more bytes a second than the link moves
};

// Data that waits across the turn, the most bytes per second first.
std::vector<Choice> Choices(const Trace& trace, const Lifetimes& lifetimes, uint32_t turn,
                            const std::vector<Recomputation>& recomputable) {
  std::map<std::pair<uint32_t, uint32_t>, const Recomputation*> by_interval;
  for (const Recomputation& r : recomputable) by_interval[{r.tensor, r.last_use}] = &r;
  std::vector<Choice> choices;
  for (const InactiveInterval& i : lifetimes.intervals) {
    if (trace.tensors[i.tensor].global || i.last_use >= turn || i.next_use <= turn) continue;
    Choice choice{i};
    const auto found = by_interval.find({i.tensor, i.last_use});
    const bool pays = found != by_interval.end() && found->second->Efficiency() > trace.link.d2h;
    if (pays) choice.recompute = found->second;
    choices.push_back(choice);
  }
  auto efficiency = [&](const Choice& c) {
    return c.recompute != nullptr ? c.recompute->Efficiency() : trace.link.d2h;
  };
  std::stable_sort(choices.begin(), choices.end(),
                   [&](const Choice& a, const Choice& b) { return efficiency(a) > efficiency(b); });
  return choices;
}

}  // namespace

AtpPrediction PredictAtp(const Trace& trace, Bytes memory) {
  AtpPrediction p;
  const Lifetimes lifetimes = FindLifetimes(trace);
  if (lifetimes.live.empty()) return p;
  const auto peak = std::max_element(lifetimes.live.begin(), lifetimes.live.end());
  p.turn = static_cast<uint32_t>(peak - lifetimes.live.begin());
  for (uint32_t k = 0; k < trace.launches.size(); ++k) {
    (k <= p.turn ? p.forward : p.backward) += trace.launches[k].seconds;
  }
  p.excess = *peak > memory ? *peak - memory : 0;
  const double bandwidth = trace.link.d2h;
  const Bytes hidden = static_cast<Bytes>(bandwidth * p.forward);  // MS1
  RecomputeSet set(trace);
  Bytes walked = 0;
  for (const Choice& c : Choices(trace, lifetimes, p.turn, set.candidates())) {
    const bool needs_more = p.excess > hidden && walked < p.excess - hidden;
    if (needs_more) walked += c.interval.bytes;
    if (needs_more && c.recompute != nullptr && set.Add(*c.recompute)) {
      p.recompute += c.interval.bytes;
      p.recompute_seconds += c.recompute->seconds;
    } else {
      p.swappable.push_back(c.interval);
    }
  }
  p.recomputed = set.chosen();
  p.swap = p.excess - std::min(p.excess, p.recompute);
  Bytes savable = p.recompute;
  for (const InactiveInterval& i : p.swappable) savable += i.bytes;
  p.feasible = savable >= p.excess;
  const double link_seconds = double(p.swap) / bandwidth;
  p.seconds =
      std::max(link_seconds, p.forward) + std::max(link_seconds, p.backward + p.recompute_seconds);
  return p;
}

}  // namespace atp::policy
