// SPDX-License-Identifier: Apache-2.0
// The record and the page of real runs, on the simulated machine: however they end.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "tests/preload/child.h"

namespace atp::preload {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

class Report : public testing::Test {
 protected:
  Report() {
    std::string name = testing::TempDir() + "atp-report-XXXXXX";
    folder_ = mkdtemp(name.data());
    fs::create_directory(folder_ / "runtime");
  }
  ~Report() override { fs::remove_all(folder_); }

  Environment Machine(Environment more = {}) const {
    Environment environment = {{"LD_PRELOAD", Preload({ATP_SHIM_FILE})},
                               {"LD_LIBRARY_PATH", ATP_SIM_FOLDER},
                               {"ATP_SIM_GPU", "tiny"},
                               {"ATP_SIM_MEMORY", "20MiB"},
                               {"XDG_RUNTIME_DIR", folder_ / "runtime"}};
    for (const auto& [name, value] : more) environment[name] = value;
    return environment;
  }
  std::vector<std::string> Steps(int steps, const std::string& end) const {
    return {ATP_STEPS, ATP_BUMP, std::to_string(steps), end};
  }
  std::vector<std::string> UnderAtpRun(std::vector<std::string> options, int steps,
                                       const std::string& end) const {
    std::vector<std::string> command = {ATP_COMMAND, "run",          "--sim",
                                        "tiny",      "--sim-memory", "20MiB"};
    command.insert(command.end(), options.begin(), options.end());
    command.push_back("--");
    for (const std::string& word : Steps(steps, end)) command.push_back(word);
    return command;
  }
  Environment Folder(Environment more = {}) const {
    more["XDG_RUNTIME_DIR"] = folder_ / "runtime";
    return more;
  }
  Json Figures(const std::string& of) const {
    const Finished run = RunChild({ATP_COMMAND, "report", of, "--json"}, Folder());
    EXPECT_EQ(run.exit_code, 0) << run.err;
    return Json::parse(run.out, nullptr, false);
  }
  std::string Page() const {
    std::stringstream text;
    text << std::ifstream(folder_ / "run.html").rdbuf();
    return text.str();
  }
  std::vector<std::string> Records() const {
    std::vector<std::string> files;
    for (const auto& entry : fs::directory_iterator(folder_ / "runtime")) {
      files.push_back(entry.path());
    }
    return files;
  }

  fs::path folder_;
};

TEST_F(Report, APageIsWrittenAtExitAndTheRecordIsRemoved) {
  const std::string page = folder_ / "run.html";
  const Finished run = RunChild(Steps(8, "return"), Machine({{"ATP_REPORT", page}}));
  ASSERT_EQ(run.exit_code, 0) << run.out << run.err;
  for (const char* text : {"</html>", "bound_safe", "x bound_safe", "Waiting, by cause and launch",
                           "Link use both ways", "Bump", "Residency", "simulated machine"}) {
    EXPECT_NE(Page().find(text), std::string::npos) << text;
  }
  EXPECT_EQ(Page().find("http://"), Page().find("http://www.w3.org/2000/svg"));
  EXPECT_EQ(Page().find("<script"), std::string::npos);
  EXPECT_EQ(fs::status(page).permissions() & fs::perms::all,
            fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_TRUE(Records().empty());
}

TEST_F(Report, AProgramThatFitsIsToldSo) {
  const Finished run =
      RunChild(Steps(3, "return"),
               Machine({{"ATP_REPORT", folder_ / "run.html"}, {"ATP_SIM_MEMORY", "1GiB"}}));
  ASSERT_EQ(run.exit_code, 0) << run.out << run.err;
  EXPECT_NE(Page().find("Everything fits"), std::string::npos);
}

TEST_F(Report, NothingIsWrittenOrPrintedUnlessAsked) {
  const Finished run = RunChild(Steps(8, "return"), Machine({{"ATP_LOG", "error"}}));
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_EQ(run.out + run.err, "");
  EXPECT_TRUE(Records().empty());
}

TEST_F(Report, TheLastCompletePeriodIsThereAfterEveryEnd) {
  for (const char* end : {"kill", "_exit"}) {
    RunChild(Steps(9, end), Machine());
    ASSERT_EQ(Records().size(), 1u) << end;
    const Json figures = Figures(Records()[0]);
    const Json& device = figures["devices"][0];
    EXPECT_EQ(figures["command"].get<std::string>().find(ATP_STEPS), 0u);
    // Two before the plan; of the other seven the last has not been seen to end.
    EXPECT_EQ(device["iterations"], 8) << end << device;
    EXPECT_GT(device["iteration_s"], 0.0);
    EXPECT_GT(device["plain_iteration_s"], 0.0);
    EXPECT_GE(device["iteration_s"].get<double>() * 1.0001,
              device["measured"]["bound_safe_s"].get<double>());
    fs::remove(Records()[0]);
  }
}

TEST_F(Report, WhereNoRecordCanBeWrittenTheProgramGoesOn) {
  const Finished run = RunChild(Steps(10, "return"),
                                Machine({{"ATP_RECORD", folder_ / "absent"}, {"ATP_LOG", "info"}}));
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_NE(run.err.find("no record of this run can be written"), std::string::npos) << run.err;
  EXPECT_NE(run.err.find("x bound_safe"), std::string::npos) << run.err;
}

TEST_F(Report, WhatWasSwitchedOffIsSaid) {
  RunChild(Steps(8, "_exit"), Machine({{"ATP_SIM_FAULT", "cuMemPrefetchAsync_v2:1+=999"}}));
  ASSERT_EQ(Records().size(), 1u);
  const Json device = Figures(Records()[0])["devices"][0];
  EXPECT_TRUE(device["off"]);
  EXPECT_NE(device["switched_off"].dump().find("the driver refuses them"), std::string::npos);
  EXPECT_NE(device["words"].dump().find("gives no hints any more"), std::string::npos);
}

TEST_F(Report, MoversOnThreadsAreRecordedAsWell) {
  const Finished run =
      RunChild(Steps(8, "return"),
               Machine({{"ATP_REPORT", folder_ / "run.html"}, {"ATP_EXECUTOR", "threads"}}));
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_NE(Page().find("plain managed memory"), std::string::npos);
}

TEST_F(Report, OldRecordsOfProcessesThatAreGoneAreRemoved) {
  const auto leave = [&](const std::string& name, bool old) {
    const fs::path file = folder_ / "runtime" / name;
    std::ofstream(file) << "left";
    if (old) fs::last_write_time(file, fs::file_time_type::clock::now() - std::chrono::hours(25));
  };
  const std::string gone = "atp-99999999.record", new_one = "atp-99999998.record",
                    live = "atp-" + std::to_string(getpid()) + ".record",
                    other = "atp-1.record.txt";
  leave(gone, true);
  leave(new_one, false);
  leave(live, true);
  leave(other, true);
  RunChild(Steps(8, "return"), Machine());
  std::set<std::string> left;
  for (const std::string& file : Records()) left.insert(fs::path(file).filename());
  EXPECT_EQ(left, (std::set<std::string>{new_one, live, other}));
}

TEST_F(Report, ARunThatWasKilledUnderAtpRunHasItsPage) {
  const Finished run =
      RunChild(UnderAtpRun({"--report", folder_ / "run.html"}, 8, "kill"), Folder());
  EXPECT_EQ(run.signal, SIGKILL);
  EXPECT_NE(Page().find("x bound_safe"), std::string::npos);
  EXPECT_TRUE(Records().empty());
}

TEST_F(Report, ProgressIsSaidOnStandardErrorOnly) {
  const Finished run = RunChild(UnderAtpRun({"--progress"}, 8, "return"), Folder());
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_EQ(run.out, "");
  for (const char* text : {"atp: 7 iterations", " /s, each ", " in and ", " x bound_safe"}) {
    EXPECT_NE(run.err.find(text), std::string::npos) << text << "\n" << run.err;
  }
  EXPECT_TRUE(Records().empty());
}

TEST_F(Report, ExitCodesPassThroughTheWatchingParent) {
  std::vector<std::string> command = {ATP_COMMAND, "run", "--progress", "--",
                                      "/bin/sh",   "-c",  "exit 7"};
  EXPECT_EQ(RunChild(command, Folder()).exit_code, 7);
  command.back() = "kill -TERM $$";
  EXPECT_EQ(RunChild(command, Folder()).signal, SIGTERM);
  command = {ATP_COMMAND, "run", "--progress", "--", "/nonexistent/program"};
  EXPECT_EQ(RunChild(command, Folder()).exit_code, 127);
}

TEST_F(Report, AWorkerThatNeverUsesTheDeviceWritesNothing) {
  // Into a file of its own, the child of the fork would have written its page.
  const Finished run = RunChild(Steps(8, "fork"), Machine({{"ATP_REPORT", folder_ / "%p.html"}}));
  ASSERT_EQ(run.exit_code, 0) << run.out;
  int pages = 0;
  for (const auto& entry : fs::directory_iterator(folder_)) {
    pages += entry.path().extension() == ".html";
  }
  EXPECT_EQ(pages, 1);
}

// A program that waits at its end, with its standard input and output in our hands.
class Waiting {
 public:
  Waiting(const std::vector<std::string>& command, const Environment& environment) {
    int in[2], out[2];
    if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0) return;
    const pid_t self = getpid();
    pid_ = fork();
    if (pid_ == 0) {
      DieWithParent(self);
      dup2(in[0], STDIN_FILENO);
      dup2(out[1], STDOUT_FILENO);
      for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
      std::vector<char*> arguments;
      for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
      arguments.push_back(nullptr);
      execv(arguments[0], arguments.data());
      _exit(127);
    }
    close(in[0]);
    close(out[1]);
    to_ = in[1];
    char buffer[64];
    ready_ = read(out[0], buffer, sizeof buffer) > 0;
    close(out[0]);
  }
  ~Waiting() {
    close(to_);
    waitpid(pid_, nullptr, 0);
  }
  void Send(int signal_number) const {
    kill(pid_, signal_number);
    siginfo_t info;
    waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT);
  }
  bool ready() const { return ready_; }
  std::string pid() const { return std::to_string(pid_); }

 private:
  pid_t pid_ = -1;
  int to_ = -1;
  bool ready_ = false;
};

TEST_F(Report, ALiveProcessIsReportedWithoutADaemonAndAlsoAfterItWasKilled) {
  const std::string page = folder_ / "run.html";
  std::string pid;
  {
    const Waiting program(Steps(8, "wait"), Machine());
    ASSERT_TRUE(program.ready());
    pid = program.pid();
    EXPECT_EQ(Figures(pid)["devices"][0]["iterations"], 7);
    const Finished run = RunChild({ATP_COMMAND, "report", pid, "-o", page}, Environment());
    EXPECT_EQ(run.exit_code, 0) << run.err;
    EXPECT_NE(Page().find("x bound_safe"), std::string::npos);
    program.Send(SIGTERM);
  }
  EXPECT_EQ(Figures(pid)["devices"][0]["iterations"], 7);
}

// Twelve iterations more by the same plan: what the shim counts and what the machine does.
TEST_F(Report, MovesAndTimesAreThoseOfTheMachine) {
  Json machine[2], device[2];
  for (int i = 0; i < 2; ++i) {
    const std::string stats = folder_ / "stats.json";
    const Finished run =
        RunChild(Steps(12 + 12 * i, "return"),
                 Machine({{"ATP_SIM_STATS", stats}, {"ATP_RECORD", folder_ / "runtime"}}));
    ASSERT_EQ(run.exit_code, 0) << run.err;
    ASSERT_EQ(Records().size(), 1u);  // kept, because the user named the folder
    std::ifstream(stats) >> machine[i];
    device[i] = Figures(Records()[0])["devices"][0];
    fs::remove(Records()[0]);
  }
  const auto more = [](const Json& of_first, const Json& of_second) {
    return of_second.get<double>() - of_first.get<double>();
  };
  EXPECT_EQ(more(device[0]["iterations"], device[1]["iterations"]), 12);
  for (const auto& [ours, theirs] : {std::pair("in_bytes", "h2d"), std::pair("out_bytes", "d2h")}) {
    const double bytes = more(device[0][ours], device[1][ours]);
    EXPECT_GT(bytes, 0);
    EXPECT_EQ(bytes, more(machine[0]["bytes"][theirs]["prefetch"],
                          machine[1]["bytes"][theirs]["prefetch"]));
  }
  const double seconds =
      1e-3 * more(machine[0]["virtual_ms"]["total"], machine[1]["virtual_ms"]["total"]);
  EXPECT_NEAR(device[1]["iteration_s"].get<double>(), seconds / 12, 0.02 * seconds / 12);
}

TEST_F(Report, WhatIsNoRecordIsRefused) {
  const std::string file = folder_ / "file";
  std::ofstream(file) << "not a record";
  const Finished run = RunChild({ATP_COMMAND, "report", file}, Folder());
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_NE(run.err.find("not the record of a run"), std::string::npos) << run.err;
  EXPECT_EQ(RunChild({ATP_COMMAND, "report", "999999999"}, Folder()).exit_code, 1);
  EXPECT_EQ(RunChild({ATP_COMMAND, "report", "/dev/zero"}, Folder()).exit_code, 1);
}

}  // namespace
}  // namespace atp::preload
