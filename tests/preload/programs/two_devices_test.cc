// SPDX-License-Identifier: Apache-2.0
// Sets and copies that do not wait on device memory do not wait on managed memory either: one host
// thread that feeds two devices keeps both busy, as without us.
#include <gtest/gtest.h>

#include <string>

#include "tests/preload/simulated.h"

namespace atp::preload {
namespace {

std::string Launch(const char* part, bool with, Environment more = {}) {
  more.insert({"ATP_SIM_DEVICES", "2"});
  return RunOnTinyCard({ATP_PROGRAM_FOLDER "/two_devices", ATP_PROGRAM_FOLDER "/bump.ptx", part},
                       with, more)
      .out;
}

TEST(TwoDevices, AreKeptBusyByOneThreadAsWithoutUs) {
  const double native = std::stod(Launch("busy", false)), with = std::stod(Launch("busy", true));
  EXPECT_GT(native, 0);
  EXPECT_LT(with, native * 1.1);
  // What it would be if each call waited, as the same calls do on managed memory by themselves.
  EXPECT_GT(std::stod(Launch("busy", true, {{"ATP_DISABLE", "asynctwins"}})), with * 1.2);
}

TEST(TwoDevices, ComputeTheSameWhenMemoryMoves) {
  const std::string native = Launch("results", false);
  EXPECT_EQ(Launch("results", true), native);
  EXPECT_EQ(Launch("results", true, {{"ATP_BUDGET", "0=8MiB,1=8MiB"}}), native);
  EXPECT_EQ(Launch("results", true, {{"ATP_BUDGET", "6MiB"}, {"ATP_EXECUTOR", "threads"}}), native);
}

TEST(TwoDevices, ReadAndWriteMemoryOfEachOther) {
  const std::string native = Launch("peers", false);
  EXPECT_NE(native.find("peer access: 1"), std::string::npos) << native;
  EXPECT_EQ(Launch("peers", true), native);
  EXPECT_EQ(Launch("peers", true, {{"ATP_POLICY", "managed"}}), native);
  for (const char* executor : {"auto", "threads"}) {
    EXPECT_EQ(Launch("peers", true, {{"ATP_BUDGET", "6MiB"}, {"ATP_EXECUTOR", executor}}), native);
  }
}

}  // namespace
}  // namespace atp::preload
