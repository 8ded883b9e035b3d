// SPDX-License-Identifier: Apache-2.0
// Unmodified programs under the shim share one simulated card, which a real daemon divides among
// them (docs/daemon.md, "Sharing a card").
#include <algorithm>
#include <cmath>
#include <fstream>
#include <numeric>

#include "tests/daemon/daemon_process.h"
#include "tests/preload/running.h"
#include "tests/preload/share/shared_card.h"
#include "tests/preload/train.h"

namespace atp::preload {
namespace {

// 54 MiB; 0.8 of a card of 68.
std::vector<std::string> Train(int iterations) { return TrainCommand(512, 16, iterations); }
constexpr const char* kCard = "68MiB";

double Sum(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

// Iterations a millisecond, of all jobs together, while each runs.
double Throughput(const std::vector<JobOutcome>& jobs) {
  double throughput = 0;
  for (const JobOutcome& job : jobs) {
    throughput += static_cast<double>(job.iteration_ms.size()) / Sum(job.iteration_ms);
  }
  return throughput;
}

class Sharing : public testing::Test {
 protected:
  std::string Folder() {
    return testing::TempDir() + "sharing." + std::to_string(getpid()) + "." +
           testing::UnitTest::GetInstance()->current_test_info()->name();
  }
  void TearDown() override { std::filesystem::remove_all(Folder()); }

  std::vector<JobOutcome> Run(const std::vector<Job>& jobs,
                              const std::vector<std::string>& options = {}) {
    daemon::DaemonProcess daemon(Folder(), options);
    auto outcomes = RunTogether(
        jobs, {{"ATP_SIM_MEMORY", kCard}, {"ATP_SOCKET", daemon.socket()}, {"ATP_LOG", "info"}});
    for (const JobOutcome& job : outcomes) {
      EXPECT_EQ(job.finished.exit_code, 0) << job.finished.err;
    }
    daemon.End(SIGTERM);
    said_ = daemon.said();
    return outcomes;
  }
  std::string said_;
};

TEST_F(Sharing, TwoJobsOfFourFifthsOfACardDoMoreThanOnPlainManagedMemory) {
  const auto plain = RunTogether({{Train(4), {}}, {Train(4), {}}},
                                 {{"ATP_SIM_MEMORY", kCard}, {"ATP_POLICY", "managed"}});
  const auto shared = Run({{Train(10), {}}, {Train(10), {}}});
  ASSERT_EQ(shared[0].iteration_ms.size(), 10u);
  EXPECT_EQ(shared[0].checksum, shared[1].checksum);
  EXPECT_GE(Throughput(shared), 1.5 * Throughput(plain)) << said_;
}

// Budgets that a program was given, in MiB, by its log.
std::vector<double> Budgets(const JobOutcome& job) {
  static const std::regex given("budget ([0-9.]+) MiB by atpd");
  const std::string& log = job.finished.err;
  std::vector<double> budgets;
  for (std::sregex_iterator it(log.begin(), log.end(), given), end; it != end; ++it) {
    budgets.push_back(std::stod((*it)[1]));
  }
  return budgets;
}

// The first runs by itself at first, on all of the card. From its fourth iteration on the other one
// has all but the least that the first can run with.
TEST_F(Sharing, AJobOfAHigherPriorityHasItsMemoryWithinThreeIterations) {
  const auto jobs =
      Run({{Train(14), {}}, {Train(6), {{"ATP_PRIORITY", "1"}, {"ATP_SIM_START", "30"}}}});
  ASSERT_EQ(jobs[1].iteration_ms.size(), 6u);
  const std::vector<double> low = Budgets(jobs[0]), high = Budgets(jobs[1]);
  ASSERT_GE(low.size(), 1u) << said_;
  ASSERT_GE(high.size(), 1u) << said_;
  const double least = *std::min_element(low.begin(), low.end());
  EXPECT_LT(least, 34);
  EXPECT_TRUE(std::any_of(high.begin(), high.end(), [&](double mib) {
    return std::abs(mib + least - 68) < 1;
  })) << said_;
  for (size_t i = 3; i < 6; ++i) {
    EXPECT_LT(jobs[1].iteration_ms[i], 0.75 * jobs[1].iteration_ms[1]) << i << "\n" << said_;
  }
}

TEST_F(Sharing, AJobWaitsUntilThereIsRoomForIt) {
  // The first one must have 50 MiB while it runs, the second one 40.
  const auto jobs =
      Run({{Train(6), {{"ATP_BUDGET", "50MiB"}, {"ATP_WAIT", "10m"}}},
           {Train(3), {{"ATP_BUDGET", "40MiB"}, {"ATP_WAIT", "10m"}, {"ATP_SIM_START", "2"}}}});
  EXPECT_NE(jobs[1].finished.err.find("waiting (ATP_WAIT)"), std::string::npos)
      << jobs[1].finished.err;
  EXPECT_EQ(jobs[1].finished.err.find("going on all the same"), std::string::npos);
  EXPECT_EQ(jobs[0].finished.err.find("waiting (ATP_WAIT)"), std::string::npos);
  EXPECT_EQ(jobs[1].iteration_ms.size(), 3u);
}

TEST_F(Sharing, ALimitForAUserHoldsForTheJobs) {
  const auto jobs = Run({{Train(4), {}}}, {"--job-limits", "*:budget=40MiB"});
  EXPECT_NE(jobs[0].finished.err.find("budget 40.0 MiB by atpd"), std::string::npos)
      << jobs[0].finished.err;
}

// By `atp budget`, while it runs, and taken back.
TEST_F(Sharing, ABudgetThatAPersonSetsHoldsForTheRunningJob) {
  if (std::string(ATP_COMMAND).empty()) GTEST_SKIP() << "the command is not built";
  daemon::DaemonProcess daemon(Folder());
  Running job(
      Train(1000000),
      OnTinyCard(true,
                 {{"ATP_SIM_MEMORY", kCard}, {"ATP_SOCKET", daemon.socket()}, {"ATP_LOG", "info"}}),
      /*waits=*/false);
  const auto set = [&](const std::string& process, const std::string& size) {
    return RunChild({ATP_COMMAND, "budget", process, size, "--json"},
                    {{"ATP_SOCKET", daemon.socket()}});
  };
  ASSERT_TRUE(job.Says("iter 4")) << job.said();
  const Finished set_to = set(std::to_string(job.pid()), "40MiB");
  EXPECT_EQ(set_to.out, "{\"most_bytes\":41943040,\"cards\":1}\n") << set_to.err;
  EXPECT_TRUE(job.Says("budget 40.0 MiB by atpd")) << job.said();
  EXPECT_EQ(set(std::to_string(job.pid()), "off").exit_code, 0);
  EXPECT_TRUE(job.Says("by atpd, was 40.0 MiB")) << job.said();
  EXPECT_EQ(set("1", "40MiB").exit_code, 1);
  EXPECT_EQ(set(std::to_string(job.pid()), "much").exit_code, 2);
}

TEST_F(Sharing, WithADaemonThatIsKilledJobsGoOnWithTheirLastBudgets) {
  const std::string expected =
      OutcomeOf(RunChild(Train(6), OnTinyCard(true, {{"ATP_SIM_MEMORY", kCard}}))).checksum;
  daemon::DaemonProcess daemon(Folder());
  SimulatedCard card(2);
  std::vector<JobOutcome> outcomes(2);
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&, i] {
      Environment environment =
          OnTinyCard(true, {{"ATP_SIM_MEMORY", kCard},
                            {"ATP_SOCKET", daemon.socket()},
                            {"ATP_LOG_FILE", Folder() + "/log." + std::to_string(i)}});
      environment["ATP_LOG"] = "info";
      environment["ATP_SIM_CARD"] = card.socket() + "," + std::to_string(i);
      outcomes[i] = OutcomeOf(RunChild(Train(6), environment));
    });
  }
  // Both have a budget when both logs say so.
  const auto given = [&](int i) {
    std::ifstream in(Folder() + "/log." + std::to_string(i));
    const std::string text(std::istreambuf_iterator<char>(in), {});
    return text.find("by atpd") != std::string::npos;
  };
  while (!given(0) || !given(1)) std::this_thread::yield();
  daemon.End(SIGKILL);
  for (std::thread& thread : threads) thread.join();
  for (const JobOutcome& job : outcomes) {
    EXPECT_EQ(job.finished.exit_code, 0) << job.finished.err;
    EXPECT_EQ(job.checksum, expected);
  }
}

}  // namespace
}  // namespace atp::preload
