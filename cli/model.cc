// SPDX-License-Identifier: Apache-2.0
#include "cli/model.h"

#include <algorithm>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/error.h"
#include "cli/figures.h"
#include "cli/size.h"
#include "cli/table.h"
#include "cli/trace_input.h"
#include "cli/trace_options.h"
#include "policy/model/throughput.h"
#include "policy/replay/uses.h"

namespace atp::cli {
namespace {

struct ModelOptions : TraceOptions {
  std::string plot;
  int points = 24;
  double loss = 0.05;
  bool no_recompute = false;
};

// What the header of a trace says of its batch, if it does.
std::optional<double> BatchOf(const policy::Trace& trace) {
  const auto extra = nlohmann::json::parse(trace.extra, nullptr, false);
  if (!extra.is_object() || !extra.contains("batch") || !extra["batch"].is_number()) return {};
  return extra["batch"].get<double>();
}

policy::ThroughputOptions ModelOptionsOf(const ModelOptions& options) {
  policy::ThroughputOptions model;
  model.points = options.points;
  model.recompute = !options.no_recompute;
  return model;
}

nlohmann::ordered_json PointJson(const policy::ThroughputPoint& p, double compute_s) {
  nlohmann::ordered_json json;
  json["memory_bytes"] = p.memory;
  json["feasible"] = p.feasible;
  json["plan_s"] = p.plan_s;
  json["speed"] = p.plan_s > 0 ? compute_s / p.plan_s : 0;
  json["bound_safe_s"] = p.bound_safe_s;
  json["bound_any_s"] = p.bound_any_s;
  json["swap_bytes"] = p.swap;
  json["atp_s"] = p.atp_s;
  json["atp_swap_bytes"] = p.atp_swap;
  json["atp_recompute_bytes"] = p.atp_recompute;
  json["best_s"] = p.best_s;
  json["best_swap_bytes"] = p.best_swap;
  json["best_recompute_bytes"] = p.best_recompute;
  json["best_recompute_s"] = p.best_recompute_s;
  return json;
}

nlohmann::ordered_json CurveJson(const policy::Trace& trace, const policy::ThroughputCurve& curve) {
  nlohmann::ordered_json json;
  json["trace"] = trace.name;
  json["compute_s"] = curve.compute_s;
  json["largest_launch_bytes"] = curve.largest_launch;
  json["footprint_bytes"] = curve.footprint;
  json["knee_bytes"] = curve.knee;
  json["lossless_bytes"] = curve.lossless;
  json["recompute"] = "modelled, not executed";
  json["points"] = nlohmann::ordered_json::array();
  for (const auto& p : curve.points) json["points"].push_back(PointJson(p, curve.compute_s));
  return json;
}

void PrintCurve(const policy::Trace& trace, const policy::ThroughputCurve& curve) {
  std::cout << trace.name << ": footprint " << FormatBytes(curve.footprint) << ", largest launch "
            << FormatBytes(curve.largest_launch) << ", knee " << FormatBytes(curve.knee)
            << ", loses nothing from " << FormatBytes(curve.lossless) << "\n";
  Table table({"memory", "plan", "speed", "bound_safe", "bound_any", "swapped", "with recompute",
               "recomputed", "at a cost of", "ATP's model"});
  for (const policy::ThroughputPoint& p : curve.points) {
    const std::string plan = p.feasible ? FormatSeconds(p.plan_s) : "cannot";
    char speed[16];
    std::snprintf(speed, sizeof speed, "%.1f %%",
                  p.feasible ? 100 * curve.compute_s / p.plan_s : 0);
    table.Add({FormatBytes(p.memory), plan, speed, FormatSeconds(p.bound_safe_s),
               FormatSeconds(p.bound_any_s), FormatBytes(p.swap), FormatSeconds(p.best_s),
               FormatBytes(p.best_recompute), FormatSeconds(p.best_recompute_s),
               p.atp_s > 0 ? FormatSeconds(p.atp_s) : "cannot"});
  }
  std::cout << table.Text() << "recompute: modelled, not executed\n";
}

struct BatchFigures {
  std::string trace;
  double batch = 0, loss = 0, per_second = 0;
  bool feasible = false;
};

// Of traces that differ in their batch: the largest that loses no more than --loss.
nlohmann::ordered_json LargestBatch(const std::vector<BatchFigures>& batches,
                                    const ModelOptions& options) {
  nlohmann::ordered_json json;
  json["loss"] = options.loss;
  json["largest_batch"] = nullptr;
  json["batches"] = nlohmann::ordered_json::array();
  double largest = 0;
  for (const BatchFigures& b : batches) {
    json["batches"].push_back({{"trace", b.trace},
                               {"batch", b.batch},
                               {"feasible", b.feasible},
                               {"loss", b.loss},
                               {"per_s", b.per_second}});
    if (b.feasible && b.loss <= options.loss && b.batch > largest) {
      largest = b.batch;
      json["largest_batch"] = b.batch;
    }
  }
  return json;
}

BatchFigures FiguresOf(const policy::Trace& trace, policy::Bytes memory, double batch) {
  BatchFigures figures{trace.name, batch, 0, 0, false};
  policy::PlanOptions plan_options;
  plan_options.memory = memory;
  const policy::Plan plan = policy::MakePlan(trace, plan_options);
  figures.feasible = plan.feasible;
  if (!plan.feasible) return figures;
  figures.loss = plan.period_seconds / plan.compute_seconds - 1;
  figures.per_second = batch / plan.period_seconds;
  return figures;
}

void PrintBatches(const nlohmann::ordered_json& json) {
  Table table({"trace", "batch", "loss", "per second"});
  for (const auto& b : json["batches"]) {
    char loss[16], rate[16];
    std::snprintf(loss, sizeof loss, "%.1f %%", 100 * b["loss"].get<double>());
    std::snprintf(rate, sizeof rate, "%.4g", b["per_s"].get<double>());
    const bool feasible = b["feasible"].get<bool>();
    table.Add({b["trace"].get<std::string>(), std::to_string(int(b["batch"].get<double>())),
               feasible ? loss : "cannot", feasible ? rate : "-"});
  }
  std::cout << table.Text() << "largest batch with a loss of at most "
            << 100 * json["loss"].get<double>() << " %: " << json["largest_batch"] << "\n";
}

void Run(const ModelOptions& options) {
  if (options.traces.size() > 1 && !options.plot.empty()) {
    throw CommandError(2, "--plot takes one trace");
  }
  auto list = nlohmann::ordered_json::array();
  std::vector<BatchFigures> batches;
  for (const std::string& path : options.traces) {
    const policy::Trace trace = ReadPeriod(options, path);
    const policy::ThroughputCurve curve = ModelThroughput(trace, ModelOptionsOf(options));
    list.push_back(CurveJson(trace, curve));
    if (!options.json) PrintCurve(trace, curve);
    if (!options.plot.empty()) WriteFile(options.plot, ThroughputSvg(trace, curve));
    if (const auto batch = BatchOf(trace); batch && options.traces.size() > 1) {
      batches.push_back(FiguresOf(trace, MemoryFor(options, trace), *batch));
    }
  }
  nlohmann::ordered_json largest;
  if (batches.size() > 1) largest = LargestBatch(batches, options);
  if (options.json) {
    nlohmann::ordered_json all = OneOrList(list);
    if (batches.size() > 1) all = {{"traces", list}, {"batches", largest}};
    std::cout << all.dump(2) << "\n";
  } else if (batches.size() > 1) {
    PrintBatches(largest);
  }
}

}  // namespace

void AddModelCommand(CLI::App& app) {
  auto options = std::make_shared<ModelOptions>();
  CLI::App* command = app.add_subcommand(
      "model",
      "Speed against device memory, the knee, the least memory that loses nothing, what is best "
      "swapped and recomputed (recompute: modelled, not executed). Traces of several batches: the "
      "largest that loses little at --memory.");
  AddTraceOptions(command, options.get());
  command->add_option("--points", options->points, "sizes of memory")
      ->check(CLI::Range(2, 1000))
      ->capture_default_str();
  command->add_option("--loss", options->loss, "what the largest batch may lose, relative")
      ->capture_default_str();
  command->add_flag("--no-recompute", options->no_recompute, "swap only: one plan a size");
  command->add_option("--plot", options->plot, "write speed against memory (SVG)");
  command->callback([options] { Run(*options); });
}

}  // namespace atp::cli
