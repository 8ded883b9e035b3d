// SPDX-License-Identifier: Apache-2.0
#include "policy/replay/noise.h"

#include <algorithm>
#include <cmath>
#include <random>

namespace atp::policy {
namespace {

// std::normal_distribution differs between standard libraries; this does not.
class Dice {
 public:
  explicit Dice(uint64_t seed) : engine_(seed) {}
  double Uniform() { return static_cast<double>(engine_() >> 11) * 0x1.0p-53; }
  uint32_t Below(size_t n) {
    return static_cast<uint32_t>(std::min<double>(Uniform() * double(n), double(n) - 1));
  }
  // Box-Muller, cut at two standard deviations.
  double Normal() {
    const double radius = std::sqrt(-2 * std::log(1 - Uniform()));
    return std::clamp(radius * std::cos(2 * M_PI * Uniform()), -2.0, 2.0);
  }

 private:
  std::mt19937_64 engine_;
};

std::vector<uint32_t> Kept(const std::vector<uint32_t>& touches, double missed, Dice* dice) {
  std::vector<uint32_t> kept;
  for (uint32_t t : touches) {
    if (dice->Uniform() >= missed) kept.push_back(t);
  }
  return kept;
}

// Which tensors are allocated at a launch: no launch reaches into what is not, and allocations and
// frees are seen, not predicted.
class Allocated {
 public:
  explicit Allocated(const Trace& trace)
      : trace_(trace), lives_(trace.tensors.size(), {trace.launches.size(), 0}) {
    for (size_t k = 0; k < trace.launches.size(); ++k) {
      for (const auto* touches : {&trace.launches[k].reads, &trace.launches[k].writes}) {
        for (uint32_t t : *touches) {
          lives_[t].first = std::min(lives_[t].first, k);
          lives_[t].second = std::max(lives_[t].second, k);
        }
      }
    }
  }
  bool At(uint32_t tensor, size_t k) const {
    return trace_.tensors[tensor].global ||
           (lives_[tensor].first <= k && k <= lives_[tensor].second);
  }

 private:
  const Trace& trace_;
  std::vector<std::pair<size_t, size_t>> lives_;
};

uint32_t FalseTensor(const Trace& trace, size_t k, uint32_t reach, Dice* dice) {
  if (reach == 0) return dice->Below(trace.tensors.size());
  const size_t n = trace.launches.size();
  const size_t step = 1 + dice->Below(reach);
  const Launch& near =
      trace.launches[dice->Uniform() < 0.5 ? (k + step) % n : (k + n - step % n) % n];
  const auto& touches = near.reads.empty() ? near.writes : near.reads;
  return touches.empty() ? dice->Below(trace.tensors.size()) : touches[dice->Below(touches.size())];
}

}  // namespace

Trace Happens(const Trace& trace, const Noise& noise) {
  Dice dice(noise.seed);
  Trace actual = trace;
  for (Launch& launch : actual.launches) {
    launch.seconds *= std::max(0.0, 1 + noise.durations * dice.Normal());
  }
  const double in = 1 + noise.bandwidth * dice.Normal(), out = 1 + noise.bandwidth * dice.Normal();
  actual.link.h2d *= in;
  actual.link.duplex_h2d *= in;
  actual.link.d2h *= out;
  actual.link.duplex_d2h *= out;
  return actual;
}

Trace Predicted(const Trace& trace, const Noise& noise) {
  Dice dice(noise.seed ^ 0x9e3779b97f4a7c15ull);
  constexpr int kDraws = 16;  // until one is allocated
  const Allocated allocated(trace);
  Trace predicted = trace;
  for (size_t k = 0; k < trace.launches.size(); ++k) {
    Launch& launch = predicted.launches[k];
    const size_t touches = launch.reads.size() + launch.writes.size();
    launch.reads = Kept(launch.reads, noise.missed, &dice);
    launch.writes = Kept(launch.writes, noise.missed, &dice);
    for (size_t i = 0; i < touches; ++i) {
      if (dice.Uniform() >= noise.false_touches) continue;
      uint32_t t = FalseTensor(trace, k, noise.false_reach, &dice);
      for (int draw = 1; draw < kDraws && !allocated.At(t, k); ++draw) {
        t = FalseTensor(trace, k, noise.false_reach, &dice);
      }
      if (!allocated.At(t, k)) continue;
      if (std::find(launch.reads.begin(), launch.reads.end(), t) == launch.reads.end()) {
        launch.reads.push_back(t);
      }
    }
  }
  return predicted;
}

}  // namespace atp::policy
