// SPDX-License-Identifier: Apache-2.0
#include "policy/successors.h"

#include <gtest/gtest.h>

#include <array>
#include <random>
#include <string>

namespace atp::policy {
namespace {

std::string Next(const Successors& successors, size_t most, double least = 0.5) {
  std::array<Successors::Guess, 32> guesses;
  std::string text;
  const size_t count = successors.Predict(guesses.data(), most, least);
  for (size_t i = 0; i < count; ++i) text += static_cast<char>(guesses[i].launch);
  return text;
}
void Feed(Successors& successors, const std::string& launches) {
  for (char launch : launches) successors.Feed(static_cast<uint64_t>(launch));
}

TEST(Successors, GuessesNothingUnseen) {
  Successors successors;
  EXPECT_EQ(Next(successors, 4), "");
  Feed(successors, "abc");
  EXPECT_EQ(Next(successors, 4), "");
}

TEST(Successors, FollowTheChainOnceItHasBeenSeen) {
  Successors successors;
  Feed(successors, "abcdefghabc");
  EXPECT_EQ(Next(successors, 5), "defgh");
}

TEST(Successors, LookAtThreeLaunchesToTellContextsApart) {
  Successors successors;
  for (int i = 0; i < 4; ++i) Feed(successors, "axycpxyd");  // after xy: c or d
  Feed(successors, "axy");
  EXPECT_EQ(Next(successors, 1), "c");
  Feed(successors, "cpxy");
  EXPECT_EQ(Next(successors, 1), "d");
}

TEST(Successors, ConfidenceFallsWhereThePastWasDivided) {
  Successors successors;
  std::mt19937 random(1);
  for (int i = 0; i < 300; ++i) Feed(successors, random() % 2 ? "abcX" : "abcY");
  Feed(successors, "abc");
  std::array<Successors::Guess, 1> guess;
  ASSERT_EQ(successors.Predict(guess.data(), 1, 0.0), 1u);
  EXPECT_LT(guess[0].confidence, 0.8);
  EXPECT_EQ(successors.Predict(guess.data(), 1, 0.9), 0u);
}

TEST(Successors, LearnAnewWhenTheProgramChanges) {
  Successors successors;
  for (int i = 0; i < 5; ++i) Feed(successors, "abcd");
  for (int i = 0; i < 40; ++i) Feed(successors, "abce");
  Feed(successors, "abc");
  EXPECT_EQ(Next(successors, 1, 0.0), "e");
}

TEST(Successors, SmallTablesForgetButDoNotBreak) {
  Successors successors(4);
  for (uint64_t i = 0; i < 10000; ++i) successors.Feed(i * 7 % 1000);
  std::array<Successors::Guess, 8> guesses;
  EXPECT_LE(successors.Predict(guesses.data(), guesses.size()), guesses.size());
}

}  // namespace
}  // namespace atp::policy
