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

policy::Bytes HeadRoomOf(const Tuning& tuning) {
  return tuning.head_room_bytes == protocol::kNoHeadRoom ? 0 : tuning.head_room_bytes;
}

// Null: it can be replayed.
const char* Unfit(const Learned& learned) {
  const LearnedPhase* phase = LongestPhase(learned);
  if (phase == nullptr) return "it has no phase";
  if (learned.budget_bytes == 0 || HeadRoomOf(learned.tuning) >= learned.budget_bytes) {
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

void Scale(policy::LinkRates* link, double by) {
  for (double* rate : {&link->h2d, &link->d2h, &link->duplex_h2d, &link->duplex_d2h}) *rate *= by;
}

policy::Plan PlanBy(const Tuning& tuning, Trace predicted) {
  policy::PlanOptions options;
  options.memory = predicted.device_bytes;
  options.head_room = HeadRoomOf(tuning);
  options.duration_spread = tuning.duration_spread;
  options.cpu_seconds_per_granule = tuning.call_seconds;
  options.clean_leaves_free = true;
  options.turnaround_seconds = protocol::kTurnaroundSeconds;
  if (tuning.link_scale > 0) Scale(&predicted.link, tuning.link_scale);
  return policy::MakePlan(predicted, options);
}

// The shim's movers keep to the order of a plan's moves, not to its times.
bool SameMoves(const policy::Plan& a, const policy::Plan& b) {
  const auto same = [](const policy::Move& x, const policy::Move& y) {
    return x.tensor == y.tensor && x.offset == y.offset && x.bytes == y.bytes &&
           x.after == y.after && x.before == y.before;
  };
  const auto equal = [&](const std::vector<policy::Move>& x, const std::vector<policy::Move>& y) {
    return std::equal(x.begin(), x.end(), y.begin(), y.end(), same);
  };
  return equal(a.evictions, b.evictions) && equal(a.fetches, b.fetches);
}

double ReplayOnce(const Trace& trace, const Tuning& tuning, const policy::Noise& noise,
                  const BandPoint& point, policy::DriverCosts costs) {
  const policy::Plan plan = PlanBy(tuning, policy::Predicted(trace, noise));
  if (!plan.feasible) return 0;
  costs.batch_seconds *= point.faults;
  costs.fault_seconds *= point.faults;
  Trace happens = policy::Happens(trace, noise);
  Scale(&happens.link, point.link);
  policy::ReplayOptions replay;
  replay.memory = trace.device_bytes;
  replay.head_room = HeadRoomOf(tuning);
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
  struct Seen {
    Tuning tuning;
    double seconds;
  };
  std::vector<Seen> seen;
  unsigned evaluations = 0;

  // A point of the unit cube. Small differences mean nothing: steps keep what is found readable.
  Tuning At(const double* x) const {
    constexpr double kMostSpread = 0.3, kMostCall = 30e-6, kMostScale = 2;
    const uint64_t most =
        std::min(2 * std::max(HeadRoomOf(learned.tuning), 2 * kGranule), learned.budget_bytes / 4);
    const auto step = [](double v, double steps) { return std::round(v * steps) / steps; };
    Tuning tuning;
    tuning.head_room_bytes = static_cast<uint64_t>(step(x[0], 8) * static_cast<double>(most));
    if (tuning.head_room_bytes == 0) tuning.head_room_bytes = protocol::kNoHeadRoom;
    tuning.link_scale = 1 + step(x[1], 4) * (kMostScale - 1);
    if (tuning.link_scale == 1) tuning.link_scale = 0;
    tuning.duration_spread = step(x[2], 6) * kMostSpread;
    tuning.call_seconds = step(x[3], 6) * kMostCall;
    return tuning;
  }
  static double Value(unsigned, const double* x, double*, void* self) {
    auto* o = static_cast<Objective*>(self);
    const Tuning tuning = o->At(x);
    const auto known = std::find_if(o->seen.begin(), o->seen.end(),
                                    [&](const Seen& one) { return one.tuning == tuning; });
    if (known != o->seen.end()) return known->seconds;
    const auto took = ReplayTuning(o->learned, tuning, o->options.costs, /*seed=*/1);
    o->seen.push_back({tuning, took.empty() ? 1e9 : Mean(took)});
    ++o->evaluations;
    if (!o->options.go_on()) nlopt_force_stop(o->optimiser);
    return o->seen.back().seconds;
  }
};

std::string Said(const Tuning& tuning) {
  char text[128];
  std::snprintf(text, sizeof text, "head-room %.4g MiB, link x %.2f, spread %.2f, call %.0f us",
                static_cast<double>(HeadRoomOf(tuning)) / (1 << 20),
                tuning.link_scale > 0 ? tuning.link_scale : 1, tuning.duration_spread,
                tuning.call_seconds * 1e6);
  return text;
}

// How much faster than those in force on scenarios that the search has not seen: what it found may
// be their luck. 0: it does not win by more than they differ.
double Gain(const Learned& learned, const SearchOptions& options, const Tuning& candidate,
            double* before_seconds, double* after_seconds) {
  std::vector<double> before, after, gains;
  for (const uint64_t seed : {101, 102, 103}) {
    const auto b = ReplayTuning(learned, learned.tuning, options.costs, seed);
    const auto a = ReplayTuning(learned, candidate, options.costs, seed);
    if (a.empty() || b.empty() || !options.go_on()) return 0;  // no plan in every scenario
    before.insert(before.end(), b.begin(), b.end());
    after.insert(after.end(), a.begin(), a.end());
  }
  for (size_t i = 0; i < before.size(); ++i) gains.push_back(1 - after[i] / before[i]);
  const double gain = Mean(gains);
  double squares = 0;
  for (const double g : gains) squares += (g - gain) * (g - gain);
  const auto n = static_cast<double>(gains.size());
  const double error = std::sqrt(squares / (n - 1) / n);
  *before_seconds = Mean(before);
  *after_seconds = Mean(after);
  return gain > kFaster && gain > 2 * error ? gain : 0;
}

// Of what the search has seen, the best that make plans of their own. Not all with the same
// head-room: how little of it a machine can do with the replay model does not know.
void Choose(const Learned& learned, const SearchOptions& options, std::vector<Objective::Seen> seen,
            Found* found) {
  std::stable_sort(seen.begin(), seen.end(),
                   [](const auto& a, const auto& b) { return a.seconds < b.seconds; });
  const Trace trace = TraceOf(learned, *LongestPhase(learned));
  std::vector<policy::Plan> plans = {PlanBy(learned.tuning, trace)};
  for (const Objective::Seen& one : seen) {
    if (found->better.size() == options.candidates || one.seconds >= 1e9) break;
    const auto alike = std::count_if(
        found->better.begin(), found->better.end(),
        [&](const Tuning& t) { return t.head_room_bytes == one.tuning.head_room_bytes; });
    if (static_cast<size_t>(alike) >= std::max<size_t>(options.candidates / 4, 1)) continue;
    policy::Plan plan = PlanBy(one.tuning, trace);
    const bool known = std::any_of(plans.begin(), plans.end(),
                                   [&](const policy::Plan& p) { return SameMoves(p, plan); });
    if (known) continue;
    double before = 0, after = 0;
    const double gain = Gain(learned, options, one.tuning, &before, &after);
    if (!options.go_on()) return;
    if (gain == 0) continue;
    plans.push_back(std::move(plan));
    found->better.push_back(one.tuning);
    if (found->better.size() > 1) continue;
    found->before_seconds = before;
    found->after_seconds = after;
    char text[192];
    std::snprintf(text, sizeof text, "%s: replays are %.2f %% faster", Said(one.tuning).c_str(),
                  100 * gain);
    found->reason = text;
  }
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
  if (const char* why = Unfit(learned)) {
    found.reason = why;
    return found;
  }
  Objective objective{learned, options, nullptr, {}, 0};
  constexpr unsigned kChoices = 4;
  const std::unique_ptr<nlopt_opt_s, void (*)(nlopt_opt)> optimiser(
      nlopt_create(NLOPT_GN_DIRECT_L, kChoices), nlopt_destroy);
  objective.optimiser = optimiser.get();
  nlopt_set_lower_bounds1(optimiser.get(), 0);
  nlopt_set_upper_bounds1(optimiser.get(), 1);
  nlopt_set_min_objective(optimiser.get(), Objective::Value, &objective);
  nlopt_set_maxeval(optimiser.get(), static_cast<int>(options.evaluations));
  double x[kChoices] = {0.5, 0, 0, 0}, least = 0;
  const nlopt_result ended = nlopt_optimize(optimiser.get(), x, &least);
  found.evaluations = objective.evaluations;
  if (ended < 0) {
    found.reason = "the search was ended";
    return found;
  }
  found.reason = "nothing better than " + Said(learned.tuning);
  Choose(learned, options, std::move(objective.seen), &found);
  return found;
}

}  // namespace atp::daemon
