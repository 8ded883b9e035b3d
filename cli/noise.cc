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

namespace atp::cli {
namespace {

struct NoiseFigures {
  std::string trace;
  policy::Bytes memory = 0;
  std::vector<double> loss;     // of each seed, relative, sorted
  double worst_over_stock = 0;  // the plan's time over stock's, of the worst seed
  int cannot = 0;               // seeds in which the plan could not be made or run

  double Median() const { return loss.empty() ? 0 : loss[loss.size() / 2]; }
  double Worst() const { return loss.empty() ? 0 : loss.back(); }
};

// Room for what comes by surprise; all of it is room that the plan lacks.
policy::Bytes HeadRoom(policy::Bytes memory) {
  constexpr policy::Bytes kPart = 64, kMost = 256u << 20;
  return std::min(memory / kPart, kMost);
}

NoiseFigures Measure(const policy::Trace& trace, policy::Bytes memory,
                     const NoiseOptions& options) {
  NoiseFigures figures;
  figures.trace = trace.name;
  figures.memory = memory;
  policy::PlanOptions plan_options;
  plan_options.memory = memory;
  policy::ReplayOptions replay;
  replay.memory = memory;
  const policy::Plan clean = policy::MakePlan(trace, plan_options);
  const double distance = clean.period_seconds / policy::BoundSafe(trace, memory);
  plan_options.head_room = replay.head_room =
      options.head_room.empty() ? HeadRoom(memory) : *ParseBytes(options.head_room);
  for (int seed = 1; seed <= options.seeds; ++seed) {
    policy::Noise noise = options.noise;
    noise.seed = static_cast<uint64_t>(seed);
    const policy::Trace happens = policy::Happens(trace, noise);
    const policy::Plan plan = policy::MakePlan(policy::Predicted(trace, noise), plan_options);
    const policy::ReplayResult stock = policy::ReplayRules(happens, policy::Rules(), replay);
    // Where the prediction has no plan, a touch too many in a launch that fills memory, the driver
    // is left alone.
    const policy::ReplayResult run =
        plan.feasible ? policy::ReplayPlan(happens, plan, replay) : stock;
    if (!run.completed) {
      ++figures.cannot;
      continue;
    }
    const double reference = distance * policy::BoundSafe(happens, memory);
    figures.loss.push_back(run.period_seconds / reference - 1);
    figures.worst_over_stock =
        std::max(figures.worst_over_stock, run.period_seconds / stock.period_seconds);
  }
  std::sort(figures.loss.begin(), figures.loss.end());
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
                   "memory that the plan keeps free; default: 1/64 of it, at most 256MiB")
      ->check([](const std::string& text) {
        return ParseBytes(text) ? std::string() : std::string(kSizeForms);
      });
}

void RunNoise(const TraceOptions& traces, const NoiseOptions& options) {
  auto list = nlohmann::ordered_json::array();
  Table table(
      {"trace", "memory", "seeds", "median loss", "worst loss", "worst / stock", "cannot run"});
  for (const std::string& path : traces.traces) {
    const policy::Trace trace = ReadPeriod(path);
    for (policy::Bytes memory : MemoriesFor(traces, trace)) {
      if (memory < policy::LargestLaunchBytes(trace)) continue;
      const NoiseFigures f = Measure(trace, memory, options);
      nlohmann::ordered_json json;
      json["trace"] = f.trace;
      json["memory_bytes"] = f.memory;
      json["seeds"] = options.seeds;
      json["median_loss"] = f.Median();
      json["worst_loss"] = f.Worst();
      json["worst_over_stock"] = f.worst_over_stock;
      json["cannot"] = f.cannot;
      list.push_back(json);
      table.Add({f.trace, FormatBytes(memory), std::to_string(options.seeds), Percent(f.Median()),
                 Percent(f.Worst()), FormatRatio(f.worst_over_stock), std::to_string(f.cannot)});
    }
  }
  std::cout << (traces.json ? OneOrList(list).dump(2) + "\n" : table.Text());
}

}  // namespace atp::cli
