// SPDX-License-Identifier: Apache-2.0
#include "sim/machine/costs.h"

#include <gtest/gtest.h>

#include <set>

namespace atp::sim {
namespace {

MachineConfig Config(const std::string& profile, const std::string& overrides = "") {
  MachineConfig config;
  config.profile = profile;
  config.overrides = overrides;
  return config;
}
std::string ErrorOf(const MachineConfig& config) {
  std::string error;
  EXPECT_EQ(Machine::Create(config, &error), nullptr);
  return error;
}

TEST(Costs, EveryRowHasANameOfItsOwnADescriptionAndASource) {
  std::set<std::string> names;
  for (const CostRow& row : CostTable()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_GT(std::string(row.description).size(), 5u) << row.name;
    std::string source = row.source;
    EXPECT_TRUE(source.starts_with("E") || source.starts_with("M: ") || source.starts_with("S"))
        << row.name;
    for (double value : row.values) EXPECT_GE(value, 0) << row.name;
  }
}

TEST(Costs, EveryProfileMakesAMachine) {
  for (const char* name :
       {"gtx1080", "v100-16g", "rtx3090", "rtx5090", "a100-40g", "h100", "h200", "tiny"}) {
    std::string error;
    auto machine = Machine::Create(Config(name), &error);
    ASSERT_NE(machine, nullptr) << error;
    EXPECT_GT(machine->Shape(0).total_bytes, 200u << 20);
    EXPECT_GT(machine->Shape(0).multiprocessors, 0);
  }
}

TEST(Costs, UnitsBecomePicosecondsAndBytesPerSecond) {
  Costs costs = ProfileCosts(ProfileIndex("a100-40g"));
  EXPECT_EQ(costs.h2d, 25'000'000'000);
  EXPECT_EQ(costs.h2d_duplex, 12'000'000'000);
  EXPECT_EQ(costs.d2h_duplex, 24'000'000'000);
  EXPECT_EQ(costs.piece_overhead, 400 * kNs);
  EXPECT_EQ(costs.reserved, int64_t{700} << 20);
}

TEST(Costs, OverridesChangeOnlyWhatTheyName) {
  Costs costs = ProfileCosts(0), before = costs;
  std::string error;
  ASSERT_TRUE(ApplyOverrides("h2d=20.5,evict=1.25", &costs, &error)) << error;
  EXPECT_EQ(costs.h2d, 20'500'000'000);
  EXPECT_EQ(costs.evict, 1250 * kNs);
  EXPECT_EQ(costs.d2h, before.d2h);
}

TEST(Costs, MistakesAreNamedTogetherWithWhatIsAllowed) {
  EXPECT_NE(ErrorOf(Config("a100")).find("\"a100\""), std::string::npos);
  EXPECT_NE(ErrorOf(Config("a100")).find("a100-40g"), std::string::npos);
  std::string unknown = ErrorOf(Config("tiny", "evikt=3"));
  EXPECT_NE(unknown.find("\"evikt\""), std::string::npos);
  EXPECT_NE(unknown.find("evict"), std::string::npos);
  EXPECT_NE(ErrorOf(Config("tiny", "evict")).find("name=value"), std::string::npos);
  for (const char* bad :
       {"evict=", "evict=3us", "evict=-1", "evict=nan", "h2d=0", "evict=1e30", ",evict=1"}) {
    EXPECT_FALSE(ErrorOf(Config("tiny", bad)).empty()) << bad;
  }
  MachineConfig small = Config("tiny");
  small.device_bytes = 4096;
  EXPECT_NE(ErrorOf(small).find("4096"), std::string::npos);
  MachineConfig none = Config("tiny");
  none.devices = 0;
  EXPECT_NE(ErrorOf(none).find("0"), std::string::npos);
}

TEST(Costs, CallsAreChargedByTheNameOfTheirCost) {
  Costs costs = ProfileCosts(3);
  EXPECT_EQ(TimeCost(costs, "launch_cpu"), 2100 * kNs);
  EXPECT_EQ(TimeCost(costs, "h2d"), -1);  // not a time
  EXPECT_EQ(TimeCost(costs, "no_such_call"), -1);
}

}  // namespace
}  // namespace atp::sim
