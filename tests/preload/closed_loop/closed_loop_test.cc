// SPDX-License-Identifier: Apache-2.0
// The whole loop: an unmodified program on a card that is too small, under the real library, on the
// simulated machine, in virtual time.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <numeric>
#include <regex>
#include <string>
#include <vector>

#include "tests/preload/closed_loop/launch.h"
#include "tests/preload/train.h"

namespace atp::preload {
namespace {

// A training run of 54 MiB in tensors of 1 to 4 MiB, or a sweep of 64 MiB.
const std::vector<std::string> kTrain = TrainCommand(512, 16, 8);
const std::vector<std::string> kSweep = {ATP_EXAMPLES "/stream_sweep", "--layers", "16", "--passes",
                                         "8"};

class ClosedLoop : public testing::TestWithParam<std::vector<std::string>> {
 protected:
  static constexpr const char* kBig = "1GiB";
  static constexpr const char* kSmall = "44MiB";
};

TEST_P(ClosedLoop, ResultsAreThoseOfABigCard) {
  const Outcome big = Launch(GetParam(), kBig, {{"ATP_POLICY", "off"}});
  ASSERT_EQ(big.finished.exit_code, 0) << big.finished.err;
  EXPECT_EQ(Launch(GetParam(), kSmall, {{"ATP_POLICY", "off"}}).finished.exit_code, 2);
  const Environment settings[] = {
      {}, {{"ATP_POLICY", "managed"}}, {{"ATP_EXECUTOR", "threads"}}, {{"ATP_SIM_CMA", "0"}}};
  for (const Environment& setting : settings) {
    // Without concurrent managed access nothing can move: memory stays plain, and must fit.
    const bool plain = setting.count("ATP_SIM_CMA") > 0;
    const Outcome run = Launch(GetParam(), plain ? kBig : kSmall, setting);
    EXPECT_EQ(run.finished.exit_code, 0) << run.finished.err;
    EXPECT_EQ(run.results, big.results);
    EXPECT_EQ(run.stats["discard_violations"], 0);
  }
}

TEST_P(ClosedLoop, LearnedPlansBeatPlainManagedMemory) {
  const Outcome managed = Launch(GetParam(), kSmall, {{"ATP_POLICY", "managed"}});
  const Outcome learned = Launch(GetParam(), kSmall, {});
  ASSERT_EQ(learned.iteration_ms.size(), managed.iteration_ms.size());
  EXPECT_LT(learned.iteration_ms.back(), 0.5 * managed.iteration_ms.back());
}

TEST_P(ClosedLoop, VirtualTimeIsTheSameInEveryRun) {
  const Outcome one = Launch(GetParam(), kSmall, {});
  const Outcome two = Launch(GetParam(), kSmall, {{"ATP_SIM_THREADS", "1"}});
  EXPECT_EQ(one.iteration_ms, two.iteration_ms);
  EXPECT_EQ(one.stats["virtual_ms"]["total"], two.stats["virtual_ms"]["total"]);
}

TEST_P(ClosedLoop, AfterTheLockNothingFaults) {
  std::vector<std::string> longer = GetParam();
  longer.back() = "12";
  const Outcome some = Launch(GetParam(), kSmall, {});
  const Outcome more = Launch(longer, kSmall, {});
  // Four more iterations of a locked plan add next to no page faults; managed memory adds them at
  // the same rate for ever.
  const Outcome managed = Launch(GetParam(), kSmall, {{"ATP_POLICY", "managed"}});
  const double per_iteration = managed.stats["faults"]["gpu"].get<double>() / 8;
  const double added =
      more.stats["faults"]["gpu"].get<double>() - some.stats["faults"]["gpu"].get<double>();
  EXPECT_LE(added, 4 * 0.005 * per_iteration);
}

TEST_P(ClosedLoop, ADriverThatRefusesHintsCostsTimeOnly) {
  const Outcome big = Launch(GetParam(), kBig, {{"ATP_POLICY", "off"}});
  for (const char* fault : {"cuMemPrefetchAsync_v2:1+=999", "cuMemPrefetchAsync_v2:20+=999",
                            "cuStreamWaitEvent:3+=999", "cuStreamCreate:1=2"}) {
    const Outcome run = Launch(GetParam(), kSmall, {{"ATP_SIM_FAULT", fault}});
    EXPECT_EQ(run.results, big.results) << fault << run.finished.err;
    EXPECT_EQ(run.finished.exit_code, 0) << fault << run.finished.err;
  }
}

TEST_P(ClosedLoop, TheSummaryTellsHowCloseToTheBoundItRan) {
  const Outcome run = Launch(GetParam(), kSmall, {{"ATP_LOG", "info"}});
  EXPECT_NE(run.finished.err.find("periods seen"), std::string::npos) << run.finished.err;
  std::smatch ratio;
  ASSERT_TRUE(std::regex_search(run.finished.err, ratio, std::regex("([0-9.]+) x bound_safe")))
      << run.finished.err;
  EXPECT_GE(std::stod(ratio[1]), 1.0);
  EXPECT_LE(std::stod(ratio[1]), 3.0);
}

// An evaluation every few steps: the steps after it run by the plan that was there before it.
TEST(ClosedLoopPhases, APhaseThatComesBackRunsByItsPlanAgain) {
  std::vector<std::string> command = kTrain;
  command.back() = "18";
  command.insert(command.end(), {"--evaluate-every", "6"});
  const Outcome learned = Launch(command, "44MiB", {});
  const std::vector<double>& ms = learned.iteration_ms;
  ASSERT_EQ(ms.size(), 18u + 3) << learned.finished.err;
  const double before = ms[5];
  // The third step after each evaluation: 9 and 15.
  EXPECT_LE(ms[9], 1.05 * before);
  EXPECT_LE(ms[16], 1.05 * before);
  EXPECT_EQ(learned.results, Launch(command, "1GiB", {{"ATP_POLICY", "off"}}).results);
}

// At 20 MiB a launch of the optimizer touches more than there is room for; an evaluation does not.
TEST(ClosedLoopPhases, APhaseThatNoPlanFitsLeavesTheOthersTheirs) {
  std::vector<std::string> command = kTrain;
  command[2] = "2";
  command.insert(command.end(), {"--evaluate-every", "2"});
  const Outcome learned = Launch(command, "20MiB", {{"ATP_LOG", "info"}});
  EXPECT_EQ(learned.results, Launch(command, "1GiB", {{"ATP_POLICY", "off"}}).results);
  const std::string& log = learned.finished.err;
  const size_t given_up = log.find("no plan for a phase of");
  ASSERT_NE(given_up, std::string::npos) << log;
  EXPECT_NE(log.find("plan 1: period of", given_up), std::string::npos) << log;
}

// Experts of which the data choose a few, 111 MB on a card of 64 MiB.
const std::vector<std::string> kExperts = {ATP_EXAMPLES "/decode",
                                           "--layers",
                                           "2",
                                           "--width",
                                           "512",
                                           "--heads",
                                           "8",
                                           "--batch",
                                           "4",
                                           "--experts",
                                           "6",
                                           "--tokens",
                                           "14",
                                           "--context",
                                           "32"};

TEST(ClosedLoopWithoutAPeriod, WhatLaunchesLackComesBeforeThem) {
  const Outcome big = Launch(kExperts, "1GiB", {{"ATP_POLICY", "off"}});
  const Outcome managed = Launch(kExperts, "64MiB", {{"ATP_POLICY", "managed"}});
  const Outcome learned = Launch(kExperts, "64MiB", {});
  EXPECT_EQ(learned.results, big.results);
  EXPECT_EQ(learned.stats["discard_violations"], 0);
  ASSERT_EQ(learned.iteration_ms.size(), 14u);
  const auto behind = [](const Outcome& run) {
    return std::accumulate(run.iteration_ms.begin() + 8, run.iteration_ms.end(), 0.0);
  };
  EXPECT_LT(behind(learned), 0.5 * behind(managed));
  const Outcome off = Launch(kExperts, "64MiB", {{"ATP_DISABLE", "demand"}});
  EXPECT_NEAR(behind(off), behind(managed), 0.02 * behind(managed));
}

TEST(ClosedLoopWithoutAPeriod, ResultsAreTheSameWithThreadsAndWithADriverThatRefusesHints) {
  const Outcome big = Launch(kExperts, "1GiB", {{"ATP_POLICY", "off"}});
  const Environment settings[] = {{{"ATP_EXECUTOR", "threads"}},
                                  {{"ATP_SIM_FAULT", "cuMemPrefetchAsync_v2:9+=999"}},
                                  {{"ATP_SIM_FAULT", "cuMemAdvise_v2:3+=999"}}};
  for (const Environment& setting : settings) {
    const Outcome run = Launch(kExperts, "64MiB", setting);
    EXPECT_EQ(run.finished.exit_code, 0) << run.finished.err;
    EXPECT_EQ(run.results, big.results) << setting.begin()->second;
  }
}

// Each rank has a loop of its own; the buffers that they share by IPC stay plain.
TEST(ClosedLoopRanks, FourProcessesOnFourSmallCardsLearnTheSame) {
  const std::vector<std::string> command = {ATP_EXAMPLES "/train_ddp",
                                            "--layers",
                                            "1",
                                            "--width",
                                            "512",
                                            "--sequence",
                                            "16",
                                            "--iterations",
                                            "5",
                                            "--exchange",
                                            "256"};
  const Environment four = {{"ATP_SIM_DEVICES", "4"}, {"ATP_EXPORTERS", "off"}};
  Environment native = four;
  native["ATP_POLICY"] = "off";
  const Outcome big = Launch(command, "1GiB", native);
  ASSERT_EQ(big.finished.exit_code, 0) << big.finished.err;
  const Outcome small = Launch(command, "44MiB", four);
  EXPECT_EQ(small.finished.exit_code, 0) << small.finished.err;
  EXPECT_EQ(small.results, big.results);
  EXPECT_NE(small.finished.err.find("memory will move"), std::string::npos);
}

// A card of M, and a large one of which M may be used.
TEST(ClosedLoopBudget, ABudgetOnALargeCardIsLikeASmallCard) {
  std::vector<std::string> command = kTrain;
  command.back() = "12";
  const Outcome small = Launch(command, "44MiB", {});
  const std::string timeline = testing::TempDir() + "budget." + std::to_string(getpid());
  const Outcome large =
      Launch(command, "1GiB", {{"ATP_BUDGET", "44MiB"}, {"ATP_SIM_TIMELINE", timeline}});
  EXPECT_EQ(large.results, small.results);
  EXPECT_NEAR(large.iteration_ms.back(), small.iteration_ms.back(),
              0.05 * small.iteration_ms.back());
  // What lies on the card when a kernel ends, in the last iterations.
  std::vector<double> resident;
  std::ifstream in(timeline);
  for (std::string line; std::getline(in, line);) {
    std::smatch found;
    static const std::regex bytes("\"resident\":(\\d+)");
    if (std::regex_search(line, found, bytes)) resident.push_back(std::stod(found[1]));
  }
  unlink(timeline.c_str());
  ASSERT_GT(resident.size(), 100u);
  const double most = *std::max_element(
      resident.end() - static_cast<ptrdiff_t>(resident.size() / 3), resident.end());
  EXPECT_LE(most, 1.02 * (44 << 20));
  EXPECT_GT(most, 0.5 * (44 << 20));
}

INSTANTIATE_TEST_SUITE_P(Programs, ClosedLoop, testing::Values(kTrain, kSweep),
                         [](const auto& instance) {
                           return instance.index == 0 ? "Train" : "Sweep";
                         });

// All tensors in one allocation: parts of it are planned.
TEST(WeightBuffer, IsSweptTensorByTensorAndResultsStay) {
  const std::vector<std::string> command = {ATP_EXAMPLES "/weight_buffer",
                                            "--layers",
                                            "33",
                                            "--width",
                                            "256",
                                            "--hidden",
                                            "704",
                                            "--vocabulary",
                                            "1024",
                                            "--passes",
                                            "8"};
  const Outcome big = Launch(command, "1GiB", {{"ATP_POLICY", "off"}});
  ASSERT_EQ(big.finished.exit_code, 0) << big.finished.err;
  const Outcome managed = Launch(command, "46MiB", {{"ATP_POLICY", "managed"}});
  const Outcome learned = Launch(command, "46MiB", {});
  EXPECT_EQ(managed.results, big.results);
  EXPECT_EQ(learned.results, big.results) << learned.finished.err;
  EXPECT_EQ(learned.stats["discard_violations"], 0);
  ASSERT_EQ(learned.iteration_ms.size(), 8u);
  EXPECT_LT(learned.iteration_ms.back(), 0.5 * managed.iteration_ms.back());
}

// Looking takes nothing from the program: results and virtual times are those of a run without it.
TEST(Recompute, TheLogSaysWhichLaunchesMayRunAgain) {
  const std::string wanted = "launches of the period may run again";
  const std::vector<std::string> command = {ATP_EXAMPLES "/train_residual",
                                            "--blocks",
                                            "3",
                                            "--width",
                                            "512",
                                            "--batch",
                                            "32",
                                            "--iterations",
                                            "6"};
  const Outcome without = Launch(command, "52MiB", {{"ATP_LOG", "info"}});
  EXPECT_EQ(without.finished.err.find(wanted), std::string::npos);
  const Outcome with = Launch(command, "52MiB", {{"ATP_LOG", "info"}, {"ATP_RECOMPUTE", "report"}});
  EXPECT_EQ(with.results, without.results);
  EXPECT_EQ(with.iteration_ms, without.iteration_ms);
  std::smatch found;
  const std::regex line("([0-9]+) of ([0-9]+) " + wanted);
  ASSERT_TRUE(std::regex_search(with.finished.err, found, line)) << with.finished.err;
  EXPECT_GT(std::stoul(found[1]), 0u);
  EXPECT_LT(std::stoul(found[1]), std::stoul(found[2]));
  EXPECT_NE(with.finished.err.find("may not: "), std::string::npos);
}

}  // namespace
}  // namespace atp::preload
