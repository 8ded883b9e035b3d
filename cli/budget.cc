// SPDX-License-Identifier: Apache-2.0
#include "cli/budget.h"

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/daemon_client.h"
#include "cli/error.h"
#include "cli/size.h"

namespace atp::cli {
namespace {

struct BudgetOptions {
  uint64_t job = 0;
  std::string size, socket;
  bool json = false;
};

// Process numbers are small (PID_MAX_LIMIT of Linux), jobs draw theirs from all of 64 bits.
constexpr uint64_t kProcesses = uint64_t{1} << 22;

uint64_t BytesOf(const std::string& size) {
  if (size == "off") return 0;
  if (const auto bytes = ParseBytes(size)) return *bytes;
  throw CommandError(2, size + " is no size: " + std::string(kSizeForms) + ", or off");
}

void Run(const BudgetOptions& options) {
  protocol::Message message;
  message.kind = protocol::MessageKind::kBudget;
  message.number = BytesOf(options.size);
  if (options.job <= kProcesses) {
    message.text = std::to_string(options.job);
  } else {
    message.job = options.job;
  }
  const DaemonAnswer answer = AskDaemon(options.socket, message);
  if (options.json) {
    std::cout
        << nlohmann::ordered_json{{"most_bytes", message.number}, {"cards", answer.number}}.dump()
        << "\n";
    return;
  }
  std::cout << (message.number == 0 ? "no limit" : "at most " + FormatBytes(message.number))
            << " from now on, on " << answer.number << (answer.number == 1 ? " card" : " cards")
            << "\n";
}

}  // namespace

void AddBudgetCommand(CLI::App& app) {
  auto options = std::make_shared<BudgetOptions>();
  CLI::App* command = app.add_subcommand(
      "budget", "The most that a running job may have of its card, for as long as it runs.");
  command->add_option("job", options->job, "Its process, or its number (atp status --json)")
      ->required();
  command->add_option("size", options->size, "16GiB, 512MiB, ...; off: no limit any more")
      ->required();
  command->add_option("--socket", options->socket, "Of the daemon (default: where shims look)");
  command->add_flag("--json", options->json, "Print it as JSON on stdout instead");
  command->footer("Exit code: 0 done; 1 no daemon, or you have no such job on a card; 2 usage.");
  command->callback([options] { Run(*options); });
}

}  // namespace atp::cli
