// SPDX-License-Identifier: Apache-2.0
#include "cli/status.h"

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/jobs.h"
#include "cli/size.h"
#include "cli/table.h"

namespace atp::cli {
namespace {

using Json = nlohmann::ordered_json;

struct StatusOptions {
  std::string socket;
  bool json = false;
};

std::string Time(const Json& seconds) {
  return seconds.get<double>() > 0 ? FormatSeconds(seconds) : "-";
}

std::string OverBound(double took, double bound) {
  return took > 0 && bound > 0 ? FormatRatio(took / bound) : "-";
}

void PrintJobs(const Json& jobs) {
  if (jobs.empty()) {
    std::cout << "no process has to move memory under the shim\n";
    return;
  }
  Table table(
      {"pid", "device", "budget", "managed", "iterations", "iteration", "/ bound", "command"});
  for (const Json& job : jobs) {
    table.Add({job["pid"].dump(), job["device"].dump(), FormatBytes(job["budget_bytes"]),
               FormatBytes(job["managed_bytes"]), job["iterations"].dump(),
               Time(job["iteration_s"]), OverBound(job["iteration_s"], job["bound_safe_s"]),
               job["command"]});
  }
  std::cout << table.Text();
}

// The last decision about it.
std::string TunedOf(const Json& workload) {
  const Json decisions = workload.value("decisions", Json::array());
  return decisions.empty() ? "-" : decisions.back().value("what", "-");
}

void PrintDaemon(const Json& daemon) {
  if (daemon.is_null()) {
    std::cout << "no daemon: nothing is remembered from run to run (docs/daemon.md)\n";
    return;
  }
  const Json& workloads = daemon["workloads"];
  std::cout << "atpd " << daemon["version"].get<std::string>() << " remembers "
            << daemon["store"]["workloads"] << " workloads in "
            << FormatBytes(daemon["store"]["bytes"]) << ", " << workloads.size()
            << " of them yours\n";
  if (workloads.empty()) return;
  Table table({"workload", "runs", "iteration", "plain", "/ bound", "tuned", "command"});
  for (const Json& workload : workloads) {
    const Json& runs = workload["runs"];
    const Json last =
        runs.empty()
            ? Json{{"best_iteration_s", 0.0}, {"plain_iteration_s", 0.0}, {"bound_safe_s", 0.0}}
            : runs.back();
    table.Add({workload["id"].dump(), std::to_string(runs.size()), Time(last["best_iteration_s"]),
               Time(last["plain_iteration_s"]),
               OverBound(last["best_iteration_s"], last["bound_safe_s"]), TunedOf(workload),
               workload["command"]});
  }
  std::cout << table.Text();
}

void Run(const StatusOptions& options) {
  Json jobs = Json::array();
  for (const Job& job : JobWatch().Look()) jobs.push_back(JobJson(job));
  const Json daemon = DaemonStatus(options.socket);
  if (options.json) {
    const Json all = {{"jobs", jobs}, {"daemon", daemon}};
    std::cout << all.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
    return;
  }
  PrintJobs(jobs);
  PrintDaemon(daemon);
}

}  // namespace

void AddStatusCommand(CLI::App& app) {
  auto options = std::make_shared<StatusOptions>();
  CLI::App* command = app.add_subcommand(
      "status", "Which processes move memory under the shim, and what the daemon remembers.");
  command->add_option("--socket", options->socket, "Of the daemon (default: where shims look)");
  command->add_flag("--json", options->json, "Print it as JSON on stdout instead");
  command->footer("Exit code: 0 done, also without a daemon; 1 it does not answer; 2 usage.");
  command->callback([options] { Run(*options); });
}

}  // namespace atp::cli
