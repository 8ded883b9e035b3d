// SPDX-License-Identifier: Apache-2.0
#include "policy/period.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace atp::policy {
namespace {

// A letter is a launch.
class Stream {
 public:
  explicit Stream(PeriodDetector::Options options = {}) : detector_(options) {}
  PeriodState Play(const std::string& launches, int times = 1) {
    for (int i = 0; i < times; ++i) {
      for (char launch : launches) Feed(static_cast<uint64_t>(launch) * 0x1234567ull);
    }
    return last_;
  }
  PeriodState Feed(uint64_t signature) {
    last_ = detector_.Feed(signature);
    ++fed_;
    locked_ += last_.locked;
    return last_;
  }
  // Launches that found no lock since the last call.
  int Unlocked() {
    const int result = fed_ - locked_;
    fed_ = locked_ = 0;
    return result;
  }
  PeriodState last() const { return last_; }

 private:
  PeriodDetector detector_;
  PeriodState last_;
  int fed_ = 0, locked_ = 0;
};

TEST(PeriodDetector, LocksAtTheEndOfTheSecondEqualPeriod) {
  Stream stream;
  EXPECT_FALSE(stream.Play("abcdeabcd").locked);
  const PeriodState state = stream.Play("e");
  EXPECT_TRUE(state.locked);
  EXPECT_EQ(state.length, 5u);
  EXPECT_EQ(state.position, 4u);
  EXPECT_EQ(stream.Play("a").position, 0u);
  EXPECT_EQ(stream.last().period, 2u);
  EXPECT_EQ(stream.Play("bcdea").period, 3u);
}

TEST(PeriodDetector, WaitsForAsManyEqualPeriodsAsAsked) {
  PeriodDetector::Options options;
  options.equal_periods = 3;
  Stream stream(options);
  EXPECT_FALSE(stream.Play("abcabcab").locked);
  EXPECT_TRUE(stream.Play("c").locked);
}

TEST(PeriodDetector, IgnoresAWarmUpThatDiffers) {
  Stream stream;
  EXPECT_FALSE(stream.Play("xyzzyqabcdabc").locked);
  const PeriodState state = stream.Play("d");
  EXPECT_TRUE(state.locked);
  EXPECT_EQ(state.length, 4u);
}

TEST(PeriodDetector, NeverLocksOnAStreamWithoutRepetition) {
  Stream stream;
  for (uint64_t i = 0; i < 20000; ++i) EXPECT_FALSE(stream.Feed(i * 77 + 1).locked);
}

TEST(PeriodDetector, PrefersTheStepToTheMicroBatchesInIt) {
  Stream stream;
  const std::string step = "mnopmnopmnopmnopuvwxyz";
  stream.Play(step, 2);
  const PeriodState state = stream.last();
  EXPECT_TRUE(state.locked);
  EXPECT_EQ(state.length, step.size());
  EXPECT_EQ(state.position, step.size() - 1);
  stream.Unlocked();
  stream.Play(step, 5);
  EXPECT_EQ(stream.Unlocked(), 0);
  EXPECT_EQ(stream.last().length, step.size());
}

TEST(PeriodDetector, PrefersTheStepToTheLayersInIt) {
  Stream stream;
  const std::string step = "elmnlmnlmnlmnlmnlmnhLMNLMNLMNLMNLMNLMNoooooooooooooooooooo";
  stream.Play(step, 3);
  stream.Unlocked();
  stream.Play(step, 3);
  EXPECT_EQ(stream.Unlocked(), 0);
  EXPECT_EQ(stream.last().length, step.size());
}

TEST(PeriodDetector, AMultipleOfAPeriodIsNoPeriod) {
  Stream stream;
  stream.Play("abc", 50);
  EXPECT_EQ(stream.last().length, 3u);
}

TEST(PeriodDetector, GoesOnAfterExtraLaunches) {
  Stream stream;
  const std::string step = "abcdefghij";
  stream.Play(step, 3);
  stream.Unlocked();
  stream.Play("!?");  // logging between two steps
  EXPECT_EQ(stream.Unlocked(), 2);
  stream.Play(step, 2);
  EXPECT_LE(stream.Unlocked(), 1);
  stream.Play("abcde#fghij");  // and in the midst of one
  EXPECT_LE(stream.Unlocked(), 2);
  EXPECT_EQ(stream.last().length, 10u);
  EXPECT_EQ(stream.last().position, 9u);
}

TEST(PeriodDetector, SaysWhenTheLastPeriodWasWhole) {
  Stream stream;
  stream.Play("abcdefghij", 3);
  stream.Play("abcde#fghij");
  EXPECT_EQ(stream.Play("a").period, 0u);  // the lap before had an extra launch
  EXPECT_EQ(stream.Play("bcdefghija").period, 1u);
}

TEST(PeriodDetector, KeepsNamedPhases) {
  Stream stream;
  const std::string train = "abcdefghijklmnop", evaluate = "ABCDEFGH";
  stream.Play(train, 40);
  const uint32_t train_phase = stream.last().phase;
  stream.Play(evaluate, 40);
  const uint32_t evaluate_phase = stream.last().phase;
  EXPECT_NE(train_phase, evaluate_phase);
  stream.Unlocked();
  stream.Play(train, 40);
  EXPECT_EQ(stream.last().phase, train_phase);
  stream.Play(evaluate, 40);
  EXPECT_EQ(stream.last().phase, evaluate_phase);
  EXPECT_EQ(stream.Unlocked(), 0);  // both begin with a launch that tells them apart
}

TEST(PeriodDetector, AFewEvaluationsDoNotChangeTheStep) {
  Stream stream;
  const std::string step = "abcdefghijklmnopqrst", evaluation = "XYZ";
  for (int i = 0; i < 20; ++i) {
    stream.Play(step, 50);
    stream.Play(evaluation);
  }
  stream.Play(step, 2);
  EXPECT_EQ(stream.last().length, step.size());
}

TEST(PeriodDetector, LearnsStepsOfSeveralLengthsThatAreDrawnAtRandom) {
  Stream stream;
  std::mt19937_64 random(1);
  // Buckets begin alike and then differ in every launch, as kernels of other sizes do.
  const std::vector<std::string> buckets = {"##abcdefghij", "##ABCDEFGHIJKL", "##0123456789uvwxyz"};
  for (int i = 0; i < 60; ++i) stream.Play(buckets[random() % 3]);
  stream.Unlocked();
  for (int i = 0; i < 60; ++i) stream.Play(buckets[random() % 3]);
  EXPECT_EQ(stream.Unlocked(), 0);
}

TEST(PeriodDetector, BreaksAndLocksAgain) {
  Stream stream;
  stream.Play("abcdef", 4);
  EXPECT_FALSE(stream.Play("Q").locked);
  stream.Play("mnopqrs", 2);
  EXPECT_TRUE(stream.last().locked);
  EXPECT_EQ(stream.last().length, 7u);
}

TEST(PeriodDetector, HandlesPeriodsOfOneLaunch) {
  Stream stream;
  EXPECT_FALSE(stream.Play("a").locked);
  EXPECT_TRUE(stream.Play("a").locked);
  EXPECT_EQ(stream.last().length, 1u);
  EXPECT_EQ(stream.Play("a", 10).position, 0u);
}

TEST(PeriodDetector, FindsLongPeriodsAndHonoursTheLongest) {
  PeriodDetector::Options options;
  options.max_length = 4096;
  Stream stream(options);
  auto play = [&](uint64_t length) {
    for (uint64_t i = 0; i < length; ++i) stream.Feed(i / 3 * 1000003 + length);  // triples
  };
  for (int lap = 0; lap < 2; ++lap) play(4095);
  EXPECT_TRUE(stream.last().locked);
  EXPECT_EQ(stream.last().length, 4095u);
  for (int lap = 0; lap < 4; ++lap) play(4500);
  EXPECT_NE(stream.last().length, 4500u);
}

TEST(PeriodDetector, PositionsNameTheSameLaunchInEveryPeriod) {
  std::mt19937_64 random(7);
  for (int trial = 0; trial < 200; ++trial) {
    const size_t length = 1 + random() % 40, letters = 1 + random() % 6;
    std::vector<uint64_t> step(length);
    for (auto& launch : step) launch = random() % letters + 1;
    Stream stream;
    std::map<std::pair<uint32_t, uint32_t>, uint64_t> seen;  // phase and position
    for (size_t i = 0; i < length * 12; ++i) {
      const PeriodState state = stream.Feed(step[i % length]);
      if (i < length * 8) continue;
      ASSERT_TRUE(state.locked) << "trial " << trial;
      const auto [it, added] = seen.try_emplace({state.phase, state.position}, step[i % length]);
      EXPECT_EQ(it->second, step[i % length]) << "trial " << trial;
    }
  }
}

}  // namespace
}  // namespace atp::policy
