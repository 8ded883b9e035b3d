// SPDX-License-Identifier: Apache-2.0
#include "cli/plan.h"

#include <time.h>

#include <algorithm>
#include <iostream>
#include <memory>

#include "cli/bound.h"
#include "cli/error.h"
#include "cli/figures.h"
#include "cli/size.h"
#include "cli/table.h"
#include "cli/trace_input.h"
#include "cli/trace_options.h"
#include "policy/planner.h"
#include "policy/recompute_plan.h"
#include "policy/replay/replay.h"
#include "policy/schedule.h"
#include "policy/trace_json.h"

namespace atp::cli {
namespace {

struct PlanCommandOptions : TraceOptions {
  bool lp = false;
  bool readmostly = false;
  bool map = false;
  std::string schedule, actions, plot, host_memory, recompute;
};

struct Planned {
  policy::Plan plan;
  double milliseconds = 0;
};

double ProcessorSeconds() {  // of this thread
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// Processor time, the best of a few: what planning costs, not what else the machine does.
Planned MakeTimedPlan(const policy::Trace& trace, const policy::PlanOptions& options) {
  constexpr int kTimes = 3;
  Planned planned;
  for (int i = 0; i < kTimes; ++i) {
    const double began = ProcessorSeconds();
    planned.plan = policy::MakePlan(trace, options);
    const double took = (ProcessorSeconds() - began) * 1e3;
    planned.milliseconds = i == 0 ? took : std::min(planned.milliseconds, took);
  }
  if (!planned.plan.feasible) {
    throw CommandError(kExitInfeasible, trace.name + ": no plan: " + planned.plan.why);
  }
  return planned;
}

// The plan that also runs launches again, and how long that one takes to make.
struct Recomputing {
  policy::RecomputePlan plan;
  double milliseconds = 0;
};

Recomputing MakeRecomputing(const policy::Trace& trace, const policy::PlanOptions& options,
                            const std::string& which) {
  Recomputing made;
  const double began = ProcessorSeconds();
  made.plan = policy::BestRecompute(trace, options, RecomputeOptionsOf(trace, which));
  made.milliseconds = (ProcessorSeconds() - began) * 1e3;
  return made;
}

nlohmann::ordered_json RecomputeJson(const policy::Trace& trace, double bound_safe,
                                     const Recomputing& made) {
  const policy::Plan& plan = made.plan.plan;
  nlohmann::ordered_json json;
  json["plan_s"] = plan.period_seconds;
  json["plan_over_bound"] = plan.period_seconds / bound_safe;
  json["dropped_bytes"] = made.plan.made.bytes;
  json["rerun_s"] = made.plan.made.seconds;
  json["moved_h2d_bytes"] = plan.moved_h2d;
  json["moved_d2h_bytes"] = plan.moved_d2h;
  json["stall_s"] = plan.stall_seconds;
  json["planning_ms"] = made.milliseconds;
  json["reruns"] = nlohmann::ordered_json::array();
  for (const policy::Rerun& rerun : made.plan.made.reruns) {
    auto restores = nlohmann::ordered_json::array();
    for (uint32_t t : rerun.restores) restores.push_back(trace.tensors[t].id);
    json["reruns"].push_back(
        {{"launch", rerun.producer}, {"before", rerun.before}, {"restores", restores}});
  }
  return json;
}

policy::Bytes MappedBytes(const policy::Trace& trace, const policy::Plan& plan) {
  policy::Bytes sum = 0;
  for (uint32_t t : plan.mapped) sum += trace.tensors[t].bytes;
  return sum;
}

nlohmann::ordered_json PlanJson(const policy::Trace& trace, policy::Bytes memory,
                                const Bounds& bounds, const Planned& planned) {
  const policy::Plan& plan = planned.plan;
  nlohmann::ordered_json json = BoundsJson(trace, memory, bounds);
  json["plan_s"] = plan.period_seconds;
  json["plan_over_bound"] = plan.period_seconds / bounds.safe_s;
  json["mapped_bytes"] = MappedBytes(trace, plan);
  json["moved_h2d_bytes"] = plan.moved_h2d;
  json["moved_d2h_bytes"] = plan.moved_d2h;
  json["stall_s"] = plan.stall_seconds;
  json["host_bytes"] = plan.host_bytes;
  json["planning_ms"] = planned.milliseconds;
  return json;
}

void PlotPlan(const PlanCommandOptions& options, const policy::Trace& trace, policy::Bytes memory,
              const policy::Plan& plan) {
  policy::ReplayOptions replay;
  replay.memory = memory;
  replay.clean_leaves_free = options.readmostly;
  replay.timeline = true;
  const policy::ReplayResult result = policy::ReplayPlan(trace, plan, replay);
  if (!result.completed) throw CommandError(kExitInfeasible, trace.name + ": " + result.why);
  WriteFile(options.plot, TimelineSvg(trace, "plan", memory, result));
}

void Run(const PlanCommandOptions& options) {
  if (options.traces.size() > 1 &&
      !(options.schedule.empty() && options.plot.empty() && options.actions.empty())) {
    throw CommandError(2, "--schedule, --actions and --plot take one trace");
  }
  if (!options.recompute.empty() && !(options.schedule.empty() && options.actions.empty())) {
    throw CommandError(2,
                       "--schedule and --actions name launches of the trace as it is: not with "
                       "--recompute");
  }
  auto list = nlohmann::ordered_json::array();
  Table table(
      {"trace", "memory", "compute", "bound_safe", "plan", "plan/bound", "in", "out", "planning"});
  Table again({"trace", "with recompute", "/ bound_safe", "launches run again", "dropped",
               "running again", "in", "out", "planning"});
  for (const std::string& path : options.traces) {
    const policy::Trace trace = ReadPeriod(options, path);
    const policy::Bytes memory = MemoryFor(options, trace);
    const Bounds bounds = FindBounds(trace, memory, options.lp);
    policy::PlanOptions plan_options;
    plan_options.memory = memory;
    plan_options.clean_leaves_free = options.readmostly;
    plan_options.may_map = options.map;
    if (!options.host_memory.empty()) plan_options.host_memory = *ParseBytes(options.host_memory);
    const Planned planned = MakeTimedPlan(trace, plan_options);
    const policy::Plan& plan = planned.plan;
    list.push_back(PlanJson(trace, memory, bounds, planned));
    table.Add({trace.name, FormatBytes(memory), FormatSeconds(bounds.compute_s),
               FormatSeconds(bounds.safe_s), FormatSeconds(plan.period_seconds),
               FormatRatio(plan.period_seconds / bounds.safe_s), FormatBytes(plan.moved_h2d),
               FormatBytes(plan.moved_d2h), FormatSeconds(planned.milliseconds * 1e-3)});
    if (!options.recompute.empty()) {
      const Recomputing made = MakeRecomputing(trace, plan_options, options.recompute);
      list.back()["recompute"] = RecomputeJson(trace, bounds.safe_s, made);
      const policy::Plan& best = made.plan.plan;
      again.Add({trace.name, FormatSeconds(best.period_seconds),
                 FormatRatio(best.period_seconds / bounds.safe_s),
                 std::to_string(made.plan.made.reruns.size()), FormatBytes(made.plan.made.bytes),
                 FormatSeconds(made.plan.made.seconds), FormatBytes(best.moved_h2d),
                 FormatBytes(best.moved_d2h), FormatSeconds(made.milliseconds * 1e-3)});
      if (!options.plot.empty()) PlotPlan(options, made.plan.made.trace, memory, best);
    }
    if (!options.actions.empty()) WriteFile(options.actions, policy::WriteActions(trace, plan));
    if (!options.schedule.empty()) {
      if (!plan.mapped.empty()) {
        throw CommandError(2,
                           trace.name + ": a schedule cannot say what stays on the host (--map)");
      }
      WriteFile(options.schedule, policy::WriteSchedule(trace, policy::ToSchedule(plan)));
    }
    if (!options.plot.empty() && options.recompute.empty()) {
      PlotPlan(options, trace, memory, plan);
    }
  }
  if (options.json) {
    std::cout << OneOrList(list).dump(2) << "\n";
  } else {
    std::cout << table.Text();
    if (!options.recompute.empty()) std::cout << "\n" << again.Text();
  }
}

}  // namespace

void AddPlanCommand(CLI::App& app) {
  auto options = std::make_shared<PlanCommandOptions>();
  CLI::App* command =
      app.add_subcommand("plan", "Plans what moves when, and compares it with the bounds.");
  AddTraceOptions(command, options.get());
  command->add_option("--schedule", options->schedule, "write the schedule of the plan (JSON)");
  command->add_option("--actions", options->actions,
                      "write what a runtime has to do, by launch, with deadlines (JSON)");
  command->add_flag("--map", options->map,
                    "data may stay in host memory and be accessed over the link, where that is "
                    "faster (planned and modelled; the shim does not do it)");
  command->add_option("--plot", options->plot,
                      "write residency and link use over time (SVG), as replayed");
  command
      ->add_option("--host-memory", options->host_memory,
                   "host memory that a plan may use: a size (64GiB); default: no limit")
      ->check([](const std::string& text) {
        return ParseBytes(text) ? std::string() : std::string(kSizeForms);
      });
  command->add_flag("--readmostly", options->readmostly,
                    "what the period never writes leaves without a copy (ReadMostly works)");
  command->add_flag(
      "--lp", options->lp,
      "also bound_safe as a linear program: seconds to minutes, an offline certificate");
  AddRecomputeOption(command, &options->recompute,
                     "also the plan that drops data and runs these launches again to restore it");
  command->callback([options] { Run(*options); });
}

}  // namespace atp::cli
