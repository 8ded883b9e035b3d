// SPDX-License-Identifier: Apache-2.0
#include "cli/noise.h"

#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>

#include "cli/size.h"
#include "cli/table.h"
#include "cli/trace_input.h"
#include "policy/bounds.h"
#include "policy/planner.h"
#include "policy/replay/replay.h"
#include "policy/replay/uses.h"
#include "policy/sturdy.h"
#include "policy/window_bound.h"

namespace atp::cli {
namespace {

struct NoiseFigures {
  std::string trace;
  policy::Bytes memory = 0;
  std::vector<double> loss;     // of each seed, relative, sorted
  std::vector<double> knowing;  // the same of a plan that was made knowing what happens
  double worst_over_stock = 0;  // the plan's time over stock's, of the worst seed
  int cannot = 0;               // seeds in which the plan could not be made or run

  static double Median(const std::vector<double>& of) { return of.empty() ? 0 : of[of.size() / 2]; }
  double Worst() const { return loss.empty() ? 0 : loss.back(); }
};

// Of plans that copy whatever leaves, as these do. bound_safe lets what is only read leave for
// free, so that it says nothing about the rate of the way out.
double Bound(const policy::Trace& trace, policy::Bytes memory) {
  return policy::BoundWithWindows(trace, memory, /*clean_leaves_free=*/false);
}

NoiseFigures Measure(const policy::Trace& trace, policy::Bytes memory,
                     const policy::DriverCosts& costs, const NoiseOptions& options) {
  NoiseFigures figures;
  figures.trace = trace.name;
  figures.memory = memory;
  policy::PlanOptions plan_options;
  plan_options.memory = memory;
  policy::SturdyOptions sturdy;
  sturdy.duration_spread = options.noise.durations;
  if (!options.head_room.empty()) sturdy.most_head_room = *ParseBytes(options.head_room);
  const policy::Plan clean = policy::MakePlan(trace, plan_options);
  const double distance = clean.period_seconds / Bound(trace, memory);
  for (int seed = 1; seed <= options.seeds; ++seed) {
    policy::Noise noise = options.noise;
    noise.seed = static_cast<uint64_t>(seed);
    const policy::Trace happens = policy::Happens(trace, noise);
    const policy::SturdyPlan made =
        policy::MakeSturdyPlan(policy::Predicted(trace, noise), plan_options, sturdy);
    policy::ReplayOptions replay;
    replay.memory = memory;
    replay.costs = costs;
    const policy::ReplayResult stock = policy::ReplayRules(happens, policy::Rules(), replay);
    replay.head_room = made.head_room;
    // Where the prediction has no plan the driver is left alone.
    const policy::ReplayResult run =
        made.plan.feasible ? policy::ReplayPlan(happens, made.plan, replay) : stock;
    if (!run.completed) {
      ++figures.cannot;
      continue;
    }
    const double reference = distance * Bound(happens, memory);
    figures.loss.push_back(run.period_seconds / reference - 1);
    replay.head_room = 0;
    const policy::Plan best = policy::MakePlan(happens, plan_options);
    const policy::ReplayResult known = policy::ReplayPlan(happens, best, replay);
    figures.knowing.push_back(known.period_seconds / reference - 1);
    figures.worst_over_stock =
        std::max(figures.worst_over_stock, run.period_seconds / stock.period_seconds);
  }
  std::sort(figures.loss.begin(), figures.loss.end());
  std::sort(figures.knowing.begin(), figures.knowing.end());
  return figures;
}

std::string Percent(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f %%", 100 * share);
  return text;
}

}  // namespace

void AddNoiseOptions(CLI::App* command, NoiseOptions* options) {
  command->add_option("--noise-seeds", options->seeds,
                      "replay the plan on wrong predictions, over so many seeds");
  command
      ->add_option("--noise-durations", options->noise.durations,
                   "standard deviation of a launch's time, relative")
      ->capture_default_str();
  command
      ->add_option("--noise-bandwidth", options->noise.bandwidth,
                   "standard deviation of each direction's rate, relative")
      ->capture_default_str();
  command->add_option("--noise-missed", options->noise.missed, "share of touches not predicted")
      ->capture_default_str();
  command
      ->add_option("--noise-false", options->noise.false_touches,
                   "touches predicted wrongly, as a share of the true ones")
      ->capture_default_str();
  command
      ->add_option("--noise-reach", options->noise.false_reach,
                   "launches from which a false touch is taken; 0 = the whole trace")
      ->capture_default_str();
  command
      ->add_option("--noise-head-room", options->head_room,
                   "most memory that the plan keeps free; default: 1/64 of it, at most 256MiB")
      ->check([](const std::string& text) {
        return ParseBytes(text) ? std::string() : std::string(kSizeForms);
      });
}

void RunNoise(const TraceOptions& traces, const NoiseOptions& options) {
  auto list = nlohmann::ordered_json::array();
  Table table({"trace", "memory", "seeds", "median loss", "worst loss", "if known", "worst / stock",
               "cannot run"});
  for (const std::string& path : traces.traces) {
    const policy::Trace trace = ReadPeriod(traces, path);
    for (policy::Bytes memory : MemoriesFor(traces, trace)) {
      if (memory < policy::LargestLaunchBytes(trace)) continue;
      const NoiseFigures f = Measure(trace, memory, CostsFor(traces), options);
      nlohmann::ordered_json json;
      json["trace"] = f.trace;
      json["memory_bytes"] = f.memory;
      json["seeds"] = options.seeds;
      json["median_loss"] = f.Median(f.loss);
      json["worst_loss"] = f.Worst();
      json["median_loss_if_known"] = f.Median(f.knowing);
      json["worst_over_stock"] = f.worst_over_stock;
      json["cannot"] = f.cannot;
      list.push_back(json);
      table.Add({f.trace, FormatBytes(memory), std::to_string(options.seeds),
                 Percent(f.Median(f.loss)), Percent(f.Worst()), Percent(f.Median(f.knowing)),
                 FormatRatio(f.worst_over_stock), std::to_string(f.cannot)});
    }
  }
  std::cout << (traces.json ? OneOrList(list).dump(2) + "\n" : table.Text());
}

}  // namespace atp::cli
