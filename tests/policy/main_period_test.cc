// SPDX-License-Identifier: Apache-2.0
// Which part of a whole run bounds and plans are about.
#include <gtest/gtest.h>

#include "policy/raw_trace.h"

namespace atp::policy {
namespace {

void Add(RawTrace* raw, uint64_t signature, double seconds) {
  RawTrace::Launch launch;
  launch.name = "launch " + std::to_string(signature);
  launch.signature = signature;
  launch.seconds = seconds;
  raw->launches.push_back(launch);
}

TEST(MainPeriod, AnEndingThatRepeatsSomethingShortIsNotWhatTheRunIsAbout) {
  RawTrace raw;
  for (int iteration = 0; iteration < 6; ++iteration) {
    for (uint64_t launch = 1; launch <= 5; ++launch) Add(&raw, launch, 1.0);
  }
  for (int copy = 0; copy < 20; ++copy) Add(&raw, 99, 0.01);
  const auto period = FindMainPeriod(raw);
  ASSERT_TRUE(period);
  EXPECT_EQ(period->end - period->begin, 5u);
  EXPECT_LE(period->end, 30u);
}

TEST(MainPeriod, ARunThatDoesNotRepeatHasNone) {
  RawTrace raw;
  for (uint64_t launch = 1; launch <= 50; ++launch) Add(&raw, launch, 1.0);
  EXPECT_FALSE(FindMainPeriod(raw));
}

}  // namespace
}  // namespace atp::policy
