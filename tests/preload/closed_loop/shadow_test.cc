// SPDX-License-Identifier: Apache-2.0
// ATP_RECOMPUTE=shadow: launches run again into scratch memory, and the program does not notice.
#include "tests/preload/closed_loop/launch.h"

namespace atp::preload {
namespace {

const std::vector<std::string> kActivations = {ATP_PROGRAMS "/program_activations"};
constexpr char kCard[] = "18MiB";

Outcome Shadowed(Environment environment) {
  environment["ATP_LOG"] = "info";
  environment["ATP_RECOMPUTE"] = "shadow";
  return Launch(kActivations, kCard, environment);
}

uint64_t Launches(const Outcome& outcome) {
  return outcome.stats["calls"]["cuLaunchKernel"].get<uint64_t>();
}

bool Says(const Outcome& outcome, const std::string& what) {
  return outcome.finished.err.find(what) != std::string::npos;
}

// 24 of 25 launches of a period write whole tensors, and run again in two of 24 periods.
TEST(Shadow, LaunchesThatAreProvenGiveTheSameBits) {
  const Outcome plain = Launch(kActivations, kCard, {});
  ASSERT_EQ(plain.finished.exit_code, 0) << plain.finished.out;
  const Outcome shadowed = Shadowed({});
  EXPECT_EQ(shadowed.results, plain.results);
  EXPECT_TRUE(Says(shadowed, "run again: 24 launches of a period gave the same bits"))
      << shadowed.finished.err;
  EXPECT_TRUE(Says(shadowed, "24 launches write whole ranges that could be dropped"));
  EXPECT_FALSE(Says(shadowed, "retired"));
  EXPECT_EQ(Launches(shadowed), Launches(plain) + 2 * 24);
  EXPECT_EQ(shadowed.stats["discard_violations"], 0);
}

// On a card that computes fast, so that the link is what it waits for.
TEST(Recompute, TheLogSaysWhatDroppingWouldGain) {
  const Outcome run =
      Launch(kActivations, kCard,
             {{"ATP_LOG", "info"}, {"ATP_RECOMPUTE", "report"}, {"ATP_SIM_GPU", "h100"}});
  const std::regex line(
      "24 launches write whole ranges that could be dropped; ([0-9]+) would run again for "
      "([0-9.]+) ms, ([0-9.]+) MiB dropped: a period of ([0-9.]+) ms instead of ([0-9.]+) ms");
  std::smatch found;
  ASSERT_TRUE(std::regex_search(run.finished.err, found, line)) << run.finished.err;
  EXPECT_GT(std::stoi(found[1]), 0);
  EXPECT_LT(std::stod(found[4]), 0.95 * std::stod(found[5]));
}

TEST(Shadow, OnThreadsOfOurOwnToo) {
  const Outcome plain = Launch(kActivations, kCard, {});
  const Outcome shadowed = Shadowed({{"ATP_EXECUTOR", "threads"}});
  EXPECT_EQ(shadowed.results, plain.results);
  EXPECT_FALSE(Says(shadowed, "retired")) << shadowed.finished.err;
  EXPECT_EQ(shadowed.stats["discard_violations"], 0);
}

// The program would see the failure of its own call: only what fails for us is made to.
TEST(Shadow, ADriverThatRefusesItsCallsIsTheProgramsNoTrouble) {
  const Outcome plain = Launch(kActivations, kCard, {});
  for (const char* fault : {"cuMemHostRegister_v2:1+=2", "cuMemAlloc_v2:1+=2",
                            "cuMemcpyDtoHAsync_v2:1+=1", "cuMemcpyDtoHAsync_v2:7+=1"}) {
    const Outcome shadowed = Shadowed({{"ATP_SIM_FAULT", fault}});
    EXPECT_EQ(shadowed.finished.exit_code, 0) << fault << shadowed.finished.out;
    EXPECT_EQ(shadowed.results, plain.results) << fault;
    EXPECT_TRUE(Says(shadowed, "not looked at: ")) << fault << shadowed.finished.err;
  }
}

// A hole in a proof would show as a launch that is retired, one in the shadow as another result.
TEST(Shadow, RandomProgramsDoNotNotice) {
  uint64_t ran_again = 0;
  for (const char* seed : {"1", "2", "3", "4"}) {
    const std::vector<std::string> command = {ATP_PROGRAMS "/program_random_launches", seed};
    const Outcome plain = Launch(command, "256MiB", {{"ATP_POLICY", "off"}});
    ASSERT_EQ(plain.finished.exit_code, 0) << seed << plain.finished.out;
    const Outcome shadowed =
        Launch(command, "14MiB", {{"ATP_LOG", "info"}, {"ATP_RECOMPUTE", "shadow"}});
    EXPECT_EQ(shadowed.results, plain.results) << seed;
    EXPECT_FALSE(Says(shadowed, "retired")) << seed << shadowed.finished.err;
    EXPECT_EQ(shadowed.stats["discard_violations"], 0) << seed;
    ran_again += Launches(shadowed) - Launches(plain);
  }
  EXPECT_GT(ran_again, 20u);
}

}  // namespace
}  // namespace atp::preload
