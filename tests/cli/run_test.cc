// SPDX-License-Identifier: Apache-2.0
#include "cli/run.h"

#include <gtest/gtest.h>

#include "cli/error.h"

namespace atp::cli {
namespace {

const Installation kInstalled{"/opt/lib/libatpshim.so", "/opt/lib/atp/sim"};

std::map<std::string, std::string> EnvironmentFor(
    const RunOptions& options, const std::map<std::string, std::string>& inherited = {}) {
  return RunEnvironment(options, kInstalled, [&](const char* name) {
    const auto found = inherited.find(name);
    return found == inherited.end() ? nullptr : found->second.c_str();
  });
}

std::string ErrorOf(const RunOptions& options, const Installation& installation = kInstalled) {
  try {
    CheckOptions(options, installation);
  } catch (const CommandError& error) {
    EXPECT_EQ(error.exit_code(), kExitOwnFailure);
    return error.what();
  }
  return "";
}

RunOptions With(std::string RunOptions::*member, const std::string& value) {
  RunOptions options;
  options.*member = value;
  return options;
}

TEST(RunEnvironment, WithoutOptionsOnlyPreloads) {
  EXPECT_EQ(EnvironmentFor({}),
            (std::map<std::string, std::string>{{"LD_PRELOAD", kInstalled.shim}}));
}

TEST(RunEnvironment, KeepsWhatIsPreloadedAlready) {
  EXPECT_EQ(EnvironmentFor({}, {{"LD_PRELOAD", "libjemalloc.so"}}).at("LD_PRELOAD"),
            kInstalled.shim + ":libjemalloc.so");
}

TEST(RunEnvironment, OfANestedCommandDoesNotGrow) {
  const std::string once = EnvironmentFor({}, {{"LD_PRELOAD", "libjemalloc.so"}}).at("LD_PRELOAD");
  EXPECT_EQ(EnvironmentFor({}, {{"LD_PRELOAD", once}}).at("LD_PRELOAD"), once);
}

TEST(RunEnvironment, PutsTheSimulatedMachineInFrontOfTheLibraries) {
  RunOptions options;
  options.sim = "tiny";
  options.sim_memory = "128MiB";
  const auto set = EnvironmentFor(options, {{"LD_LIBRARY_PATH", "/usr/local/lib"}});
  EXPECT_EQ(set.at("LD_LIBRARY_PATH"), kInstalled.sim_folder + ":/usr/local/lib");
  EXPECT_EQ(set.at("ATP_SIM_GPU"), "tiny");
  EXPECT_EQ(set.at("ATP_SIM_MEMORY"), "128MiB");
}

TEST(RunEnvironment, PassesBudgetAndPolicy) {
  EXPECT_EQ(EnvironmentFor(With(&RunOptions::budget, "80%")).at("ATP_BUDGET"), "80%");
  EXPECT_EQ(EnvironmentFor(With(&RunOptions::policy, "managed")).at("ATP_POLICY"), "managed");
}

TEST(RunEnvironment, AnOptionComesBeforeWhatTheEnvironmentHas) {
  RunOptions options;
  options.weight = "2.5";
  options.priority = "-3";
  options.wait = "2m";
  const std::map<std::string, std::string> inherited = {
      {"ATP_WEIGHT", "1"}, {"ATP_PRIORITY", "9"}, {"ATP_WAIT", "off"}};
  const auto set = EnvironmentFor(options, inherited);
  EXPECT_EQ(set.at("ATP_WEIGHT"), "2.5");
  EXPECT_EQ(set.at("ATP_PRIORITY"), "-3");
  EXPECT_EQ(set.at("ATP_WAIT"), "2m");
  EXPECT_FALSE(EnvironmentFor({}, inherited).contains("ATP_PRIORITY"));
}

TEST(RunOptions, AMalformedTimeIsNamedWithTheRemedy) {
  for (const char* bad : {"soon", "3h", "s", "-1s"}) {
    EXPECT_NE(ErrorOf(With(&RunOptions::wait, bad)).find(bad), std::string::npos) << bad;
  }
  for (const char* good : {"30s", "500ms", "2m", "7", "off"}) {
    EXPECT_EQ(ErrorOf(With(&RunOptions::wait, good)), "") << good;
  }
}

TEST(RunOptions, AMalformedSizeIsNamedWithTheRemedy) {
  for (const auto member : {&RunOptions::budget, &RunOptions::sim_memory}) {
    const std::string error = ErrorOf(With(member, "16Gigs"));
    EXPECT_NE(error.find("'16Gigs'"), std::string::npos) << error;
    EXPECT_NE(error.find("16GiB"), std::string::npos) << error;
  }
  EXPECT_EQ(ErrorOf(With(&RunOptions::budget, "0=1GiB,1=50%")), "");
}

TEST(RunOptions, AnUnknownPolicyIsNamedWithThoseThatThereAre) {
  const std::string error = ErrorOf(With(&RunOptions::policy, "clever"));
  for (const char* word : {"'clever'", "learned", "managed", "off"}) {
    EXPECT_NE(error.find(word), std::string::npos) << error;
  }
}

TEST(RunOptions, AMissingSimulatedMachineOrShimIsNamed) {
  EXPECT_NE(ErrorOf(With(&RunOptions::sim, "tiny"), {kInstalled.shim, ""}).find("libcuda.so.1"),
            std::string::npos);
  EXPECT_NE(ErrorOf({}, {"", kInstalled.sim_folder}).find("libatpshim.so"), std::string::npos);
}

TEST(RunOptions, APathThatPreloadCannotHoldIsRefused) {
  EXPECT_NE(ErrorOf({}, {"/my files/libatpshim.so", ""}).find("/my files/"), std::string::npos);
}

}  // namespace
}  // namespace atp::cli
