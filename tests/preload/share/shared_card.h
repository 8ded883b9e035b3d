// SPDX-License-Identifier: Apache-2.0
// Programs that share one simulated card, each in a process and with an environment of its own.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <regex>
#include <string>
#include <thread>
#include <vector>

#include "tests/preload/simulated.h"

namespace atp::preload {

// The process that holds the card; listens when the constructor returns.
class SimulatedCard {
 public:
  explicit SimulatedCard(int members) {
    static int cards = 0;
    socket_ =
        testing::TempDir() + "card." + std::to_string(getpid()) + "." + std::to_string(++cards);
    int err[2];
    EXPECT_EQ(pipe2(err, O_CLOEXEC), 0);
    pid_ = fork();
    if (pid_ == 0) {
      dup2(err[1], STDERR_FILENO);
      execl(ATP_SIMCARD, "simcard", "--socket", socket_.c_str(), "--members",
            std::to_string(members).c_str(), nullptr);
      _exit(127);
    }
    close(err[1]);
    char c = 0;
    while (c != '\n' && read(err[0], &c, 1) == 1) {
    }
    close(err[0]);
  }
  ~SimulatedCard() {
    kill(pid_, SIGTERM);
    waitpid(pid_, nullptr, 0);
    unlink(socket_.c_str());
  }
  SimulatedCard(const SimulatedCard&) = delete;
  SimulatedCard& operator=(const SimulatedCard&) = delete;
  const std::string& socket() const { return socket_; }

 private:
  std::string socket_;
  pid_t pid_ = -1;
};

struct Job {
  std::vector<std::string> command;
  Environment environment;
};

struct JobOutcome {
  Finished finished;
  std::vector<double> iteration_ms;
  std::string checksum;
};

inline JobOutcome OutcomeOf(Finished finished) {
  JobOutcome outcome;
  static const std::regex time("ms ([0-9.]+)"), sum("checksum ([0-9a-f]+)");
  const std::string& out = finished.out;
  for (std::sregex_iterator it(out.begin(), out.end(), time), end; it != end; ++it) {
    outcome.iteration_ms.push_back(std::stod((*it)[1]));
  }
  std::smatch found;
  if (std::regex_search(out, found, sum)) outcome.checksum = found[1];
  outcome.finished = std::move(finished);
  return outcome;
}

// All at once, numbered in their order.
inline std::vector<JobOutcome> RunTogether(const std::vector<Job>& jobs,
                                           const Environment& common) {
  SimulatedCard card(static_cast<int>(jobs.size()));
  std::vector<JobOutcome> outcomes(jobs.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < jobs.size(); ++i) {
    threads.emplace_back([&, i] {
      Environment environment = jobs[i].environment;
      environment.insert(common.begin(), common.end());
      environment["ATP_SIM_CARD"] = card.socket() + "," + std::to_string(i);
      outcomes[i] = OutcomeOf(RunChild(jobs[i].command, OnTinyCard(true, environment)));
    });
  }
  for (std::thread& thread : threads) thread.join();
  return outcomes;
}

}  // namespace atp::preload
