// SPDX-License-Identifier: Apache-2.0
// The command atp: one subcommand per file. A command that fails throws CommandError; nothing else
// ends the process.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <string>
#include <vector>

#include "cli/bound.h"
#include "cli/budget.h"
#include "cli/calibrate.h"
#include "cli/convert.h"
#include "cli/doctor.h"
#include "cli/error.h"
#include "cli/generate.h"
#include "cli/memory.h"
#include "cli/model.h"
#include "cli/plan.h"
#include "cli/replay.h"
#include "cli/report.h"
#include "cli/run.h"
#include "cli/status.h"
#include "cli/top.h"

namespace {

// Cuts off what follows the first "--", if the command is one that starts a program.
std::vector<std::string> TakeAfterMark(std::vector<std::string>* arguments) {
  if (arguments->empty() || (arguments->front() != "run" && arguments->front() != "doctor")) {
    return {};
  }
  const auto mark = std::find(arguments->begin(), arguments->end(), "--");
  if (mark == arguments->end()) return {};
  std::vector<std::string> after(mark + 1, arguments->end());
  arguments->erase(mark, arguments->end());
  return after;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  const std::string command = arguments.empty() ? "" : arguments[0];
  const std::vector<std::string> after_mark = TakeAfterMark(&arguments);
  CLI::App app(
      "Runs CUDA programs that need more GPU memory than the card has, and shows how well.", "atp");
  app.set_version_flag("--version", "atp " ATP_VERSION);
  app.require_subcommand(1);
  atp::cli::AddRunCommand(app, after_mark);
  atp::cli::AddDoctorCommand(app, after_mark);
  atp::cli::AddReportCommand(app);
  atp::cli::AddStatusCommand(app);
  atp::cli::AddTopCommand(app);
  atp::cli::AddCalibrateCommand(app);
  atp::cli::AddMemoryCommands(app);
  atp::cli::AddBudgetCommand(app);
  atp::cli::AddBoundCommand(app);
  atp::cli::AddPlanCommand(app);
  atp::cli::AddReplayCommand(app);
  atp::cli::AddModelCommand(app);
  atp::cli::AddConvertCommand(app);
  atp::cli::AddGenerateCommand(app);

  // Programs started by `atp run` may use any small exit code, so that its usage errors have the
  // code of its other errors.
  const int usage_code = command == "run" ? atp::cli::kExitOwnFailure : 2;
  try {
    std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants them
    app.parse(arguments);
    return 0;
  } catch (const CLI::RuntimeError& error) {
    return error.get_exit_code();  // the command has said why
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : usage_code;
  } catch (const atp::cli::CommandError& error) {
    std::cerr << "atp " << command << ": " << error.what() << "\n";
    return error.exit_code();
  }
}
