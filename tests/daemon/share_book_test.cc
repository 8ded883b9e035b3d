// SPDX-License-Identifier: Apache-2.0
#include "daemon/share_book.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "protocol/message.h"

namespace atp::daemon {
namespace {

using namespace std::chrono_literals;
using protocol::kNoBudget;
using protocol::ShareReport;

constexpr Bytes kGiB = 1u << 30;
constexpr uint32_t kUser = 1000;

ShareReport On(const std::string& card, Bytes footprint) {
  ShareReport report;
  report.card = card;
  report.card_bytes = 16 * kGiB;
  report.footprint = report.held = footprint;
  report.free_bytes = 16 * kGiB - footprint;
  return report;
}

class ShareBookTest : public testing::Test {
 protected:
  // Of a process that lives.
  Bytes Report(uint64_t job, const ShareReport& report, uint32_t user = kUser) {
    return book_.Report(user, job, getpid(), report, now_);
  }
  ShareBook book_;
  ShareBook::Clock::time_point now_ = ShareBook::Clock::now();
};

TEST_F(ShareBookTest, AJobThatHasACardToItselfGoesByItsOwnBudget) {
  EXPECT_EQ(Report(1, On("a", 12 * kGiB)), kNoBudget);
  EXPECT_EQ(Report(2, On("b", 12 * kGiB)), kNoBudget);
}

TEST_F(ShareBookTest, AJobThatComesTakesPartOfWhatTheFirstHad) {
  Report(1, On("a", 12 * kGiB));
  ShareReport second = On("a", 12 * kGiB);
  second.free_bytes = 0;
  const Bytes given = Report(2, second);
  EXPECT_NEAR(static_cast<double>(given), 8.0 * kGiB, 0.1 * kGiB);
  EXPECT_NEAR(static_cast<double>(Report(1, second)), 8.0 * kGiB, 0.1 * kGiB);
}

TEST_F(ShareBookTest, WhatAJobHadIsForTheOthersWhenItsProcessHasEnded) {
  const pid_t process = fork();
  if (process == 0) _exit(0);
  waitpid(process, nullptr, 0);
  Report(1, On("a", 12 * kGiB));
  ShareReport second = On("a", 12 * kGiB);
  book_.Report(kUser, 2, process, second, now_);
  EXPECT_GE(Report(1, On("a", 12 * kGiB)), 12 * kGiB);
  EXPECT_EQ(book_.List(kUser, now_).size(), 1u);
}

TEST_F(ShareBookTest, OneThatCannotBeSeenHasEndedWhenItIsSilent) {
  book_.Report(kUser, 1, 0, On("a", 12 * kGiB), now_);
  EXPECT_EQ(book_.List(kUser, now_ + 9s).size(), 1u);
  EXPECT_EQ(book_.List(kUser, now_ + 11s).size(), 0u);
}

TEST_F(ShareBookTest, OneThatIsStoppedKeepsItsPart) {
  Report(1, On("a", 12 * kGiB));
  EXPECT_EQ(book_.List(kUser, now_ + 60s).size(), 1u);
}

TEST_F(ShareBookTest, MemoryOfNeighboursWithoutTheShimIsNotGivenOut) {
  ShareReport report = On("a", 6 * kGiB);
  report.free_bytes = 4 * kGiB;  // and 6 that nobody has told of
  Report(1, report);
  ShareReport second = report;
  second.held = 0;
  Report(2, second);
  const Bytes first = Report(1, report), sum = first + Report(2, second);
  EXPECT_GT(book_.OthersOn("a"), 5 * kGiB);
  EXPECT_LE(sum, 11 * kGiB);
}

// Pages of jobs that a neighbour has pushed out are held by nobody, and free memory stays near 0.
TEST_F(ShareBookTest, ANeighbourThatPushesJobsOutIsSeenByTheListOfProcesses) {
  ShareReport report = On("a", 8 * kGiB);
  report.free_bytes = 0;
  const auto with = [&](std::vector<protocol::CardProcess> processes) {
    ShareReport made = report;
    made.processes = std::move(processes);
    return made;
  };
  const int self = getpid(), parent = getppid();
  const ShareReport seen = with({{5 * kGiB, self, 0}, {6 * kGiB, parent, 0}});
  Report(1, seen);
  Report(2, seen);
  EXPECT_EQ(book_.OthersOn("a"), 6 * kGiB);
  EXPECT_LE(Report(1, seen) + Report(2, seen), 10 * kGiB);
  // One that turns out to be a job is none.
  book_.Report(kUser, 3, parent, seen, now_);
  EXPECT_EQ(book_.OthersOn("a"), 0u);
  // And a list that counts processes otherwise says nothing.
  Report(1, with({{6 * kGiB, 1 << 29, 0}}));
  EXPECT_EQ(book_.OthersOn("a"), 0u);
}

TEST_F(ShareBookTest, LimitsOfAUserBoundBudgetWeightAndPriority) {
  book_.SetLimits({{kUser, {2 * kGiB, 1, 0}}});
  ShareReport report = On("a", 12 * kGiB);
  report.weight = 50;
  report.priority = 9;
  EXPECT_EQ(Report(1, report), 2 * kGiB);
  const auto rows = book_.List(kUser, now_);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].weight, 1);
  EXPECT_EQ(rows[0].priority, 0);
  EXPECT_EQ(rows[0].most, 2 * kGiB);
}

TEST_F(ShareBookTest, AJobOfAnotherUserIsNeitherShownNorBounded) {
  Report(1, On("a", 12 * kGiB), kUser + 1);
  EXPECT_TRUE(book_.List(kUser, now_).empty());
  EXPECT_EQ(book_.SetMost(kUser, 1, 0, kGiB), 0);
  EXPECT_EQ(book_.SetMost(kUser, 0, getpid(), kGiB), 0);
}

TEST_F(ShareBookTest, ABudgetIsSetAndTakenBack) {
  Report(1, On("a", 12 * kGiB));
  EXPECT_EQ(book_.SetMost(kUser, 0, getpid(), 3 * kGiB), 1);
  EXPECT_EQ(Report(1, On("a", 12 * kGiB)), 3 * kGiB);
  EXPECT_EQ(book_.SetMost(kUser, 1, 0, 0), 1);
  EXPECT_GE(Report(1, On("a", 12 * kGiB)), 12 * kGiB);
}

TEST_F(ShareBookTest, WhatDoesNotFitWaitsAndIsLetInWhenThereIsRoom) {
  ShareReport first = On("a", 12 * kGiB), second = On("a", 0);
  first.least = 12 * kGiB;
  second.least = 8 * kGiB;
  second.waits = true;
  second.free_bytes = 4 * kGiB;
  Report(1, first);
  EXPECT_EQ(Report(2, second), 0u);
  EXPECT_EQ(Report(1, first), 16 * kGiB) << "who waits takes nothing";
  first.least = 4 * kGiB;
  Report(1, first);
  EXPECT_GE(Report(2, second), 8 * kGiB);
}

TEST(CurveOf, IsTheBoundAndFallsWithMemory) {
  protocol::Learned learned;
  learned.h2d = learned.d2h = 1e9;
  protocol::LearnedPhase& phase = learned.phases.emplace_back();
  for (uint32_t i = 0; i < 4; ++i) {
    phase.tensors.push_back({100 << 20, 0, 100 << 20, i});
    phase.launches.push_back({i, i, 0.01, {i}, {i}});
  }
  const auto curve = CurveOf(learned);
  ASSERT_EQ(curve.size(), 8u);
  EXPECT_NEAR(curve.back().seconds, 0.04, 1e-9) << "all of it fits";
  EXPECT_GT(curve[1].seconds, 2 * curve.back().seconds);
  EXPECT_TRUE(CurveOf({}).empty());
}

TEST(UserLimits, AreReadAsTheyAreWritten) {
  const UserLimits own = ParseUserLimits("1000:budget=1.5GiB,weight=2,priority=-1");
  EXPECT_EQ(own.user, 1000u);
  EXPECT_EQ(own.limits.budget, kGiB + kGiB / 2);
  EXPECT_EQ(own.limits.weight, 2);
  EXPECT_EQ(own.limits.priority, -1);
  EXPECT_EQ(ParseUserLimits("*:weight=3").user, std::nullopt);
  for (const char* bad : {"", "1000", "1000:", "1000:budget", "1000:budget=much", "1000:weight=0",
                          "1000:priority=x", "1000:speed=1", "no such user:weight=1"}) {
    EXPECT_THROW(ParseUserLimits(bad), std::invalid_argument) << bad;
  }
}

}  // namespace
}  // namespace atp::daemon
