// SPDX-License-Identifier: Apache-2.0
// Memory numbers come from one place: driver and management library say the same, whatever they are
// told to say.
#include <gtest/gtest.h>

#include "tests/preload/child.h"

namespace atp::preload {
namespace {

const std::string kFolder = ATP_PROGRAM_FOLDER;

std::string Numbers(const std::string& how, Environment environment) {
  environment["LD_LIBRARY_PATH"] = kFolder + "/nvml:" + ATP_SIM_FOLDER;
  environment["LD_PRELOAD"] = Preload({ATP_SHIM_FILE});
  environment["ATP_SIM_GPU"] = "tiny";
  environment["ATP_LOG"] = "error";
  const std::string program = how == "linked" ? "/nvml_linked" : "/nvml_numbers";
  const Finished run = RunChild({kFolder + program, how}, environment);
  EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
  return run.out;
}

// Of a card of 256 MiB, three times 24 MiB are taken.
std::string Expected(int total, int free_at_first) {
  std::string text = "before CUDA: the library's own 1\n";
  for (int i = 1; i <= 3; ++i) {
    text += "total agrees 1 1 1\nfree agrees 1 1\nused is the rest 1 1\nMiB: " +
            std::to_string(std::max(0, free_at_first - 24 * i)) + " of " + std::to_string(total) +
            "\n";
  }
  return text;
}

class NvmlNumbers : public testing::TestWithParam<const char*> {};

TEST_P(NvmlNumbers, AgreeWithTheDrivers) {
  EXPECT_EQ(Numbers(GetParam(), {{"ATP_REPORT_MEMORY", "1GiB"}}), Expected(1024, 1024));
  EXPECT_EQ(Numbers(GetParam(), {{"ATP_REPORT_MEMORY", "60MiB"}}), Expected(60, 60));
  // What the program may have: all of it must have room on the host.
  EXPECT_EQ(Numbers(GetParam(), {{"ATP_REPORT_MEMORY", "virtual"}, {"ATP_HOST_BUDGET", "1GiB"}}),
            Expected(1024, 1024));
  const std::string physical = Numbers(GetParam(), {});
  EXPECT_EQ(physical.find(" 0"), std::string::npos) << physical;
  EXPECT_NE(physical.find(" of 256"), std::string::npos) << physical;
  const std::string over = Numbers(GetParam(), {{"ATP_BUDGET", "30MiB"}});
  EXPECT_EQ(over, physical) << "what moves is still the program's";
}

TEST_P(NvmlNumbers, AreTheLibrarysOwnWhenTheShimIsOff) {
  EXPECT_NE(Numbers(GetParam(), {{"ATP_POLICY", "off"}}).find("agrees 1 0 0"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Ways, NvmlNumbers, testing::Values("handle", "default", "linked"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace atp::preload
