// SPDX-License-Identifier: Apache-2.0
// ATP (ACM TACO 22(1), 2024): the amounts to swap and to recompute come from its throughput model
// (policy/model/atp_aggregate.h); which tensors to swap, from a genetic search whose fitness is
// 1 / (time of a period + 5 * error of the swapped amount), the time taken from a model with a ring
// of three blocks for each direction. Whole tensors. The rule alone swaps in the order in which the
// model walks the data. The recomputation is modelled, not executed.
#include <algorithm>
#include <random>

#include "policy/baselines/baseline.h"
#include "policy/baselines/whole_plan.h"
#include "policy/model/atp_aggregate.h"

namespace atp::policy {
namespace {

constexpr size_t kRing = 3;  // blocks of ATP's staging ring, each direction
constexpr double kErrorWeight = 5;
constexpr size_t kPopulation = 24;
constexpr int kGenerations = 40;

using Genes = std::vector<bool>;  // per candidate: it is swapped

class RingModel {
 public:
  RingModel(const Trace& trace, const std::vector<InactiveInterval>& candidates, Bytes target)
      : trace_(trace), candidates_(candidates), target_(target) {
    leaving_.resize(trace.launches.size());
    coming_.resize(trace.launches.size());
    for (size_t i = 0; i < candidates.size(); ++i) {
      leaving_[candidates[i].last_use].push_back(i);
      coming_[candidates[i].next_use].push_back(i);
    }
  }

  double Fitness(const Genes& genes) const {
    Bytes bytes = 0;
    for (size_t i = 0; i < genes.size(); ++i) bytes += genes[i] ? candidates_[i].bytes : 0;
    const Bytes error = bytes > target_ ? bytes - target_ : target_ - bytes;
    return 1 / (PeriodSeconds(genes) + kErrorWeight * double(error) / trace_.link.d2h);
  }

  double PeriodSeconds(const Genes& genes) const {
    double now = 0, out_free = 0, in_free = 0;
    std::vector<double> out_done, consumed, left(candidates_.size(), 0);
    for (size_t k = 0; k < trace_.launches.size(); ++k) {
      for (size_t i : coming_[k]) {
        if (!genes[i]) continue;
        const double slot = consumed.size() < kRing ? 0 : consumed[consumed.size() - kRing];
        in_free =
            std::max({in_free, slot, left[i]}) + double(candidates_[i].bytes) / trace_.link.h2d;
        now = std::max(now, in_free);
        consumed.push_back(now);
      }
      now += trace_.launches[k].seconds;
      for (size_t i : leaving_[k]) {
        if (!genes[i]) continue;
        if (out_done.size() >= kRing) now = std::max(now, out_done[out_done.size() - kRing]);
        out_free = std::max(out_free, now) + double(candidates_[i].bytes) / trace_.link.d2h;
        left[i] = out_free;
        out_done.push_back(out_free);
      }
    }
    return now;
  }

 private:
  const Trace& trace_;
  const std::vector<InactiveInterval>& candidates_;
  const Bytes target_;
  std::vector<std::vector<size_t>> leaving_, coming_;  // per launch
};

class GeneticSearch {
 public:
  GeneticSearch(const RingModel& model, size_t genes) : model_(model), genes_(genes) {}

  Genes Run(double density) {
    for (size_t i = 0; i < kPopulation; ++i) Insert(Random(density));
    for (int g = 0; g < kGenerations; ++g) {
      for (size_t i = 0; i < kPopulation; ++i) Insert(Mutated(Crossed(Pick(), Pick())));
      population_.resize(kPopulation);
    }
    return population_.front().second;
  }

 private:
  double Uniform() { return double(dice_() >> 11) * 0x1.0p-53; }
  const Genes& Pick() {  // the better of two
    const size_t a = size_t(Uniform() * double(kPopulation)),
                 b = size_t(Uniform() * double(kPopulation));
    return population_[std::min({a, b, population_.size() - 1})].second;
  }
  Genes Random(double density) {
    Genes genes(genes_);
    for (size_t i = 0; i < genes_; ++i) genes[i] = Uniform() < density;
    return genes;
  }
  Genes Crossed(const Genes& a, const Genes& b) {
    Genes child(genes_);
    for (size_t i = 0; i < genes_; ++i) child[i] = Uniform() < 0.5 ? a[i] : b[i];
    return child;
  }
  Genes Mutated(Genes genes) {
    for (size_t i = 0; i < genes_; ++i) {
      if (Uniform() < 1.0 / double(genes_)) genes[i] = !genes[i];
    }
    return genes;
  }
  void Insert(Genes genes) {
    const double fitness = model_.Fitness(genes);
    const auto at = std::find_if(population_.begin(), population_.end(),
                                 [&](const auto& other) { return other.first < fitness; });
    population_.insert(at, {fitness, std::move(genes)});
  }

  const RingModel& model_;
  const size_t genes_;
  std::mt19937_64 dice_{1};
  std::vector<std::pair<double, Genes>> population_;  // the fittest first
};

std::vector<Outing> Outings(const std::vector<InactiveInterval>& chosen) {
  std::vector<InactiveInterval> by_return = chosen;
  std::stable_sort(by_return.begin(), by_return.end(),
                   [](const auto& a, const auto& b) { return a.next_use < b.next_use; });
  std::vector<Outing> outings;
  for (size_t i = 0; i < by_return.size(); ++i) {
    const InactiveInterval& c = by_return[i];
    // Its slot of the ring is free once the one three before has been used.
    const uint32_t from = i < kRing ? c.last_use + 1 : by_return[i - kRing].next_use;
    outings.push_back(
        {c.tensor, 0, c.bytes, c.last_use, c.next_use, c.next_use - std::min(from, c.next_use)});
  }
  return outings;
}

std::pair<Trace, std::vector<uint32_t>> Again(const Trace& trace,
                                              const std::vector<Recomputation>& chosen) {
  RecomputeSet set(trace);
  for (const Recomputation& r : chosen) set.Add(r);
  Recomputed made = set.Apply();
  return {std::move(made.trace), std::move(made.new_position)};
}

std::vector<InactiveInterval> BySearch(const Trace& trace, const AtpPrediction& prediction) {
  std::vector<InactiveInterval> swapped;
  if (prediction.swap == 0 || prediction.swappable.empty()) return swapped;
  Bytes total = 0;
  for (const InactiveInterval& i : prediction.swappable) total += i.bytes;
  const RingModel model(trace, prediction.swappable, prediction.swap);
  const double density = std::min(1.0, double(prediction.swap) / double(total));
  const Genes genes = GeneticSearch(model, prediction.swappable.size()).Run(density);
  for (size_t i = 0; i < genes.size(); ++i) {
    if (genes[i]) swapped.push_back(prediction.swappable[i]);
  }
  return swapped;
}

// In the order of the rule, until the amount is reached.
std::vector<InactiveInterval> ByRule(const AtpPrediction& prediction) {
  std::vector<InactiveInterval> swapped;
  Bytes bytes = 0;
  for (const InactiveInterval& i : prediction.swappable) {
    if (bytes >= prediction.swap) break;
    bytes += i.bytes;
    swapped.push_back(i);
  }
  return swapped;
}

Policy Make(const Trace& trace, const AtpPrediction& prediction,
            std::vector<InactiveInterval> swapped) {
  auto [recomputed, position] = Again(trace, prediction.recomputed);
  for (InactiveInterval& i : swapped) {
    i.last_use = position[i.last_use];
    i.next_use = position[i.next_use];
  }
  Plan plan = PlanFromOutings(recomputed, Outings(swapped));
  return {.how = std::move(plan), .trace = std::move(recomputed)};
}

AtpPrediction Predict(const Trace& trace, const PlanOptions& options) {
  return PredictAtp(trace, options.memory != 0 ? options.memory : trace.device_bytes);
}

}  // namespace

Policy MakeAtp(const Trace& trace, const PlanOptions& options) {
  const AtpPrediction prediction = Predict(trace, options);
  return Make(trace, prediction, BySearch(trace, prediction));
}

Policy MakeAtpRule(const Trace& trace, const PlanOptions& options) {
  const AtpPrediction prediction = Predict(trace, options);
  return Make(trace, prediction, ByRule(prediction));
}

}  // namespace atp::policy
