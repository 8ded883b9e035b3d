// SPDX-License-Identifier: Apache-2.0
#include "cli/run.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>

#include "cli/driver_probe.h"
#include "cli/error.h"
#include "cli/machine_file.h"
#include "cli/run_watch.h"
#include "cli/servable.h"
#include "cli/size.h"
#include "protocol/share_report.h"

namespace atp::cli {
namespace {

constexpr const char* kDriver = "libcuda.so.1";
constexpr const char* kPolicies[] = {"learned", "managed", "off"};

[[noreturn]] void Fail(const std::string& message) { throw CommandError(kExitOwnFailure, message); }

bool IsFile(const std::string& path) { return access(path.c_str(), R_OK) == 0; }

// "value" and what the variable had before, without naming the value twice when commands are
// nested.
std::string Prepend(const std::string& value, const char* before, char separator) {
  if (!before || !*before) return value;
  const std::string rest = before;
  if (rest == value || rest.rfind(value + separator, 0) == 0) return rest;
  return value + separator + rest;
}

// As ATP_WAIT is understood.
bool IsDuration(const std::string& text) {
  const size_t unit = text.find_first_not_of("0123456789");
  if (text == "off") return true;
  if (text.empty() || unit == 0) return false;
  const std::string given = unit == std::string::npos ? "s" : text.substr(unit);
  return given == "s" || given == "ms" || given == "m";
}

void CheckPolicy(const std::string& policy) {
  for (const char* known : kPolicies) {
    if (policy == known) return;
  }
  Fail("unknown policy '" + policy + "': use learned, managed or off");
}

// Only what can be known: shares in percent, and devices that the driver does not have, are not
// compared.
void CheckBudgetFits(const std::string& budget, const std::vector<Card>& cards) {
  const auto parsed = ParseBudget(budget);
  if (!parsed) return;
  for (const auto& [device, share] : *parsed) {
    for (size_t i = 0; i < cards.size(); ++i) {
      const bool is_meant = device == -1 || device == static_cast<int>(i);
      if (!is_meant || share.bytes <= cards[i].bytes) continue;
      Fail("the budget " + budget + " is larger than device " + std::to_string(i) + ", which has " +
           FormatBytes(cards[i].bytes) +
           ": choose a smaller --budget, or leave it out to use what is free");
    }
  }
}

// Starts the driver once in a child where an error of ours can still be told from one of the
// program's.
void CheckDriver(const RunOptions& options, const Installation& installation) {
  if (options.sim.empty() && options.budget.empty() && !options.require) return;
  const bool simulated = !options.sim.empty();
  const std::string library = simulated ? installation.sim_folder + "/" + kDriver : kDriver;
  std::map<std::string, std::string> environment =
      RunEnvironment(options, installation, std::getenv);
  environment.erase("LD_PRELOAD");
  environment["ATP_SIM_STATS"] = environment["ATP_SIM_TRACE"] = "";  // these belong to the program
  const DriverProbe probe = ProbeDriver(library, environment);
  const bool serves = probe.loaded && probe.status == 0 && !probe.cards.empty();
  if (!serves && simulated) {
    Fail("the simulated machine '" + options.sim + "' does not start (cuInit answers " +
         std::to_string(probe.status) + "); its own message is above");
  }
  if (!serves && options.require) {
    Fail(probe.loaded
             ? "--require: the CUDA driver finds no usable device (cuInit answers " +
                   std::to_string(probe.status) + "); check nvidia-smi, or use --sim PROFILE"
             : std::string("--require: no CUDA driver: ") + kDriver +
                   " was not found; install NVIDIA's driver, or use --sim PROFILE");
  }
  if (!options.budget.empty()) CheckBudgetFits(options.budget, probe.cards);
}

void CheckRequired(const RunOptions& options) {
  const char* inherited = std::getenv("ATP_POLICY");
  const std::string policy = options.policy.empty() && inherited ? inherited : options.policy;
  for (const char* off : {"off", "0", "false", "no", "empty"}) {
    if (policy == off)
      Fail("--require: the policy is '" + policy +
           "', so the shim would do nothing; use learned or managed");
  }
  const char* path = std::getenv("PATH");
  const std::string file = FindProgram(options.program[0], path ? path : "");
  if (file.empty()) return;  // exec says it better
  const std::string reason = WhyNotServable(file);
  if (!reason.empty()) Fail("--require: " + reason);
}

[[noreturn]] void Exec(const RunOptions& options) {
  std::vector<char*> arguments;
  for (const std::string& argument : options.program)
    arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  const int code = errno == ENOENT ? kExitNotFound : kExitNotExecutable;
  throw CommandError(code, options.program[0] + ": " + std::strerror(errno));
}

// A program that is killed cannot write its page itself.
bool WantsPage(const RunOptions& options) {
  const char* inherited = std::getenv("ATP_REPORT");
  const std::string report = options.report.empty() && inherited ? inherited : options.report;
  return report.ends_with(".html");
}

std::string SimulatedCosts(const std::string& machine) {
  try {
    return policy::SimulatedCosts(ReadMachineFile(machine));
  } catch (const CommandError& error) {
    Fail(error.what());
  }
}

// Gives the program's exit code where it stays its parent; else does not return.
int Run(const RunOptions& options) {
  if (options.program.empty()) Fail("no program given: atp run [options] -- PROGRAM [ARGUMENT...]");
  const Installation installation =
      FindInstallation(std::filesystem::read_symlink("/proc/self/exe"));
  CheckOptions(options, installation);
  if (options.require) CheckRequired(options);
  CheckDriver(options, installation);
  const auto environment = RunEnvironment(options, installation, std::getenv);
  const auto start = [&] {
    for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
    Exec(options);
  };
  if (options.progress || WantsPage(options)) return RunWatched(options.progress, start);
  start();
  return kExitOwnFailure;
}

}  // namespace

Installation FindInstallation(const std::string& command) {
  Installation found;
  const auto prefix = std::filesystem::path(command).parent_path().parent_path();
  const auto first = [&](std::initializer_list<const char*> names) -> std::string {
    for (const char* name : names) {
      if (IsFile(prefix / name)) return prefix / name;
    }
    return "";
  };
  found.shim = first({ATP_LIBRARY_FOLDER "/libatpshim.so", "lib/libatpshim.so"});
  const std::filesystem::path driver =
      first({ATP_LIBRARY_FOLDER "/atp/sim/libcuda.so.1", "lib/sim/libcuda.so.1"});
  found.sim_folder = driver.parent_path();
  return found;
}

void CheckOptions(const RunOptions& options, const Installation& installation) {
  if (!options.policy.empty()) CheckPolicy(options.policy);
  if (!options.budget.empty() && !ParseBudget(options.budget)) {
    Fail("malformed --budget '" + options.budget + "': " + std::string(kSizeForms) +
         ", a share of the card as 80%, or one per device as 0=16GiB,1=80%");
  }
  if (!options.wait.empty() && !IsDuration(options.wait)) {
    Fail("malformed --wait '" + options.wait + "': write 30s, 500ms, 2m or off");
  }
  if (!options.sim_memory.empty() && !ParseBytes(options.sim_memory)) {
    Fail("malformed --sim-memory '" + options.sim_memory + "': " + std::string(kSizeForms));
  }
  if (!options.sim.empty() && installation.sim_folder.empty()) {
    Fail("--sim " + options.sim + ": no simulated driver (" + kDriver +
         ") is installed beside this command; " + "build it with cmake --build, or reinstall");
  }
  if (installation.shim.empty()) {
    Fail(
        "libatpshim.so is not installed beside this command; build it with cmake --build, or "
        "reinstall");
  }
  if (installation.shim.find_first_of(": ") != std::string::npos) {
    Fail("the path '" + installation.shim +
         "' has a space or colon, which LD_PRELOAD cannot hold; move the installation");
  }
}

std::map<std::string, std::string> RunEnvironment(const RunOptions& options,
                                                  const Installation& installation,
                                                  const Lookup& getenv) {
  std::map<std::string, std::string> set;
  set["LD_PRELOAD"] = Prepend(installation.shim, getenv("LD_PRELOAD"), ':');
  if (!options.sim.empty()) {
    set["LD_LIBRARY_PATH"] = Prepend(installation.sim_folder, getenv("LD_LIBRARY_PATH"), ':');
    set["ATP_SIM_GPU"] = options.sim;
  }
  if (!options.sim_memory.empty()) set["ATP_SIM_MEMORY"] = options.sim_memory;
  if (!options.sim_costs.empty()) {
    // What the user sets by hand comes last, and so holds.
    const char* by_hand = getenv("ATP_SIM_SET");
    set["ATP_SIM_SET"] = options.sim_costs + (by_hand != nullptr && *by_hand ? "," : "") +
                         (by_hand != nullptr ? by_hand : "");
  }
  if (!options.budget.empty()) set["ATP_BUDGET"] = options.budget;
  if (!options.weight.empty()) set["ATP_WEIGHT"] = options.weight;
  if (!options.priority.empty()) set["ATP_PRIORITY"] = options.priority;
  if (!options.wait.empty()) set["ATP_WAIT"] = options.wait;
  if (!options.policy.empty()) set["ATP_POLICY"] = options.policy;
  if (!options.report.empty()) set["ATP_REPORT"] = options.report;
  return set;
}

void AddRunCommand(CLI::App& app, const std::vector<std::string>& after_mark) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* run = app.add_subcommand(
      "run", "Run a program under the shim: atp run [options] -- PROGRAM [ARGUMENT...]");
  auto* sim =
      run->add_option("--sim", options->sim, "Run on the simulated machine with this GPU profile");
  run->add_option("--sim-memory", options->sim_memory, "Memory of the simulated card, as 16GiB")
      ->needs(sim);
  run->add_option("--sim-machine", options->sim_machine,
                  "File of `atp calibrate`: the simulated machine costs what that one was measured "
                  "to cost")
      ->needs(sim);
  run->add_option("--budget", options->budget,
                  "Device memory that the shim may keep resident: 16GiB, 80%, 0=16GiB,1=80%");
  run->add_option("--weight", options->weight,
                  "Against other jobs of the same priority on a card that atpd shares out")
      ->check(CLI::Range(protocol::kLeastWeight, protocol::kMostWeight));
  run->add_option("--priority", options->priority, "There, higher comes first")
      ->check(CLI::Range(-protocol::kMostPriority, protocol::kMostPriority));
  run->add_option(
      "--wait", options->wait,
      "How long to wait for memory that others hold, instead of being refused: 30s, 2m");
  run->add_option("--policy", options->policy, "learned (default), managed (no hints) or off");
  run->add_option("--report", options->report,
                  "Write a page about the run (run.html), or its figures (run.json)");
  run->add_flag("--progress", options->progress,
                "Say on stderr how fast it runs, what moves, and how far from the bound that is");
  run->add_flag(
      "--require", options->require,
      "End with 125 when the program cannot be served, instead of running it without the shim");
  run->footer(
      "Exit code: the program's own; 125 an error of atp run, 126 the program cannot be executed, "
      "127 it was not found.");
  run->prefix_command();
  run->callback([run, options, after_mark] {
    options->program = run->remaining();
    if (!options->program.empty() && options->program[0][0] == '-') {
      Fail("unknown option " + options->program[0] +
           " (see atp run --help; a program comes after --)");
    }
    // Without a mark of ours the program comes first, and a mark behind it is the program's own.
    if (!options->program.empty() && !after_mark.empty()) options->program.push_back("--");
    options->program.insert(options->program.end(), after_mark.begin(), after_mark.end());
    if (!options->sim_machine.empty()) options->sim_costs = SimulatedCosts(options->sim_machine);
    if (const int code = Run(*options); code != 0) throw CLI::RuntimeError(code);
  });
}

}  // namespace atp::cli
