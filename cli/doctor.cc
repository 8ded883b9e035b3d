// SPDX-License-Identifier: Apache-2.0
#include "cli/doctor.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <sstream>

#include "cli/error.h"
#include "cli/host_room.h"
#include "cli/run.h"
#include "cli/servable.h"
#include "frameworks/recognise.h"

namespace atp::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
constexpr int kExitUsage = 2;

struct DoctorOptions {
  RunOptions run;
  bool json = false;
};

class TemporaryFolder {
 public:
  TemporaryFolder() {
    const char* base = std::getenv("TMPDIR");
    std::string name = std::string(base && *base ? base : "/tmp") + "/atp-doctor-XXXXXX";
    if (!mkdtemp(name.data())) throw CommandError(kExitNotServed, "no temporary folder: " + name);
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

struct Ended {
  int code = -1;  // 128 + signal for a program that was killed, as a shell says it
  std::string errors;
};

// Standard output of the program becomes our standard error: ours belongs to the findings.
// `errors` catches its standard error instead of showing it.
Ended RunIn(const std::map<std::string, std::string>& environment,
            const std::vector<std::string>& command, bool catch_errors) {
  Ended ended;
  int ends[2] = {-1, -1};
  if (catch_errors && pipe2(ends, O_CLOEXEC) != 0) return ended;
  const pid_t child = fork();
  if (child == 0) {
    dup2(STDERR_FILENO, STDOUT_FILENO);
    if (catch_errors) dup2(ends[1], STDERR_FILENO);
    for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
    std::vector<char*> arguments;
    for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    execvp(arguments[0], arguments.data());
    _exit(errno == ENOENT ? kExitNotFound : kExitNotExecutable);
  }
  if (catch_errors) {
    close(ends[1]);
    char buffer[4096];
    for (ssize_t n; (n = read(ends[0], buffer, sizeof buffer)) > 0;) {
      ended.errors.append(buffer, static_cast<size_t>(n));
    }
    close(ends[0]);
  }
  int status = 0;
  waitpid(child, &status, 0);
  ended.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return ended;
}

Json OtherPreloads(const Installation& installation) {
  Json others = Json::array();
  std::string all = Variable("LD_PRELOAD");
  std::ifstream system("/etc/ld.so.preload");
  std::stringstream text;
  text << system.rdbuf();
  all += " " + text.str();
  std::replace(all.begin(), all.end(), ':', ' ');
  std::istringstream words(all);
  for (std::string word; words >> word;) {
    if (word != installation.shim) others.push_back(word);
  }
  return others;
}

std::vector<Json> ReadReports(const fs::path& folder) {
  std::vector<Json> reports;
  for (const auto& entry : fs::directory_iterator(folder)) {
    std::ifstream in(entry.path());
    Json report = Json::parse(in, nullptr, /*allow_exceptions=*/false);
    if (!report.is_discarded() && report.contains("lookups")) reports.push_back(std::move(report));
  }
  return reports;
}

Json ExamineProgram(const DoctorOptions& options, const Installation& installation) {
  const std::string file = FindProgram(options.run.program[0], Variable("PATH"));
  if (file.empty()) {
    throw CommandError(kExitUsage, options.run.program[0] + ": there is no such program");
  }
  Json program = {
      {"command", options.run.program}, {"file", file}, {"unservable", WhyNotServable(file)}};
  program["frameworks"] = DescribeFrameworks(
      frameworks::Recognise(file, options.run.program,
                            [](const char* name) -> const char* { return std::getenv(name); }));
  if (program["unservable"] != "") return program;
  const TemporaryFolder folder;
  auto environment = RunEnvironment(options.run, installation, std::getenv);
  environment["ATP_REPORT"] = (folder.path() / "%p.json").string();
  program["exit_code"] = RunIn(environment, options.run.program, false).code;
  program.update(MergeReports(ReadReports(folder.path())));
  return program;
}

int Examine(const DoctorOptions& options) {
  const Installation installation = FindInstallation(fs::read_symlink("/proc/self/exe"));
  CheckOptions(options.run, installation);
  const bool simulated = !options.run.sim.empty();
  const std::string library =
      simulated ? installation.sim_folder + "/libcuda.so.1" : "libcuda.so.1";
  const auto environment = RunEnvironment(options.run, installation, std::getenv);
  auto quiet = environment;
  quiet.erase("LD_PRELOAD");
  quiet["ATP_SIM_STATS"] = quiet["ATP_SIM_TRACE"] = "";
  const HostRoom host = FindHostRoom();
  Json findings = {
      {"driver", DescribeDriver(library, ProbeDriver(library, quiet))},
      {"host_available_bytes", host.bytes},
      {"host_limited_by", host.of_the_group ? "control group" : ""},
      {"shim", installation.shim},
      {"policy", options.run.policy.empty() ? Variable("ATP_POLICY") : options.run.policy},
      {"other_preloads", OtherPreloads(installation)}};
  // The dynamic linker says on standard error that it could not load a library, and goes on.
  const Ended loaded = RunIn({{"LD_PRELOAD", installation.shim}}, {"/bin/true"}, true);
  findings["shim_loads"] = loaded.code == 0 && loaded.errors.empty();
  findings["shim_error"] = loaded.errors.substr(0, loaded.errors.find('\n'));
  if (!options.run.program.empty()) findings["program"] = ExamineProgram(options, installation);
  findings["advice"] = Advice(findings);
  findings["reasons"] = WhyNotServed(findings);
  findings["served"] = findings["reasons"].empty();
  std::cout << (options.json ? findings.dump(2) + "\n" : AsText(findings));
  return findings["served"] ? 0 : kExitNotServed;
}

}  // namespace

void AddDoctorCommand(CLI::App& app, const std::vector<std::string>& after_mark) {
  auto options = std::make_shared<DoctorOptions>();
  CLI::App* doctor = app.add_subcommand(
      "doctor",
      "Say whether the shim serves this machine, or a program: atp doctor [options] [-- "
      "PROGRAM [ARGUMENT...]]");
  doctor->add_flag("--json", options->json, "Print the findings as JSON on stdout");
  auto* sim = doctor->add_option("--sim", options->run.sim,
                                 "Examine the simulated machine with this GPU profile");
  doctor
      ->add_option("--sim-memory", options->run.sim_memory,
                   "Memory of the simulated card, as 16GiB")
      ->needs(sim);
  doctor->footer(
      "The program is run once, under the shim; its standard output goes to standard error.\n"
      "Exit code: 0 the program (or, without one, programs in general) will be served; 1 not; 2 "
      "usage.");
  doctor->callback([options, after_mark] {
    options->run.program = after_mark;
    if (const int code = Examine(*options); code != 0) throw CLI::RuntimeError(code);
  });
}

}  // namespace atp::cli
