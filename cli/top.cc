// SPDX-License-Identifier: Apache-2.0
#include "cli/top.h"

#include <signal.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/error.h"
#include "cli/jobs.h"
#include "cli/terminal.h"
#include "cli/top_screen.h"

namespace atp::cli {
namespace {

using Json = nlohmann::ordered_json;

struct TopOptions {
  std::string socket;
  double interval = 1;
  bool once = false, json = false;
};

// A daemon that is just being started anew is no reason to end.
Json DaemonNow(const std::string& socket) {
  try {
    return DaemonStatus(socket);
  } catch (const CommandError&) {
    return nullptr;
  }
}

void Live(const TopOptions& options) {
  int ended_by = 0;
  {
    Terminal terminal;
    JobWatch watch;
    const int pause = static_cast<int>(options.interval * 1000);
    for (auto event = Terminal::Event::kTime; event != Terminal::Event::kQuit;
         event = terminal.Await(pause)) {
      terminal.Draw(TopScreen(watch.Look(), DaemonNow(options.socket), terminal.Size()));
    }
    ended_by = terminal.ended_by();
  }
  if (ended_by != 0 && ended_by != SIGINT) throw CLI::RuntimeError(128 + ended_by);
}

void Print(const TopOptions& options) {
  const std::vector<Job> jobs = JobWatch().Look();
  const Json daemon = DaemonNow(options.socket);
  if (options.json) {
    Json all = {{"jobs", Json::array()}, {"daemon", daemon}};
    for (const Job& job : jobs) all["jobs"].push_back(JobJson(job));
    std::cout << all.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
    return;
  }
  constexpr ScreenSize kAll{200, SIZE_MAX};
  std::cout << TopScreen(jobs, daemon, kAll) << "\n";
}

}  // namespace

void AddTopCommand(CLI::App& app) {
  auto options = std::make_shared<TopOptions>();
  CLI::App* command = app.add_subcommand(
      "top", "The jobs that move memory under the shim, live; with a daemon or without.");
  command->add_flag("--once", options->once,
                    "Print them once and end; always so where there is no terminal");
  command->add_flag("--json", options->json, "The same as JSON on stdout");
  command->add_option("--interval", options->interval, "Seconds between two looks")
      ->check(CLI::Range(0.1, 3600.0))
      ->capture_default_str();
  command->add_option("--socket", options->socket, "Of the daemon (default: where shims look)");
  command->footer(
      "Keys: q ends, any other looks at once.\n"
      "Exit code: 0 ended by q or Ctrl-C, or printed; 1 the terminal cannot be used; 2 usage; 128 "
      "+ "
      "the number of another signal that ended it.");
  command->callback([options] {
    if (options->once || options->json || !Terminal::Possible()) {
      Print(*options);
    } else {
      Live(*options);
    }
  });
}

}  // namespace atp::cli
