// SPDX-License-Identifier: Apache-2.0
#include "daemon/tune_search.h"

#include <nlopt.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>

#include "policy/planner.h"
#include "policy/replay/noise.h"
#include "policy/replay/replay.h"
#include "policy/replay/uses.h"

namespace atp::daemon {
namespace {

using policy::Trace;
using protocol::Learned;
using protocol::LearnedPhase;
using protocol::Tuning;

constexpr uint64_t kGranule = 2u << 20;  // of the driver
// Larger ones would take minutes an evaluation.
constexpr size_t kMostLaunches = 1u << 15;
constexpr uint64_t kMostBlocks = 1u << 18;
// A candidate has to win by so much on average.
constexpr double kFaster = 0.003;

// How wrong predictions are: launches differ by a few per cent from period to period, and sight
// misses little once a plan has run.
constexpr policy::Noise kNoise{0.05, 0.03, 0.005, 0.01, 1, 8};

// What faults and the link may cost, as docs/sim.md has the band.
struct BandPoint {
  double faults, link;
};
constexpr BandPoint kBand[] = {{1, 1}, {0.5, 1}, {2, 1}, {1, 0.8}};

const LearnedPhase* LongestPhase(const Learned& learned) {
  const auto longest = std::max_element(
      learned.phases.begin(), learned.phases.end(),
      [](const auto& a, const auto& b) { return a.launches.size() < b.launches.size(); });
  return longest == learned.phases.end() ? nullptr : &*longest;
}

Trace TraceOf(const Learned& learned, const LearnedPhase& phase) {
  Trace trace;
  trace.device_bytes = learned.budget_bytes;
  trace.link = {learned.h2d, learned.d2h, learned.duplex_h2d, learned.duplex_d2h};
  for (const protocol::LearnedTensor& from : phase.tensors) {
    policy::Tensor tensor;
    tensor.bytes = from.length;
    trace.tensors.push_back(std::move(tensor));
  }
  for (const protocol::LearnedLaunch& from : phase.launches) {
    policy::Launch launch;
    launch.seconds = from.seconds;
    launch.reads = from.reads;
    launch.writes = from.writes;
    trace.launches.push_back(std::move(launch));
  }
  return trace;
}

// Null: it can be replayed.
const char* Unfit(const Learned& learned) {
  const LearnedPhase* phase = LongestPhase(learned);
  if (phase == nullptr) return "it has no phase";
  if (learned.budget_bytes == 0 || learned.tuning.head_room_bytes >= learned.budget_bytes) {
    return "its budget is not known";
  }
  if (learned.h2d <= 0 || learned.d2h <= 0) return "its link was not measured";
  if (phase->launches.size() > kMostLaunches) return "it has too many launches";
  uint64_t blocks = 0;
  for (const protocol::LearnedTensor& tensor : phase->tensors) {
    blocks += tensor.length / kGranule + 1;
    if (blocks > kMostBlocks) return "it has too much memory";
  }
  for (const protocol::LearnedLaunch& launch : phase->launches) {
    if (launch.seconds <= 0) return "its launches were not measured";
  }
  return nullptr;
}

double ReplayOnce(const Trace& trace, const Tuning& tuning, const policy::Noise& noise,
                  const BandPoint& point, policy::DriverCosts costs) {
  policy::PlanOptions plan_options;
  plan_options.memory = trace.device_bytes;
  plan_options.head_room = tuning.head_room_bytes;
  plan_options.duration_spread = tuning.duration_spread;
  plan_options.cpu_seconds_per_granule = tuning.call_seconds;
  plan_options.clean_leaves_free = true;
  const policy::Plan plan = policy::MakePlan(policy::Predicted(trace, noise), plan_options);
  if (!plan.feasible) return 0;
  costs.batch_seconds *= point.faults;
  costs.fault_seconds *= point.faults;
  Trace happens = policy::Happens(trace, noise);
  for (double* rate :
       {&happens.link.h2d, &happens.link.d2h, &happens.link.duplex_h2d, &happens.link.duplex_d2h}) {
    *rate *= point.link;
  }
  policy::ReplayOptions replay;
  replay.memory = trace.device_bytes;
  replay.head_room = tuning.head_room_bytes;
  replay.costs = costs;
  replay.clean_leaves_free = true;
  const policy::ReplayResult result = policy::ReplayPlan(happens, plan, replay);
  return result.completed ? result.period_seconds : 0;
}

double Mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

struct Objective {
  const Learned& learned;
  const SearchOptions& options;
  nlopt_opt optimiser = nullptr;
  unsigned evaluations = 0;

  // A point of the unit cube.
  Tuning At(const double* x) const {
    constexpr double kMostSpread = 0.3, kMostCall = 30e-6;
    const uint64_t most = std::min(4 * std::max(learned.tuning.head_room_bytes, 2 * kGranule),
                                   learned.budget_bytes / 4);
    const auto granules = std::max<uint64_t>(most / kGranule, 1);
    const auto at = static_cast<uint64_t>(x[0] * static_cast<double>(granules - 1) + 0.5);
    // Small differences in the other two mean nothing: steps keep what is found readable.
    const auto step = [](double v, double value) { return std::round(v * 6) / 6 * value; };
    return {(1 + at) * kGranule, step(x[1], kMostSpread), step(x[2], kMostCall)};
  }
  static double Value(unsigned, const double* x, double*, void* self) {
    auto* o = static_cast<Objective*>(self);
    const auto took = ReplayTuning(o->learned, o->At(x), o->options.costs, /*seed=*/1);
    ++o->evaluations;
    if (!o->options.go_on()) nlopt_force_stop(o->optimiser);
    return took.empty() ? 1e9 : Mean(took);
  }
};

std::string Said(const Tuning& tuning) {
  char text[128];
  std::snprintf(text, sizeof text, "head-room %.0f MiB, spread %.2f, call %.0f us",
                static_cast<double>(tuning.head_room_bytes) / (1 << 20), tuning.duration_spread,
                tuning.call_seconds * 1e6);
  return text;
}

// On scenarios that the search has not seen: what it found may be their luck.
void Confirm(const Learned& learned, const SearchOptions& options, const Tuning& candidate,
             Found* found) {
  std::vector<double> before, after, gains;
  for (const uint64_t seed : {101, 102, 103}) {
    const auto b = ReplayTuning(learned, learned.tuning, options.costs, seed);
    const auto a = ReplayTuning(learned, candidate, options.costs, seed);
    if (a.empty() || b.empty()) {
      found->reason = "no plan holds in every scenario";
      return;
    }
    before.insert(before.end(), b.begin(), b.end());
    after.insert(after.end(), a.begin(), a.end());
    if (!options.go_on()) return;
  }
  for (size_t i = 0; i < before.size(); ++i) gains.push_back(1 - after[i] / before[i]);
  const double gain = Mean(gains);
  double squares = 0;
  for (const double g : gains) squares += (g - gain) * (g - gain);
  const auto n = static_cast<double>(gains.size());
  const double error = std::sqrt(squares / (n - 1) / n);
  found->before_seconds = Mean(before);
  found->after_seconds = Mean(after);
  found->better = gain > kFaster && gain > 2 * error;
  if (found->better) found->tuning = candidate;
  char text[192];
  std::snprintf(text, sizeof text, "%s: replays are %.2f %% faster, +- %.2f",
                Said(candidate).c_str(), 100 * gain, 200 * error);
  found->reason = text;
}

}  // namespace

std::vector<double> ReplayTuning(const Learned& learned, const Tuning& tuning,
                                 const policy::DriverCosts& costs, uint64_t seed) {
  const LearnedPhase* phase = LongestPhase(learned);
  if (phase == nullptr || Unfit(learned) != nullptr) return {};
  const Trace trace = TraceOf(learned, *phase);
  std::vector<double> seconds;
  for (const BandPoint& point : kBand) {
    policy::Noise noise = kNoise;
    noise.seed = seed * 1000 + seconds.size();
    seconds.push_back(ReplayOnce(trace, tuning, noise, point, costs));
    if (seconds.back() <= 0) return {};
  }
  return seconds;
}

Found SearchTuning(const Learned& learned, const SearchOptions& options) {
  Found found;
  found.tuning = learned.tuning;
  if (const char* why = Unfit(learned)) {
    found.reason = why;
    return found;
  }
  Objective objective{learned, options};
  const std::unique_ptr<nlopt_opt_s, void (*)(nlopt_opt)> optimiser(
      nlopt_create(NLOPT_GN_DIRECT_L, 3), nlopt_destroy);
  objective.optimiser = optimiser.get();
  nlopt_set_lower_bounds1(optimiser.get(), 0);
  nlopt_set_upper_bounds1(optimiser.get(), 1);
  nlopt_set_min_objective(optimiser.get(), Objective::Value, &objective);
  nlopt_set_maxeval(optimiser.get(), static_cast<int>(options.evaluations));
  double x[3] = {0.5, 0, 0}, least = 0;
  const nlopt_result ended = nlopt_optimize(optimiser.get(), x, &least);
  found.evaluations = objective.evaluations;
  if (ended < 0) {
    found.reason = "the search was ended";
    return found;
  }
  const Tuning candidate = objective.At(x);
  if (candidate == learned.tuning) {
    found.reason = "nothing better than " + Said(learned.tuning);
    return found;
  }
  Confirm(learned, options, candidate, &found);
  return found;
}

}  // namespace atp::daemon
