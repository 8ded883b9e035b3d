// SPDX-License-Identifier: Apache-2.0
// A program that knows nothing of us comes to a card on which a job runs by a plan, takes 30 % of
// it, and leaves again.
#include <algorithm>
#include <fstream>
#include <numeric>

#include "tests/daemon/daemon_process.h"
#include "tests/preload/share/shared_card.h"
#include "tests/preload/train.h"

namespace atp::preload {
namespace {

constexpr double kCardMib = 44, kComesMs = 60, kStaysMs = 100;

// 54 MiB on the card of 44.
std::vector<std::string> Train(int iterations) { return TrainCommand(512, 16, iterations); }

Job Neighbour(int mib, double comes_ms = kComesMs) {
  return {{ATP_PROGRAM_FOLDER "/neighbour", std::to_string(mib), std::to_string(kStaysMs)},
          {{"LD_PRELOAD", Preload({})}, {"ATP_SIM_START", std::to_string(comes_ms)}}};
}

std::vector<double> Budgets(const std::string& log, const std::string& by) {
  const std::regex given("budget ([0-9.]+) MiB by " + by);
  std::vector<double> budgets;
  for (std::sregex_iterator it(log.begin(), log.end(), given), end; it != end; ++it)
    budgets.push_back(std::stod((*it)[1]));
  return budgets;
}

double Sum(const std::vector<double>& values, size_t begin, size_t end) {
  return std::accumulate(values.begin() + static_cast<ptrdiff_t>(begin),
                         values.begin() + static_cast<ptrdiff_t>(end), 0.0);
}

class Neighbours : public testing::Test {
 protected:
  std::string Folder() const {
    return testing::TempDir() + "neighbours." + std::to_string(getpid()) + "." +
           testing::UnitTest::GetInstance()->current_test_info()->name();
  }
  void SetUp() override { std::filesystem::create_directories(Folder()); }
  void TearDown() override { std::filesystem::remove_all(Folder()); }

  // The job's outcome, and what faults of the card brought.
  JobOutcome BesideANeighbour(const Environment& environment) {
    Job job = {Train(24), environment};
    job.environment["ATP_SIM_STATS"] = Folder() + "/stats";
    const auto both =
        RunTogether({job, Neighbour(13)}, {{"ATP_SIM_MEMORY", "44MiB"}, {"ATP_LOG", "info"}});
    for (const JobOutcome& one : both) EXPECT_EQ(one.finished.exit_code, 0) << one.finished.err;
    std::ifstream in(Folder() + "/stats");
    const std::string text(std::istreambuf_iterator<char>(in), {});
    std::smatch found;
    fault_mib_ = -1;
    if (std::regex_search(text, found, std::regex("\"h2d\": *\\{[^}]*\"fault\": *([0-9]+)")))
      fault_mib_ = std::stod(found[1]) / (1 << 20);
    EXPECT_GE(fault_mib_, 0);
    return both[0];
  }
  double fault_mib_ = 0;
};

TEST_F(Neighbours, ThatComesMakesThePlanSmallerWithinThreeIterationsAndThatGoesGivesTheRoomBack) {
  const JobOutcome blind = BesideANeighbour({{"ATP_DISABLE", "neighbours"}});
  const double blind_fault_mib = fault_mib_;
  EXPECT_TRUE(Budgets(blind.finished.err, "what neighbours leave").empty());

  const JobOutcome job = BesideANeighbour({});
  EXPECT_EQ(job.checksum, blind.checksum);
  const std::vector<double> budgets = Budgets(job.finished.err, "what neighbours leave");
  ASSERT_EQ(budgets.size(), 2u) << job.finished.err;
  EXPECT_NEAR(budgets[0], 0.7 * kCardMib, 2);
  EXPECT_EQ(budgets[1], kCardMib);

  // It comes in iteration `comes`, and `settled` is the fourth from there.
  const std::vector<double>& ms = job.iteration_ms;
  ASSERT_EQ(ms.size(), 24u);
  size_t comes = 0;
  for (double at = ms[0]; at < kComesMs && comes + 1 < ms.size(); at += ms[++comes]) {
  }
  ASSERT_GE(comes, 4u);
  ASSERT_LT(comes + 8, ms.size());
  const size_t settled = comes + 3;
  for (size_t i = settled + 1; i < settled + 5; ++i) EXPECT_NEAR(ms[i], ms[settled], 0.02 * ms[i]);
  EXPECT_LT(Sum(ms, settled, settled + 3), 0.6 * Sum(blind.iteration_ms, settled, settled + 3));
  // And goes again.
  EXPECT_LT(ms.back(), 0.75 * ms[settled]);
  EXPECT_LT(ms.back(), 1.05 * *std::min_element(ms.begin(), ms.end()));
  // What it pushed out came back by faults about once, and not in each iteration.
  EXPECT_LT(fault_mib_, blind_fault_mib / 2);
}

TEST_F(Neighbours, WhoKeepsToLessThanTheyLeaveDoesNotCare) {
  const JobOutcome job = BesideANeighbour({{"ATP_BUDGET", "28MiB"}});
  EXPECT_TRUE(Budgets(job.finished.err, "what neighbours leave").empty()) << job.finished.err;
}

TEST_F(Neighbours, ProgramsUnderTheShimAreNone) {
  const auto both = RunTogether({{Train(6), {}}, {Train(6), {{"ATP_SIM_START", "30"}}}},
                                {{"ATP_SIM_MEMORY", "68MiB"}, {"ATP_LOG", "info"}});
  for (const JobOutcome& job : both) {
    EXPECT_EQ(job.finished.exit_code, 0) << job.finished.err;
    EXPECT_TRUE(Budgets(job.finished.err, "what neighbours leave").empty()) << job.finished.err;
  }
}

// What it takes is not given out to jobs, and is given out when it has gone.
TEST_F(Neighbours, OnACardThatADaemonDividesAreNotGivenOut) {
  daemon::DaemonProcess daemon(Folder());
  const auto all = RunTogether(
      {{Train(24), {}}, {Train(24), {}}, Neighbour(24, 100)},
      {{"ATP_SIM_MEMORY", "80MiB"}, {"ATP_SOCKET", daemon.socket()}, {"ATP_LOG", "info"}});
  std::vector<double> least, last;
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(all[i].finished.exit_code, 0) << all[i].finished.err;
    const std::vector<double> budgets = Budgets(all[i].finished.err, "atpd");
    ASSERT_FALSE(budgets.empty()) << all[i].finished.err;
    EXPECT_TRUE(Budgets(all[i].finished.err, "what neighbours leave").empty());
    least.push_back(*std::min_element(budgets.begin(), budgets.end()));
    last.push_back(budgets.back());
  }
  EXPECT_EQ(all[0].checksum, all[1].checksum);
  EXPECT_LE(least[0] + least[1], 80 - 24 + 1) << all[0].finished.err;
  EXPECT_GT(std::max(last[0], last[1]), 36) << all[0].finished.err;
}

}  // namespace
}  // namespace atp::preload
