// SPDX-License-Identifier: Apache-2.0
#include "policy/machine_json.h"

#include <gtest/gtest.h>

namespace atp::policy {
namespace {

MeasuredMachine Sample() {
  MeasuredMachine machine;
  machine.device = "Sample";
  machine.device_bytes = 1u << 30;
  machine.driver = 13000;
  machine.link = {25e9, 24e9, 12e9, 23e9};
  machine.prefetch_call_us = 12;
  machine.prefetch_block_us = 10;
  machine.host_map_us = 70;
  machine.fault_batch_us = 28;
  machine.fault_us = 0.36;
  machine.fault_block_us = 6;
  return machine;
}

TEST(MachineJson, WhatIsWrittenIsRead) {
  MeasuredMachine read;
  std::string error;
  ASSERT_TRUE(ReadMachine(WriteMachine(Sample()), &read, &error)) << error;
  EXPECT_EQ(WriteMachine(read), WriteMachine(Sample()));
  EXPECT_EQ(read.device, "Sample");
  EXPECT_DOUBLE_EQ(read.link.duplex_d2h, 23e9);
  EXPECT_DOUBLE_EQ(read.fault_us, 0.36);
}

TEST(MachineJson, WhatIsNoMachineIsRefusedByName) {
  const auto error_of = [](const std::string& text) {
    MeasuredMachine machine;
    std::string error;
    EXPECT_FALSE(ReadMachine(text, &machine, &error)) << text;
    return error;
  };
  EXPECT_NE(error_of("").find("no JSON"), std::string::npos);
  EXPECT_NE(error_of("[1]").find("no JSON object"), std::string::npos);
  EXPECT_NE(error_of("{}").find("\"format\""), std::string::npos);
  EXPECT_NE(error_of(R"({"format":"atp-machine","version":2})").find("\"version\""),
            std::string::npos);
  EXPECT_NE(error_of(R"({"format":"atp-machine","version":1,"h2d_bytes_per_s":0})")
                .find("h2d_bytes_per_s"),
            std::string::npos);
  std::string negative = WriteMachine(Sample());
  negative.replace(negative.find("0.36"), 4, "-1.0");
  EXPECT_NE(error_of(negative).find("fault_us"), std::string::npos);
}

TEST(MachineJson, PlannerReplayAndSimulatedMachineTakeIt) {
  Trace trace;
  trace.device_bytes = 5;
  UseMachine(Sample(), &trace);
  EXPECT_DOUBLE_EQ(trace.link.h2d, 25e9);
  EXPECT_EQ(trace.device_bytes, 5u);
  DriverCosts costs;
  const double evict = costs.evict_seconds;
  UseMachine(Sample(), &costs);
  EXPECT_DOUBLE_EQ(costs.move_seconds, 10e-6);
  EXPECT_DOUBLE_EQ(costs.batch_seconds, 28e-6);
  EXPECT_DOUBLE_EQ(costs.fault_seconds, (6 + 32 * 0.36) * 1e-6);
  EXPECT_DOUBLE_EQ(costs.evict_seconds, evict);
  EXPECT_EQ(SimulatedCosts(Sample()),
            "h2d=25,d2h=24,h2d_duplex=12,d2h_duplex=23,prefetch_call=12,prefetch_block=10,"
            "host_map=70,fault_batch=28,fault=0.36,block_service=6,replay=0");
}

}  // namespace
}  // namespace atp::policy
