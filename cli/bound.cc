// SPDX-License-Identifier: Apache-2.0
#include "cli/bound.h"

#include <iostream>
#include <memory>

#include "cli/error.h"
#include "cli/size.h"
#include "cli/table.h"
#include "cli/trace_input.h"
#include "cli/trace_options.h"
#include "policy/bounds.h"
#ifdef ATP_HAS_LP
#include "policy/lp/lp_bound.h"
#endif
#include "policy/model/elementwise.h"
#include "policy/replay/uses.h"

namespace atp::cli {
namespace {

struct BoundOptions : TraceOptions {
  bool lp = false;
  std::string recompute;
};

void Run(const BoundOptions& options) {
  auto list = nlohmann::ordered_json::array();
  Table table({"trace", "memory", "compute", "bound_any", "bound_safe", "bound_closed", "bound_lp",
               "bound_recompute"});
  for (const std::string& path : options.traces) {
    const policy::Trace trace = ReadPeriod(options, path);
    const policy::Bytes memory = MemoryFor(options, trace);
    Bounds bounds = FindBounds(trace, memory, options.lp);
    if (!options.recompute.empty()) {
      FindRecomputeBound(trace, memory, options.recompute, &bounds);
    }
    list.push_back(BoundsJson(trace, memory, bounds));
    table.Add({trace.name, FormatBytes(memory), FormatSeconds(bounds.compute_s),
               FormatSeconds(bounds.any_s), FormatSeconds(bounds.safe_s),
               FormatSeconds(bounds.closed_s), bounds.lp_s ? FormatSeconds(*bounds.lp_s) : "-",
               bounds.recompute_s ? FormatSeconds(*bounds.recompute_s) : "-"});
  }
  if (options.json) {
    std::cout << OneOrList(list).dump(2) << "\n";
  } else {
    std::cout << table.Text();
  }
}

}  // namespace

Bounds FindBounds(const policy::Trace& trace, policy::Bytes memory, bool lp) {
  const policy::Bytes largest = policy::LargestLaunchBytes(trace);
  if (largest > memory) {
    throw CommandError(kExitInfeasible, trace.name + ": its largest launch needs " +
                                            FormatBytes(largest) + " at once, more than the " +
                                            FormatBytes(memory) + " of device memory");
  }
  Bounds bounds;
  bounds.compute_s = policy::ComputeSeconds(trace);
  bounds.any_s = policy::BoundAny(trace, memory);
  bounds.closed_s = policy::BoundClosed(trace, memory);
  bounds.safe_s = policy::BoundSafe(trace, memory);
  if (lp) {
#ifdef ATP_HAS_LP
    const policy::LpBound result = policy::BoundSafeLp(trace, memory);
    if (!result.error.empty()) throw CommandError(1, trace.name + ": --lp: " + result.error);
    bounds.lp_s = result.seconds;
#else
    throw CommandError(1, "--lp: this build of atp has no linear programs (CLP)");
#endif
  }
  return bounds;
}

void FindRecomputeBound(const policy::Trace& trace, policy::Bytes memory,
                        const std::string& recompute, Bounds* bounds) {
#ifdef ATP_HAS_LP
  const policy::LpBound result =
      policy::BoundRecomputeLp(trace, memory, RecomputeOptionsOf(trace, recompute));
  if (!result.error.empty()) throw CommandError(1, trace.name + ": --recompute: " + result.error);
  bounds->recompute_s = result.seconds;
#else
  static_cast<void>(memory), static_cast<void>(recompute), static_cast<void>(bounds);
  throw CommandError(1, trace.name + ": this build of atp has no linear programs (CLP)");
#endif
}

policy::RecomputeOptions RecomputeOptionsOf(const policy::Trace& trace, const std::string& which) {
  policy::RecomputeOptions options;
  if (which == "elementwise") options.may_run_again = policy::Elementwise(trace);
  return options;
}

void AddRecomputeOption(CLI::App* command, std::string* which, const std::string& what) {
  command->add_option("--recompute", *which, what)
      ->type_name("all|elementwise")
      ->check(CLI::IsMember({"all", "elementwise"}));
}

nlohmann::ordered_json BoundsJson(const policy::Trace& trace, policy::Bytes memory,
                                  const Bounds& bounds) {
  nlohmann::ordered_json json;
  json["trace"] = trace.name;
  json["memory_bytes"] = memory;
  json["compute_s"] = bounds.compute_s;
  json["bound_any_s"] = bounds.any_s;
  json["bound_closed_s"] = bounds.closed_s;
  json["bound_safe_s"] = bounds.safe_s;
  json["bound_lp_s"] = nullptr;
  if (bounds.lp_s) json["bound_lp_s"] = *bounds.lp_s;
  if (bounds.recompute_s) json["bound_recompute_s"] = *bounds.recompute_s;
  return json;
}

void AddBoundCommand(CLI::App& app) {
  auto options = std::make_shared<BoundOptions>();
  CLI::App* command = app.add_subcommand(
      "bound", "The least time that physics allows a trace with this much device memory.");
  AddTraceOptions(command, options.get());
  command->add_flag(
      "--lp", options->lp,
      "also bound_safe as a linear program: seconds to minutes, an offline certificate");
  AddRecomputeOption(
      command, &options->recompute,
      "also what no plan that runs these launches again can beat (a linear program)");
  command->callback([options] { Run(*options); });
}

}  // namespace atp::cli
