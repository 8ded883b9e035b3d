// SPDX-License-Identifier: Apache-2.0
#include "policy/validate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "policy/planner.h"
#include "tests/policy/test_trace.h"

namespace atp::policy {
namespace {

constexpr Bytes kMemory = 100 * kMiB;

class ValidateTest : public testing::Test {
 protected:
  ValidateTest() {
    std::vector<uint32_t> tensors;
    for (int i = 0; i < 10; ++i) tensors.push_back(builder_.Global(20));
    for (uint32_t t : tensors) builder_.Run(0.05, {t}, {t});
    PlanOptions options;
    options.memory = kMemory;
    schedule_ = ToSchedule(MakePlan(builder_.trace(), options));
  }
  std::string First() const {
    ValidateOptions options;
    options.memory = memory_;
    const auto problems = Validate(builder_.trace(), schedule_, options);
    return problems.empty() ? "" : problems.front();
  }
  Schedule::Move& FirstMove(Schedule::Kind kind) {
    for (auto& move : schedule_.moves) {
      if (move.kind == kind) return move;
    }
    ADD_FAILURE() << "no such move";
    return schedule_.moves.front();
  }
  void ExpectProblem(const char* words) const {
    EXPECT_NE(First().find(words), std::string::npos) << "got: " << First();
  }

  TraceBuilder builder_;
  Schedule schedule_;
  Bytes memory_ = kMemory;
};

TEST_F(ValidateTest, AcceptsAPlan) {
  EXPECT_EQ(First(), "");
  EXPECT_GT(schedule_.moves.size(), 5u);
}

TEST_F(ValidateTest, FindsMemoryExceeded) {
  memory_ = kMemory - 30 * kMiB;
  ExpectProblem("memory is exceeded");
}

TEST_F(ValidateTest, FindsAFetchThatStartsTooEarlyForItsRoom) {
  // Room counts from the start: fetch everything as early as it may be.
  for (auto& move : schedule_.moves) {
    if (move.kind == Schedule::Kind::kH2d) move.start = std::max(0.0, move.start - 0.09);
  }
  ExpectProblem("memory is exceeded");
}

TEST_F(ValidateTest, FindsAMissingFetch) {
  std::erase_if(schedule_.moves, [&, once = false](const auto& m) mutable {
    return m.kind == Schedule::Kind::kH2d && !std::exchange(once, true);
  });
  EXPECT_NE(First(), "");
}

TEST_F(ValidateTest, FindsALateFetch) {
  auto& move = FirstMove(Schedule::Kind::kH2d);
  move.start += 0.06, move.end += 0.06;
  EXPECT_NE(First(), "");
}

TEST_F(ValidateTest, FindsALinkThatIsTooFast) {
  auto& move = FirstMove(Schedule::Kind::kD2h);
  move.end = move.start + (move.end - move.start) / 2;
  ExpectProblem("the link cannot carry all d2h");
}

TEST_F(ValidateTest, FindsMovesThatTogetherAreTooMuchForTheLink) {
  // Each move alone obeys the rate, but all start at once.
  for (auto& move : schedule_.moves) {
    if (move.kind != Schedule::Kind::kD2h) continue;
    const double seconds = move.end - move.start;
    move.start = 0.3, move.end = 0.3 + seconds;
  }
  ExpectProblem("the link cannot carry all d2h");
}

TEST_F(ValidateTest, FindsLiveDataDiscarded) {
  auto& move = FirstMove(Schedule::Kind::kD2h);
  move.kind = Schedule::Kind::kDiscard;
  ExpectProblem("discards what is alive");
}

TEST_F(ValidateTest, FindsALaunchThatIsCutShort) {
  schedule_.launches[3].end -= 0.01;
  ExpectProblem("launch 3 (kernel) is given less than its duration");
}

TEST_F(ValidateTest, FindsLaunchesThatOverlap) {
  schedule_.launches[3].start -= 0.01;
  ExpectProblem("starts before the one before it ends");
}

TEST_F(ValidateTest, FindsAPeriodThatDoesNotClose) {
  schedule_.initial.pop_back();
  EXPECT_NE(First(), "");
}

TEST_F(ValidateTest, FindsAMoveOfWhatIsInUse) {
  for (auto& move : schedule_.moves) {
    const auto& use = schedule_.launches[move.tensor];
    if (move.kind == Schedule::Kind::kD2h) move.start = use.end - 0.001, move.end = use.end + 0.03;
  }
  ExpectProblem("is under way while");
}

TEST_F(ValidateTest, FindsBothDirectionsTogetherTooFast) {
  EXPECT_EQ(First(), "");
  builder_.trace().link.duplex_h2d = builder_.trace().link.h2d / 4;
  builder_.trace().link.duplex_d2h = builder_.trace().link.d2h / 4;
  ExpectProblem("both directions together");
}

TEST_F(ValidateTest, RefusesNonsenseWithoutFallingOver) {
  const Schedule good = schedule_;
  const std::vector<std::function<void(Schedule&)>> spoil = {
      [](Schedule& s) { s.moves[0].tensor = 1000; },
      [](Schedule& s) { s.moves[0].offset = ~Bytes{0}; },
      [](Schedule& s) { s.moves[0].start = -1; },
      [](Schedule& s) { s.moves[0].end = 1e300; },
      [](Schedule& s) { s.moves[0].start = std::nan(""); },
      [](Schedule& s) { s.launches.clear(); },
      [](Schedule& s) { s.initial[0].tensor = ~0u; },
      [](Schedule& s) { s.period_seconds = -1; },
  };
  for (const auto& change : spoil) {
    schedule_ = good;
    change(schedule_);
    EXPECT_NE(First(), "");
  }
}

TEST(Validate, KnowsBirthAndDeathOfLocalTensors) {
  TraceBuilder builder;
  const uint32_t a = builder.Local(10), b = builder.Local(10);
  builder.Run(1, {}, {a}).Run(1, {a}).Run(1, {}, {b}).Run(1, {b});
  Schedule schedule;
  schedule.period_seconds = 4;
  for (uint32_t k = 0; k < 4; ++k) schedule.launches.push_back({k, double(k), k + 1.0});
  ValidateOptions options;
  options.memory = 10 * kMiB;  // one at a time
  EXPECT_TRUE(Validate(builder.trace(), schedule, options).empty());
  schedule.initial.push_back({a, 0, 10 * kMiB});
  EXPECT_FALSE(Validate(builder.trace(), schedule, options).empty());
}

}  // namespace
}  // namespace atp::policy
