// SPDX-License-Identifier: Apache-2.0
// atp calibrate on the simulated machine finds what the machine was made of.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

#include "sim/machine/costs.h"

namespace {

using atp::sim::CostRow;

struct Result {
  int exit_code = -1;
  std::string output;
};

Result Atp(const std::string& words) {
  Result result;
  FILE* pipe = popen((std::string(ATP_COMMAND) + " " + words).c_str(), "re");
  char buffer[4096];
  for (size_t n; (n = fread(buffer, 1, sizeof buffer, pipe)) > 0;) result.output.append(buffer, n);
  const int status = pclose(pipe);
  if (WIFEXITED(status)) result.exit_code = WEXITSTATUS(status);
  return result;
}

// In the table's own unit.
double CostOf(const std::string& name, int profile) {
  for (const CostRow& row : atp::sim::CostTable()) {
    if (row.name == name) return row.values[profile];
  }
  ADD_FAILURE() << "no cost " << name;
  return 0;
}

class Calibrate : public testing::TestWithParam<const char*> {};

TEST_P(Calibrate, FindsWhatTheSimulatedMachineIsMadeOf) {
  const Result result = Atp(std::string("calibrate --json --sim ") + GetParam());
  ASSERT_EQ(result.exit_code, 0) << result.output;
  const auto machine = nlohmann::json::parse(result.output);
  const int profile = atp::sim::ProfileIndex(GetParam());
  const auto expect = [&](const char* name, double wanted) {
    const double found = machine[name].get<double>();
    EXPECT_NEAR(found, wanted, 0.05 * wanted) << name;
  };
  expect("h2d_bytes_per_s", 1e9 * CostOf("h2d", profile));
  expect("d2h_bytes_per_s", 1e9 * CostOf("d2h", profile));
  expect("duplex_h2d_bytes_per_s", 1e9 * CostOf("h2d_duplex", profile));
  expect("duplex_d2h_bytes_per_s", 1e9 * CostOf("d2h_duplex", profile));
  expect("prefetch_call_us", CostOf("prefetch_call", profile));
  expect("prefetch_block_us", CostOf("prefetch_block", profile));
  expect("prefetch_touch_us", CostOf("prefetch_touch", profile));
  expect("host_map_us", CostOf("host_map", profile));
  expect("host_unmap_us", CostOf("host_unmap", profile));
  expect("fault_us", CostOf("fault", profile));
  expect("fault_block_us", CostOf("block_service", profile));
  // What comes before the first and behind the last of a batch cannot be told apart from outside.
  expect("fault_batch_us", CostOf("fault_batch", profile) + CostOf("replay", profile));
}

INSTANTIATE_TEST_SUITE_P(Profiles, Calibrate,
                         testing::Values("a100-40g", "rtx3090", "h200", "v100-16g", "tiny"),
                         [](const auto& profile) {
                           std::string name = profile.param;
                           std::erase(name, '-');
                           return name;
                         });

TEST(CalibrateCommand, FollowsACostThatWasChanged) {
  setenv("ATP_SIM_SET", "host_map=140,fault=1,h2d=9", 1);
  const auto machine = nlohmann::json::parse(Atp("calibrate --json --sim a100-40g").output);
  unsetenv("ATP_SIM_SET");
  EXPECT_NEAR(machine["host_map_us"], 140, 7);
  EXPECT_NEAR(machine["fault_us"], 1, 0.05);
  EXPECT_NEAR(machine["h2d_bytes_per_s"], 9e9, 0.45e9);
}

TEST(CalibrateCommand, RefusesWhereItCouldTakeWhatOthersNeed) {
  setenv("ATP_SIM_MEMORY", "128MiB", 1);
  const Result result = Atp("calibrate --json --sim a100-40g 2>&1");
  unsetenv("ATP_SIM_MEMORY");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.output.find("too little device memory"), std::string::npos) << result.output;
}

TEST(CalibrateCommand, AMachineFileCanBeSimulated) {
  const std::string file = testing::TempDir() + "machine." + std::to_string(getpid());
  ASSERT_EQ(Atp("calibrate --sim rtx3090 --output " + file).exit_code, 0);
  const Result run = Atp("run --sim tiny --sim-machine " + file + " -- printenv ATP_SIM_SET");
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_EQ(run.output.find("h2d=25,"), 0u) << run.output;
  std::remove(file.c_str());
  EXPECT_EQ(Atp("run --sim tiny --sim-machine " + file + " -- true 2>/dev/null").exit_code, 125);
}

}  // namespace
