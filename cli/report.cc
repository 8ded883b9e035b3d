// SPDX-License-Identifier: Apache-2.0
#include "cli/report.h"

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/error.h"
#include "cli/run_records.h"
#include "report/analysis.h"
#include "report/page.h"
#include "report/sentences.h"

namespace atp::cli {
namespace {

using Json = nlohmann::ordered_json;

struct ReportOptions {
  std::string of;  // a process or a file
  std::string out;
  bool json = false;
};

bool IsNumber(const std::string& text) {
  return !text.empty() && text.size() < 10 &&
         text.find_first_not_of("0123456789") == std::string::npos;
}

// The only running job whose command has these words in it.
pid_t JobWith(const std::string& words) {
  std::vector<pid_t> found;
  for (const RunningJob& job : RunningJobs()) {
    if (std::string(job.run.header.command).find(words) != std::string::npos) {
      found.push_back(job.pid);
    }
  }
  if (found.size() == 1) return found[0];
  std::string why = "\"" + words + "\" is no file, and in the command of ";
  why += found.empty() ? "no job that moves memory" : "several:";
  for (const pid_t pid : found) (why += ' ') += std::to_string(pid);
  throw CommandError(1, why);
}

std::filesystem::path RecordOf(const std::string& of) {
  if (!IsNumber(of) && std::filesystem::exists(of)) return of;
  const pid_t pid = IsNumber(of) ? std::stoi(of) : JobWith(of);
  if (const auto found = FindRecord(pid)) return *found;
  throw CommandError(1, "process " + of +
                            " has no record: it does not run and has left none, or it does not run "
                            "under the shim, or its memory has not had to move");
}

Json DeviceJson(const protocol::DeviceRun& run) {
  const report::Analysis a = report::Analyse(run);
  Json json = {{"device", run.facts.ordinal},
               {"name", run.facts.name},
               {"budget_bytes", run.facts.budget_bytes},
               {"managed_bytes", run.facts.managed_bytes},
               {"iterations", run.facts.rows},
               {"plans", run.facts.plans},
               {"off", run.facts.off != 0},
               {"iteration_s", a.typical_seconds},
               {"plain_iteration_s", a.plain_seconds},
               {"in_bytes", run.facts.in_bytes},
               {"out_bytes", run.facts.out_bytes},
               {"dropped_bytes", run.facts.dropped_bytes},
               {"words", report::InPlainWords(run, a)},
               {"switched_off", report::WhatWasSwitchedOff(run)}};
  if (!a.measured) return json;
  json["measured"] = {{"iteration", a.number},
                      {"launches", a.launches.size()},
                      {"seconds", a.seconds},
                      {"compute_s", a.bounds.compute},
                      {"bound_safe_s", a.bounds.safe},
                      {"bound_any_s", a.bounds.any},
                      {"waiting_h2d_s", a.waits[report::kToDevice]},
                      {"waiting_d2h_s", a.waits[report::kToHost]},
                      {"waiting_host_s", a.waits[report::kHost]},
                      {"missing_bytes", a.missing_bytes}};
  return json;
}

void Run(const ReportOptions& options) {
  const protocol::RunRecord run = ReadRecord(RecordOf(options.of));
  if (options.json) {
    Json json = {{"pid", run.header.pid},
                 {"command", run.header.command},
                 {"simulated", run.header.simulated != 0},
                 {"devices", Json::array()}};
    for (const protocol::DeviceRun& device : run.devices) {
      json["devices"].push_back(DeviceJson(device));
    }
    // Names of kernels and arguments may be any bytes.
    std::cout << json.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
    return;
  }
  const std::string page = report::MakePage(run);
  if (options.out == "-") {
    std::cout << page;
    return;
  }
  const std::string out =
      options.out.empty() ? "atp-" + std::to_string(run.header.pid) + ".html" : options.out;
  if (!WritePrivately(out, page)) throw CommandError(1, out + ": " + std::strerror(errno));
  std::cerr << out << "\n";
}

}  // namespace

void AddReportCommand(CLI::App& app) {
  auto options = std::make_shared<ReportOptions>();
  CLI::App* command =
      app.add_subcommand("report", "The page of a run: how long its iterations take, and why.");
  command
      ->add_option("PID|JOB|FILE", options->of,
                   "A process, words of the command of the only running job that has them, or "
                   "the record that a process has left behind")
      ->required();
  command->add_option("-o,--output", options->out,
                      "File for the page; - is standard output (default: atp-PID.html)");
  command->add_flag("--json", options->json, "Print the figures as JSON on stdout instead");
  command->footer("Exit code: 0 done; 1 there is no record, or it cannot be read; 2 usage.");
  command->callback([options] { Run(*options); });
}

}  // namespace atp::cli
