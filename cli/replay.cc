// SPDX-License-Identifier: Apache-2.0
#include "cli/replay.h"

#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/error.h"
#include "cli/figures.h"
#include "cli/noise.h"
#include "cli/size.h"
#include "cli/table.h"
#include "cli/trace_input.h"
#include "cli/trace_options.h"
#include "policy/baselines/baseline.h"
#include "policy/bounds.h"
#include "policy/replay/uses.h"
#include "policy/window_bound.h"

namespace atp::cli {
namespace {

using policy::Baseline;

struct ReplayCommandOptions : TraceOptions {
  std::vector<std::string> policies{"plan", "stock"};
  bool all = false, markdown = false, overlap = false, readmostly = false;
  bool no_map = false;
  std::string plot;
  NoiseOptions noise;
};

struct Cell {
  const Baseline* baseline = nullptr;
  policy::ReplayResult result;
};
// One trace at one size of memory.
struct Row {
  std::string trace;
  policy::Bytes memory = 0, footprint = 0;
  double compute_s = 0, bound_safe_s = 0;
  double bound_windows_s = 0;  // window_bound.h, of the rule that was replayed
  std::vector<Cell> cells;
};

std::vector<const Baseline*> Chosen(const ReplayCommandOptions& options) {
  std::vector<const Baseline*> chosen;
  if (options.all) {
    for (const Baseline& b : policy::Baselines()) chosen.push_back(&b);
    return chosen;
  }
  for (const std::string& name : options.policies) chosen.push_back(policy::FindBaseline(name));
  return chosen;
}

Row ReplayRow(const policy::Trace& trace, policy::Bytes memory,
              const ReplayCommandOptions& options) {
  Row row{trace.name,
          memory,
          policy::PeakLiveBytes(trace),
          policy::ComputeSeconds(trace),
          policy::BoundSafe(trace, memory),
          policy::BoundWithWindows(trace, memory, options.readmostly),
          {}};
  policy::PlanOptions plan_options;
  plan_options.memory = memory;
  plan_options.clean_leaves_free = options.readmostly;
  plan_options.may_map = !options.no_map;
  policy::ReplayOptions replay;
  replay.memory = memory;
  replay.costs = CostsFor(options);
  replay.clean_leaves_free = options.readmostly;
  replay.timeline = !options.plot.empty();
  if (options.overlap) replay.rule = policy::LaunchRule::kOverlapOwn;
  for (const Baseline* baseline : Chosen(options)) {
    const policy::Policy policy = baseline->make(trace, plan_options);
    row.cells.push_back({baseline, policy::Replay(trace, policy, replay)});
  }
  return row;
}

nlohmann::ordered_json RowJson(const Row& row) {
  auto list = nlohmann::ordered_json::array();
  for (const Cell& cell : row.cells) {
    const policy::ReplayResult& r = cell.result;
    nlohmann::ordered_json json;
    json["trace"] = row.trace;
    json["memory_bytes"] = row.memory;
    json["footprint_bytes"] = row.footprint;
    json["policy"] = cell.baseline->name;
    json["recomputes"] = cell.baseline->recomputes;
    json["completed"] = r.completed;
    json["compute_s"] = row.compute_s;
    json["bound_safe_s"] = row.bound_safe_s;
    json["bound_windows_s"] = row.bound_windows_s;
    json["period_s"] = r.period_seconds;
    json["stall_s"] = r.stall_seconds;
    json["moved_h2d_bytes"] = r.h2d;
    json["moved_d2h_bytes"] = r.d2h;
    json["remote_h2d_bytes"] = r.remote_h2d;
    json["remote_d2h_bytes"] = r.remote_d2h;
    json["fault_blocks"] = r.fault_blocks;
    json["forced_evictions"] = r.forced_evictions;
    list.push_back(std::move(json));
  }
  return list;
}

std::string SecondsOrDash(const policy::ReplayResult& result) {
  return result.completed ? FormatSeconds(result.period_seconds) : "cannot";
}

// A line for each policy.
std::string LongTable(const std::vector<Row>& rows) {
  Table table({"trace", "memory", "policy", "period", "/ bound_safe", "stalls", "in", "out",
               "blocks faulted"});
  for (const Row& row : rows) {
    for (const Cell& cell : row.cells) {
      const policy::ReplayResult& r = cell.result;
      table.Add({row.trace, FormatBytes(row.memory), std::string(cell.baseline->name),
                 SecondsOrDash(r),
                 r.completed ? FormatRatio(r.period_seconds / row.bound_safe_s) : "-",
                 FormatSeconds(r.stall_seconds), FormatBytes(r.h2d + r.remote_h2d),
                 FormatBytes(r.d2h + r.remote_d2h), std::to_string(r.fault_blocks)});
    }
  }
  return table.Text();
}

// A column for each policy.
std::string WideTable(const std::vector<Row>& rows) {
  std::vector<std::string> header{"trace", "memory", "of footprint", "compute", "bound_safe"};
  for (const Cell& cell : rows.front().cells) {
    header.push_back(std::string(cell.baseline->name) +
                     (cell.baseline->recomputes ? " (recompute)" : ""));
  }
  Table table(header);
  for (const Row& row : rows) {
    const double share = 100 * double(row.memory) / double(row.footprint);
    std::vector<std::string> cells{row.trace, FormatBytes(row.memory),
                                   std::to_string(int(share + 0.5)) + " %",
                                   FormatSeconds(row.compute_s), FormatSeconds(row.bound_safe_s)};
    for (const Cell& cell : row.cells) cells.push_back(SecondsOrDash(cell.result));
    table.Add(cells);
  }
  return table.Markdown();
}

void WritePlot(const ReplayCommandOptions& options, const policy::Trace& trace, const Row& row) {
  const Cell& cell = row.cells.front();
  if (!cell.result.completed) throw CommandError(kExitInfeasible, cell.result.why);
  WriteFile(options.plot,
            TimelineSvg(trace, std::string(cell.baseline->name), row.memory, cell.result));
}

void Run(const ReplayCommandOptions& options) {
  std::vector<Row> rows;
  auto list = nlohmann::ordered_json::array();
  for (const std::string& path : options.traces) {
    const policy::Trace trace = ReadPeriod(options, path);
    const policy::Bytes largest = policy::LargestLaunchBytes(trace);
    for (policy::Bytes memory : MemoriesFor(options, trace)) {
      if (memory < largest && options.memory.size() > 1) continue;  // said below
      if (memory < largest) {
        throw CommandError(kExitInfeasible, trace.name + ": its largest launch needs " +
                                                FormatBytes(largest) + " at once");
      }
      rows.push_back(ReplayRow(trace, memory, options));
      for (auto& json : RowJson(rows.back())) list.push_back(json);
      if (!options.plot.empty()) WritePlot(options, trace, rows.back());
    }
  }
  if (rows.empty()) {
    throw CommandError(kExitInfeasible,
                       "no size of --memory holds the largest launch of any trace");
  }
  if (options.json) {
    std::cout << OneOrList(list).dump(2) << "\n";
  } else {
    std::cout << (options.markdown ? WideTable(rows) : LongTable(rows));
  }
}

void RunAny(const ReplayCommandOptions& options) {
  const bool one = options.traces.size() == 1 && options.memory.size() <= 1;
  if (!options.plot.empty() && !one) throw CommandError(2, "--plot takes one trace and one size");
  if (options.noise.seeds > 0) return RunNoise(options, options.noise);
  Run(options);
}

}  // namespace

void AddReplayCommand(CLI::App& app) {
  auto options = std::make_shared<ReplayCommandOptions>();
  std::string policies;
  for (const Baseline& b : policy::Baselines()) {
    policies += "\n  " + std::string(b.name) + ": " + std::string(b.summary);
  }
  CLI::App* command = app.add_subcommand(
      "replay",
      "Runs traces under policies in the model of a machine; sizes that cannot hold the "
      "largest launch are left out when several are given.");
  AddTraceOptions(command, options.get(), true);
  command->add_option("--policy", options->policies, "policies, with commas between:" + policies)
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check([](const std::string& name) {
        return policy::FindBaseline(name) != nullptr ? std::string() : "no policy \"" + name + "\"";
      });
  command->add_flag("--all", options->all, "every policy");
  command->add_flag("--markdown", options->markdown, "a Markdown table, a column for each policy");
  command->add_flag("--overlap", options->overlap,
                    "a launch overlaps its own transfers (the G10 artifact's rule)");
  command->add_flag("--readmostly", options->readmostly,
                    "what the period never writes leaves without a copy (ReadMostly works)");
  command->add_flag("--no-map", options->no_map,
                    "our plans move all that is used: no data stays in host memory to be accessed "
                    "over the link");
  command->add_option("--plot", options->plot,
                      "write residency and link use of the first policy over time (SVG)");
  AddNoiseOptions(command, &options->noise);
  command->callback([options] { RunAny(*options); });
}

}  // namespace atp::cli
