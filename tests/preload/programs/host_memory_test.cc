// SPDX-License-Identifier: Apache-2.0
// Host memory that would not hold what is evicted kills a context. So memory is refused before
// that, and what was granted works to the end: for one process, and for all of a machine together.
#include <gtest/gtest.h>
#include <signal.h>

#include <memory>
#include <regex>

#include "tests/preload/simulated.h"

namespace atp::preload {
namespace {

Environment OnCardOf64MiB(const Environment& more) {
  Environment environment = more;
  environment["ATP_SIM_MEMORY"] = "64MiB";
  return OnTinyCard(true, environment);
}

std::vector<std::string> Program(const char* way, int blocks) {
  return {ATP_PROGRAM_FOLDER "/host_memory", way, std::to_string(blocks), "8"};
}

// A process with an open input, whose output is read line by line.
class Running {
 public:
  Running(const std::vector<std::string>& command, const Environment& environment) {
    int in[2], out[2];
    EXPECT_EQ(pipe2(in, O_CLOEXEC), 0);
    EXPECT_EQ(pipe2(out, O_CLOEXEC), 0);
    pid_ = fork();
    if (pid_ == 0) {
      dup2(in[0], STDIN_FILENO);
      dup2(out[1], STDOUT_FILENO);
      dup2(out[1], STDERR_FILENO);
      std::vector<char*> words, pairs;
      std::vector<std::string> texts = {"ATP_SOCKET=off", "ASAN_OPTIONS=detect_leaks=0"};
      for (const auto& [name, value] : environment) texts.push_back(name + "=" + value);
      for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
      for (const std::string& text : texts) pairs.push_back(const_cast<char*>(text.c_str()));
      words.push_back(const_cast<char*>("wait"));
      words.push_back(nullptr);
      pairs.push_back(nullptr);
      execve(words[0], words.data(), pairs.data());
      _exit(127);
    }
    close(in[0]);
    close(out[1]);
    in_ = in[1];
    out_ = out[0];
  }
  ~Running() {
    if (pid_ > 0) Kill();
    close(out_);
  }
  // Reads on until `text` has come, or the process has ended: false.
  bool Says(const std::string& text) {
    while (said_.find(text) == std::string::npos) {
      char buffer[4096];
      const ssize_t got = read(out_, buffer, sizeof buffer);
      if (got <= 0) return false;
      said_.append(buffer, static_cast<size_t>(got));
    }
    return true;
  }
  int Finish() {
    close(in_);
    Says("\nnothing that is ever said");
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  void Kill() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    close(in_);
    pid_ = 0;
  }
  const std::string& said() const { return said_; }
  int HeldMiB() const {
    std::smatch found;
    return std::regex_search(said_, found, std::regex("holds ([0-9]+) MiB")) ? stoi(found[1]) : -1;
  }

 private:
  pid_t pid_ = 0;
  int in_ = -1, out_ = -1;
  std::string said_;
};

class HostMemoryTest : public testing::TestWithParam<const char*> {};

// 128 MiB wanted, 64 on the card: half the card less than all on the host.
TEST_P(HostMemoryTest, IsRefusedBeforeAnEvictionFindsNone) {
  const Environment host = {{"ATP_SIM_HOST_MEMORY", "96MiB"}, {"ATP_HOST_BUDGET", "100%"}};
  const Finished run = RunChild(Program(GetParam(), 16), OnCardOf64MiB(host));
  EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
  EXPECT_EQ(run.out, "holds 96 MiB, CUDA_ERROR_OUT_OF_MEMORY\ncontext CUDA_SUCCESS\n");
  for (const char* part : {"8.0 MiB asked", "96.0 MiB already promised", "96.0 MiB, as ATP_HOST_",
                           "by host_memory (", "Remedy"}) {
    EXPECT_NE(run.err.find(part), std::string::npos) << part << " in " << run.err;
  }
}

TEST_P(HostMemoryTest, WithAPromiseThatTheHostCannotKeepTheContextIsLost) {
  const Environment host = {{"ATP_SIM_HOST_MEMORY", "96MiB"}, {"ATP_HOST_BUDGET", "1GiB"}};
  const Finished run = RunChild(Program(GetParam(), 16), OnCardOf64MiB(host));
  EXPECT_NE(run.exit_code, 0) << "the test above would pass without the shim's doing";
}

TEST_P(HostMemoryTest, WhatFitsTheCardNeedsNone) {
  const Environment host = {{"ATP_SIM_HOST_MEMORY", "4MiB"}};
  const Finished run = RunChild(Program(GetParam(), 6), OnCardOf64MiB(host));
  EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
  EXPECT_EQ(run.out, "holds 48 MiB, CUDA_SUCCESS\ncontext CUDA_SUCCESS\n");
}

INSTANTIATE_TEST_SUITE_P(Ways, HostMemoryTest, testing::Values("plain", "async", "range"),
                         [](const auto& way) { return way.param; });

class HostLedgerOfAMachine : public testing::Test {
 protected:
  HostLedgerOfAMachine() { unlink(ledger_.c_str()); }
  ~HostLedgerOfAMachine() override { unlink(ledger_.c_str()); }
  Environment Sharing(const char* budget, const Environment& more = {}) {
    Environment environment = more;
    environment["ATP_LEDGER"] = ledger_;
    environment["ATP_HOST_BUDGET"] = budget;
    environment["ATP_LOG"] = "warn";
    return OnCardOf64MiB(environment);
  }
  std::string ledger_ = testing::TempDir() + "machine." + std::to_string(getpid()) + ".ledger";
};

TEST_F(HostLedgerOfAMachine, EightProcessesShareOneLimit) {
  constexpr int kLimit = 400;
  const char* ways[] = {"plain", "async", "range"};
  std::vector<std::unique_ptr<Running>> running;
  for (int i = 0; i < 8; ++i) {
    running.push_back(std::make_unique<Running>(Program(ways[i % 3], 12), Sharing("400MiB")));
  }
  int held = 0, refused = 0;
  for (const auto& process : running) {
    ASSERT_TRUE(process->Says("MiB, CUDA_")) << process->said();
    held += process->HeldMiB();
    refused += process->HeldMiB() < 12 * 8;
  }
  EXPECT_LE(held, kLimit);
  EXPECT_GE(held, kLimit - 8 * 8) << "each may lack less than a block";
  EXPECT_GE(refused, 1) << "the sum of what is wanted exceeds the limit";
  for (const auto& process : running) {
    EXPECT_EQ(process->Finish(), 0) << process->said();
    EXPECT_NE(process->said().find("context CUDA_SUCCESS"), std::string::npos);
  }
}

TEST_F(HostLedgerOfAMachine, WhatAKilledProcessHeldIsThereForWhoWaits) {
  Running first(Program("plain", 12), Sharing("128MiB"));
  ASSERT_TRUE(first.Says("holds 96 MiB, CUDA_SUCCESS")) << first.said();
  Running second(Program("plain", 12), Sharing("128MiB", {{"ATP_WAIT", "10m"}}));
  ASSERT_TRUE(second.Says("waiting for it")) << second.said();
  first.Kill();
  EXPECT_TRUE(second.Says("holds 96 MiB, CUDA_SUCCESS")) << second.said();
  EXPECT_EQ(second.Finish(), 0) << second.said();
}

TEST_F(HostLedgerOfAMachine, NobodyIsWaitedForWhereNobodyHoldsAny) {
  const Finished run = RunChild(Program("plain", 12), Sharing("80MiB", {{"ATP_WAIT", "10m"}}));
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(run.out, "holds 80 MiB, CUDA_ERROR_OUT_OF_MEMORY\ncontext CUDA_SUCCESS\n");
}

}  // namespace
}  // namespace atp::preload
