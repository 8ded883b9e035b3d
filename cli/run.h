// SPDX-License-Identifier: Apache-2.0
// atp run: starts a program under the shim, on the machine's own driver or on the simulated
// machine. It only sets the environment and execs, so that the program has the same pid, terminal,
// signals and exit code as without it; but for --progress and a page, for which it stays the parent
// (run_watch.h).
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace atp::cli {

// As env(1) and nohup(1) have it: codes that a program itself seldom uses.
inline constexpr int kExitOwnFailure = 125, kExitNotExecutable = 126, kExitNotFound = 127;

struct RunOptions {
  std::string sim;          // profile of the simulated machine; empty = the machine's own driver
  std::string sim_memory;   // of the simulated card; empty = the profile's
  std::string sim_machine;  // file of atp calibrate; empty = the profile's costs
  std::string sim_costs;    // what it says, for ATP_SIM_SET
  std::string budget;       // ATP_BUDGET; empty = as in the environment
  std::string weight;       // ATP_WEIGHT; likewise
  std::string priority;     // ATP_PRIORITY; likewise
  std::string wait;         // ATP_WAIT; likewise
  std::string policy;       // ATP_POLICY; likewise
  std::string report;       // ATP_REPORT; likewise
  bool progress = false;    // say on stderr how it goes
  bool require = false;     // refuse to start a program that the shim cannot serve
  std::vector<std::string> program;
};

struct Installation {      // found beside the command itself; empty = not there
  std::string shim;        // .../libatpshim.so
  std::string sim_folder;  // holds the simulated libcuda.so.1 and libcudart.so.13
};

using Lookup = std::function<const char*(const char*)>;  // std::getenv, or a fake

// `after_mark` is what followed "--" on the command line: main cuts it off, because CLI11 would
// drop a second "--", which is the program's.
void AddRunCommand(CLI::App& app, const std::vector<std::string>& after_mark);

// `command` is the path of the atp binary. The same layout relative to it in the build tree and in
// an installed one.
Installation FindInstallation(const std::string& command);
// Throws CommandError on a value that is malformed or not allowed; looks at nothing but the options
// and the installation.
void CheckOptions(const RunOptions& options, const Installation& installation);
// The variables that the program gets in addition to what it inherits.
std::map<std::string, std::string> RunEnvironment(const RunOptions& options,
                                                  const Installation& installation,
                                                  const Lookup& getenv);

}  // namespace atp::cli
