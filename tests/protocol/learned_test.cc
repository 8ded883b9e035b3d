// SPDX-License-Identifier: Apache-2.0
#include "protocol/learned.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <string>
#include <vector>

#include "tests/protocol/sample_learned.h"

namespace atp::protocol {
namespace {

std::string ErrorOf(const Learned& learned) {
  Learned read;
  std::string error;
  return Read(Write(learned), &read, &error) ? "" : error;
}

TEST(Learned, IsReadAsItWasWritten) {
  const Learned learned = SampleLearned();
  Learned read;
  std::string error;
  ASSERT_TRUE(Read(Write(learned), &read, &error)) << error;
  EXPECT_EQ(read, learned);
}

TEST(Learned, AFingerprintIsReadAsItWasWrittenWithItsCodeInOrder) {
  Fingerprint fingerprint = SampleLearned().fingerprint;
  std::swap(fingerprint.code.front(), fingerprint.code.back());
  Fingerprint read;
  std::string error;
  ASSERT_TRUE(Read(Write(fingerprint), &read, &error)) << error;
  EXPECT_EQ(read, SampleLearned().fingerprint);
}

TEST(Learned, WhatIsNotSensibleIsRefusedInWords) {
  Learned learned = SampleLearned();
  learned.phases[0].launches[2].reads = {9};
  EXPECT_EQ(ErrorOf(learned), "a launch uses a tensor that is not there");
  learned = SampleLearned();
  learned.phases[0].launches[2].seconds = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(ErrorOf(learned), "a time is not a number");
  learned = SampleLearned();
  learned.phases[0].best_seconds = -1;
  EXPECT_EQ(ErrorOf(learned), "a time is not a number");
  learned = SampleLearned();
  learned.d2h = std::numeric_limits<double>::infinity();
  EXPECT_EQ(ErrorOf(learned), "a rate is not a number");
  learned = SampleLearned();
  learned.phases[0].launches.clear();
  EXPECT_EQ(ErrorOf(learned), "a phase without launches");
}

// Whatever bytes come: an error in words, or something that is written and read back the same.
// Sanitizers see the rest.
TEST(Learned, DamagedBytesAreRefusedOrSensible) {
  const std::vector<uint8_t> whole = Write(SampleLearned());
  std::mt19937_64 random(1);
  for (int run = 0; run < 20000; ++run) {
    std::vector<uint8_t> bytes = whole;
    for (uint64_t changes = 1 + random() % 4; changes > 0; --changes) {
      bytes[random() % bytes.size()] = static_cast<uint8_t>(random());
    }
    if (random() % 4 == 0) bytes.resize(random() % bytes.size());
    Learned learned, again;
    std::string error;
    if (!Read(bytes, &learned, &error)) {
      ASSERT_FALSE(error.empty());
      continue;
    }
    ASSERT_TRUE(Read(Write(learned), &again, &error)) << error;
    ASSERT_EQ(again, learned);
  }
}

}  // namespace
}  // namespace atp::protocol
