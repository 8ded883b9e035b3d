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

}  // namespace
}  // namespace atp::preload
