// SPDX-License-Identifier: Apache-2.0
// Programs under the shim are killed at random points by another process, several at a time, beside
// a daemon and with a ledger of host memory in common. Whoever comes after them finds the node as
// if they had never been: the whole card, the whole host, and what was remembered before.
// ATP_PROGRAM_KILLS: how many, 1000 for the long run.
#include <poll.h>
#include <sys/syscall.h>

#include <algorithm>
#include <random>

#include "tests/daemon/daemon_process.h"
#include "tests/preload/share/shared_card.h"
#include "tests/preload/train.h"

namespace atp::preload {
namespace {

// 54 MiB on a card of 40. Beside a host that holds them once and not twice, so that what a dead
// process was promised would be missed.
std::vector<std::string> Train(int iterations) { return TrainCommand(512, 16, iterations); }

class Killed : public testing::Test {
 protected:
  Killed() : folder_(testing::TempDir() + "killed." + std::to_string(getpid())), daemon_(folder_) {}
  ~Killed() override { std::filesystem::remove_all(folder_); }

  Environment Node(const std::string& host) const {
    return OnTinyCard(true, {{"ATP_SIM_MEMORY", "40MiB"},
                             {"ATP_SOCKET", daemon_.socket()},
                             {"ATP_LEDGER", folder_ + "/ledger"},
                             {"ATP_SIM_HOST_MEMORY", host},
                             {"ATP_HOST_BUDGET", "100%"},
                             {"ATP_LOG", "info"}});
  }
  JobOutcome Run(const std::string& host) const {
    return OutcomeOf(RunChild(Train(6), Node(host)));
  }
  pid_t Start(const std::string& host) const {
    const pid_t self = getpid(), child = fork();
    if (child != 0) return child;
    DieWithParent(self);
    for (const auto& [name, value] : Node(host)) setenv(name.c_str(), value.c_str(), 1);
    setenv("ATP_LOG", "off", 1);
    std::vector<std::string> words = Train(1000000);
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    if (freopen("/dev/null", "w", stdout) == nullptr) _exit(8);
    if (freopen("/dev/null", "w", stderr) == nullptr) _exit(8);
    execv(arguments[0], arguments.data());
    _exit(127);
  }
  // After `milliseconds`, or earlier if it ends by itself.
  static void Kill(pid_t child, int milliseconds) {
    pollfd ended = {static_cast<int>(syscall(SYS_pidfd_open, child, 0)), POLLIN, 0};
    ASSERT_GE(ended.fd, 0);
    poll(&ended, 1, milliseconds);
    close(ended.fd);
    kill(child, SIGKILL);
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status) || WEXITSTATUS(status) != 127);
  }

  const std::string folder_;
  daemon::DaemonProcess daemon_;
};

// Budgets that a program was given, and whether it was known, by its log.
std::string WhatItWasGiven(const std::string& log) {
  std::string given;
  static const std::regex said("budget [0-9.]+ MiB by atpd|is remembered from an earlier run");
  for (std::sregex_iterator it(log.begin(), log.end(), said), end; it != end; ++it) {
    given += it->str() + "\n";
  }
  return given;
}

TEST_F(Killed, AtAnyPointAProgramLeavesTheNodeAsItWas) {
  const char* wanted = getenv("ATP_PROGRAM_KILLS");
  const int kills = wanted != nullptr ? atoi(wanted) : 15;
  constexpr int kAtOnce = 3, kMostMs = 200;
  const std::string ample = "1GiB", tight = "96MiB";
  ASSERT_EQ(Run(ample).finished.exit_code, 0);  // the daemon knows it from now on
  const JobOutcome before = Run(tight);
  ASSERT_EQ(before.finished.exit_code, 0) << before.finished.err;
  const std::string given = WhatItWasGiven(before.finished.err);
  EXPECT_NE(given.find("remembered"), std::string::npos) << before.finished.err;

  std::mt19937 random(4);
  std::uniform_int_distribution<int> life(0, kMostMs);
  std::vector<pid_t> running;
  const auto kill_first = [&] {
    Kill(running.front(), life(random));
    running.erase(running.begin());
  };
  for (int i = 0; i < kills; ++i) {
    running.push_back(Start(ample));
    if (running.size() == kAtOnce) kill_first();
  }
  while (!running.empty()) kill_first();

  const JobOutcome after = Run(tight);
  EXPECT_EQ(after.finished.exit_code, 0) << after.finished.err;
  EXPECT_EQ(after.checksum, before.checksum);
  EXPECT_EQ(WhatItWasGiven(after.finished.err), given);
  // Those that were killed may have taught the daemon something: the plan need not be the very
  // same.
  ASSERT_EQ(after.iteration_ms.size(), before.iteration_ms.size());
  for (size_t i = 0; i < after.iteration_ms.size(); ++i) {
    EXPECT_NEAR(after.iteration_ms[i], before.iteration_ms[i], before.iteration_ms[i] / 100) << i;
  }
}

// The host above is tight indeed: it does not hold a second program beside one that lives.
TEST_F(Killed, WhatAProgramThatLivesWasPromisedIsMissed) {
  int out[2];
  ASSERT_EQ(pipe2(out, O_CLOEXEC), 0);
  const pid_t self = getpid(), child = fork();
  if (child == 0) {
    DieWithParent(self);
    dup2(out[1], STDOUT_FILENO);
    for (const auto& [name, value] : Node("96MiB")) setenv(name.c_str(), value.c_str(), 1);
    setenv("ATP_LOG", "off", 1);
    std::vector<std::string> words = Train(1000000);
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    execv(arguments[0], arguments.data());
    _exit(127);
  }
  close(out[1]);
  char c = 0;
  while (c != '\n' && read(out[0], &c, 1) == 1) {  // its first iteration is over
  }
  EXPECT_NE(Run("96MiB").finished.exit_code, 0);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  close(out[0]);
  EXPECT_EQ(Run("96MiB").finished.exit_code, 0);
}

// A test that is killed takes what it has started along.
TEST(KilledTest, LeavesNoProgramBehind) {
  int out[2];
  ASSERT_EQ(pipe(out), 0);
  const std::string forever = "echo $$ >&" + std::to_string(out[1]) + "; exec sleep 100000";
  const pid_t test = fork();
  if (test == 0) {
    RunChild({"/bin/sh", "-c", forever}, {});
    _exit(0);
  }
  char text[32] = {};
  ASSERT_GT(read(out[0], text, sizeof text - 1), 0);
  pollfd ended = {static_cast<int>(syscall(SYS_pidfd_open, atoi(text), 0)), POLLIN, 0};
  ASSERT_GE(ended.fd, 0) << text;
  EXPECT_EQ(poll(&ended, 1, 0), 0);
  kill(test, SIGKILL);
  waitpid(test, nullptr, 0);
  EXPECT_EQ(poll(&ended, 1, -1), 1);
  for (const int fd : {ended.fd, out[0], out[1]}) close(fd);
}

}  // namespace
}  // namespace atp::preload
