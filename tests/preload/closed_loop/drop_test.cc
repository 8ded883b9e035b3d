// SPDX-License-Identifier: Apache-2.0
// ATP_RECOMPUTE=1: what launches write is dropped, they run again before it is needed, and the
// program does not notice.
#include "tests/preload/closed_loop/launch.h"

namespace atp::preload {
namespace {

// A card that computes fast, so that the link is what it waits for.
constexpr char kCard[] = "18MiB";

Outcome Swapping(const std::vector<std::string>& command, Environment environment) {
  environment["ATP_LOG"] = "info";
  environment["ATP_SIM_GPU"] = "h100";
  return Launch(command, kCard, environment);
}

Outcome Dropping(const std::vector<std::string>& command, Environment environment = {}) {
  environment["ATP_RECOMPUTE"] = "1";
  return Swapping(command, environment);
}

std::vector<std::string> Activations(std::vector<std::string> arguments = {}) {
  arguments.insert(arguments.begin(), ATP_PROGRAMS "/program_activations");
  return arguments;
}

// The first number in the log by this expression; 0: it is not there.
double Said(const Outcome& outcome, const std::string& expression) {
  std::smatch found;
  const bool said = std::regex_search(outcome.finished.err, found, std::regex(expression));
  return said ? std::stod(found[1]) : 0;
}
double Reran(const Outcome& outcome) { return Said(outcome, "([0-9]+) launches ran again for"); }
double PaidEarly(const Outcome& outcome) {
  return Said(outcome, "([0-9]+) times before the plan's time");
}
double Period(const Outcome& outcome) { return Said(outcome, "last measured period ([0-9.]+) ms"); }

TEST(Drop, APeriodIsShorterAndTheResultsAreTheSame) {
  const Outcome plain = Swapping(Activations(), {});
  const Outcome dropping = Dropping(Activations());
  EXPECT_EQ(dropping.results, plain.results);
  EXPECT_EQ(dropping.finished.exit_code, 0) << dropping.finished.out;
  EXPECT_EQ(dropping.stats["discard_violations"], 0);
  EXPECT_GE(Reran(dropping), 24);
  EXPECT_EQ(PaidEarly(dropping), 0);
  EXPECT_LT(Period(dropping), 0.95 * Period(plain)) << dropping.finished.err;
}

TEST(Drop, OnThreadsOfOurOwnToo) {
  const Outcome plain = Swapping(Activations(), {});
  const Outcome dropping = Dropping(Activations(), {{"ATP_EXECUTOR", "threads"}});
  EXPECT_EQ(dropping.results, plain.results);
  EXPECT_EQ(dropping.stats["discard_violations"], 0);
}

// A copy in the middle of the period is not of the plan, and may be of what has been dropped.
TEST(Drop, AllIsThereWhenTheHostLooks) {
  const std::vector<std::string> looks = Activations({"1", "look"});
  const Outcome plain = Swapping(looks, {});
  const Outcome dropping = Dropping(looks);
  EXPECT_EQ(dropping.finished.exit_code, 0) << dropping.finished.out;
  EXPECT_GT(PaidEarly(dropping), 0) << dropping.finished.err;
  EXPECT_EQ(dropping.results, plain.results);
  EXPECT_EQ(dropping.stats["discard_violations"], 0);
}

TEST(Drop, ADriverThatRefusesItsCallsIsTheProgramsNoTrouble) {
  const Outcome plain = Swapping(Activations(), {});
  for (const char* fault : {"cuMemDiscardBatchAsync:1+=1", "cuMemDiscardBatchAsync:3=999",
                            "cuMemPrefetchAsync_v2:500+=1", "cuStreamWaitEvent:20+=1",
                            "cuEventQuery:100+=1", "cuMemFree_v2:1=1"}) {
    const Outcome dropping = Dropping(Activations(), {{"ATP_SIM_FAULT", fault}});
    EXPECT_EQ(dropping.finished.exit_code, 0) << fault << dropping.finished.out;
    EXPECT_EQ(dropping.results, plain.results) << fault;
    EXPECT_EQ(dropping.stats["discard_violations"], 0) << fault;
  }
}

// Whichever launch is refused: one that runs again is asked for again, and the program's own error
// is the program's.
TEST(Drop, ALaunchThatIsRefusedIsMadeAgainOrTheProgramsOwn) {
  const Outcome plain = Swapping(Activations(), {});
  unsigned survived = 0;
  for (int launch = 640; launch < 680; launch += 3) {
    const std::string fault = "cuLaunchKernel:" + std::to_string(launch) + "=701";
    const Outcome dropping = Dropping(Activations(), {{"ATP_SIM_FAULT", fault}});
    EXPECT_EQ(dropping.stats["discard_violations"], 0) << fault;
    if (dropping.finished.exit_code != 0) continue;
    ++survived;
    EXPECT_EQ(dropping.results, plain.results) << fault;
  }
  EXPECT_GT(survived, 0u);
}

TEST(Drop, RandomProgramsDoNotNotice) {
  for (const char* seed : {"3", "5"}) {
    const std::vector<std::string> command = {ATP_PROGRAMS "/program_random_launches", seed,
                                              "layers"};
    const Outcome plain = Launch(command, "256MiB", {{"ATP_POLICY", "off"}});
    const Outcome dropping = Dropping(command);
    EXPECT_EQ(dropping.results, plain.results) << seed;
    EXPECT_EQ(dropping.stats["discard_violations"], 0) << seed;
  }
}

}  // namespace
}  // namespace atp::preload
