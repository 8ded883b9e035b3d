// SPDX-License-Identifier: Apache-2.0
// Unmodified programs share one simulated card, without anybody who divides it among them.
#include "tests/preload/share/shared_card.h"

#include "tests/preload/running.h"
#include "tests/preload/train.h"

namespace atp::preload {
namespace {

std::vector<std::string> Train(int iterations) { return TrainCommand(256, 8, iterations); }

const Environment kPlain = {{"ATP_POLICY", "managed"}, {"ATP_SIM_MEMORY", "20MiB"}};

JobOutcome Alone(int iterations) {
  return OutcomeOf(RunChild(Train(iterations), OnTinyCard(true, kPlain)));
}

TEST(SharedCard, ProgramsPushEachOthersPagesOutAndComputeTheSame) {
  const JobOutcome alone = Alone(4);
  ASSERT_EQ(alone.finished.exit_code, 0) << alone.finished.err;
  const auto both = RunTogether({{Train(4), {}}, {Train(4), {}}}, kPlain);
  for (const JobOutcome& job : both) {
    ASSERT_EQ(job.finished.exit_code, 0) << job.finished.err;
    EXPECT_EQ(job.checksum, alone.checksum);
    ASSERT_EQ(job.iteration_ms.size(), 4u);
    EXPECT_GT(job.iteration_ms.back(), 2 * alone.iteration_ms.back());
  }
}

TEST(SharedCard, TheSameProgramsTakeTheSameVirtualTimeInEachRun) {
  const auto once = RunTogether({{Train(3), {}}, {Train(3), {}}}, kPlain);
  const auto again = RunTogether({{Train(3), {}}, {Train(3), {}}}, kPlain);
  for (size_t i = 0; i < once.size(); ++i) {
    ASSERT_EQ(once[i].finished.exit_code, 0) << once[i].finished.err;
    EXPECT_EQ(once[i].finished.out, again[i].finished.out);
  }
}

TEST(SharedCard, AProgramThatIsKilledLeavesItsMemoryToTheOther) {
  const double alone = Alone(4).iteration_ms.back();
  SimulatedCard card(2);
  int out[2];
  ASSERT_EQ(pipe2(out, O_CLOEXEC), 0);
  const pid_t victim = fork();
  if (victim == 0) {
    dup2(out[1], STDOUT_FILENO);
    Environment environment = OnTinyCard(true, kPlain);
    environment["ATP_SIM_CARD"] = card.socket() + ",1";
    environment["ATP_SOCKET"] = "off";
    for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
    execl(ATP_EXAMPLES "/train_transformer", "train_transformer", "--layers", "1", "--width", "256",
          "--sequence", "8", "--iterations", "1000000", nullptr);
    _exit(127);
  }
  close(out[1]);
  JobOutcome survivor;
  std::thread other([&] {
    Environment environment = OnTinyCard(true, kPlain);
    environment["ATP_SIM_CARD"] = card.socket() + ",0";
    survivor = OutcomeOf(RunChild(Train(12), environment));
  });
  int lines = 0;
  for (char c; lines < 4 && read(out[0], &c, 1) == 1;) lines += c == '\n';
  kill(victim, SIGKILL);
  other.join();
  close(out[0]);
  waitpid(victim, nullptr, 0);
  ASSERT_EQ(survivor.finished.exit_code, 0) << survivor.finished.err;
  ASSERT_EQ(survivor.iteration_ms.size(), 12u);
  EXPECT_GT(survivor.iteration_ms[1], 2 * alone);
  EXPECT_NEAR(survivor.iteration_ms.back(), alone, alone / 100);
}

// Blocks of 8 MiB on a card of 64, plain for whoever is not under the shim, or has to keep them so.
struct Neighbours {
  Running Start(int member, bool shim, int blocks, Environment environment) {
    environment.insert({{"ATP_SIM_MEMORY", "64MiB"},
                        {"ATP_SIM_CARD", card.socket() + "," + std::to_string(member)},
                        {"ATP_LOG", "warn"}});
    return Running({ATP_PROGRAM_FOLDER "/host_memory", "plain", std::to_string(blocks), "8"},
                   OnTinyCard(shim, environment));
  }
  SimulatedCard card{2};
};

TEST(SharedCard, PlainMemoryThatANeighbourHoldsIsWaitedFor) {
  Neighbours both;
  Running first = both.Start(0, false, 6, {});
  Running second = both.Start(
      1, true, 4, {{"ATP_NATIVE", "host_memory"}, {"ATP_WAIT", "10m"}, {"ATP_SIM_START", "1000"}});
  ASSERT_TRUE(second.Says("waiting for it")) << second.said();
  ASSERT_TRUE(first.Says("holds 48 MiB, CUDA_SUCCESS")) << first.said();
  first.Kill();
  EXPECT_TRUE(second.Says("holds 32 MiB, CUDA_SUCCESS")) << second.said();
  EXPECT_EQ(second.Finish(), 0) << second.said();
}

TEST(SharedCard, AnotherCardThanThatOfTheFirstProgramIsRefused) {
  const auto both = RunTogether(
      {{Train(1), {{"ATP_SIM_MEMORY", "20MiB"}}}, {Train(1), {{"ATP_SIM_MEMORY", "24MiB"}}}},
      {{"ATP_POLICY", "managed"}});
  EXPECT_NE(both[0].finished.exit_code == 0, both[1].finished.exit_code == 0);
  EXPECT_NE((both[0].finished.err + both[1].finished.err).find("another card"), std::string::npos);
}

}  // namespace
}  // namespace atp::preload
