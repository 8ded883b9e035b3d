// SPDX-License-Identifier: Apache-2.0
#include "daemon/share.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>

namespace atp::daemon {
namespace {

constexpr Bytes kMiB = 1u << 20, kGiB = 1u << 30;

ShareJob Running(Bytes footprint, double weight = 1, int priority = 0) {
  ShareJob job;
  job.footprint = footprint;
  job.least = footprint / 16;
  job.weight = weight;
  job.priority = priority;
  job.runs = true;
  return job;
}

Bytes Sum(const std::vector<Bytes>& budgets) {
  return std::accumulate(budgets.begin(), budgets.end(), Bytes{0});
}

TEST(Share, AJobAloneGetsAllThatItUses) {
  EXPECT_EQ(ShareMemory(16 * kGiB, {Running(8 * kGiB)})[0], 8 * kGiB);
  EXPECT_EQ(ShareMemory(16 * kGiB, {Running(40 * kGiB)})[0], 16 * kGiB);
}

TEST(Share, EqualJobsGetEqualParts) {
  const auto budgets = ShareMemory(16 * kGiB, {Running(12 * kGiB), Running(12 * kGiB)});
  EXPECT_EQ(Sum(budgets), 16 * kGiB);
  EXPECT_LE(std::max(budgets[0], budgets[1]) - std::min(budgets[0], budgets[1]), 32 * kMiB);
}

TEST(Share, AmongEqualJobsMemoryGoesByWeight) {
  const auto budgets = ShareMemory(12 * kGiB, {Running(12 * kGiB, 2), Running(12 * kGiB, 1)});
  EXPECT_GE(budgets[0], 8 * kGiB - 32 * kMiB);
}

TEST(Share, AHigherPriorityGetsWhatItUsesAndTheOthersKeepTheirLeast) {
  const auto budgets = ShareMemory(16 * kGiB, {Running(12 * kGiB), Running(12 * kGiB, 1, 5)});
  EXPECT_EQ(budgets[1], 12 * kGiB);
  EXPECT_EQ(budgets[0], 4 * kGiB);
  const auto larger = ShareMemory(16 * kGiB, {Running(12 * kGiB), Running(40 * kGiB, 1, 5)});
  EXPECT_EQ(larger[0], 12 * kGiB / 16);
  EXPECT_EQ(Sum(larger), 16 * kGiB);
}

TEST(Share, MemoryGoesWhereItSavesTime) {
  ShareJob knee = Running(12 * kGiB), steep = Running(12 * kGiB);
  knee.curve = {{2 * kGiB, 1.2}, {4 * kGiB, 1.0}, {12 * kGiB, 1.0}};  // of no use beyond 4 GiB
  steep.curve = {{1 * kGiB, 3}, {12 * kGiB, 1.0}};
  const auto budgets = ShareMemory(16 * kGiB, {knee, steep});
  EXPECT_EQ(budgets[1], 12 * kGiB);
  EXPECT_EQ(budgets[0], 4 * kGiB);
}

TEST(Share, NobodyGetsMoreThanItMay) {
  ShareJob capped = Running(12 * kGiB);
  capped.most = 3 * kGiB;
  const auto budgets = ShareMemory(16 * kGiB, {capped, Running(12 * kGiB)});
  EXPECT_EQ(budgets[0], 3 * kGiB);
  EXPECT_EQ(budgets[1], 12 * kGiB);
}

TEST(Share, WhatDoesNotFitWaitsAndIsLetInByPriority) {
  ShareJob runs = Running(12 * kGiB), waits = Running(12 * kGiB), urgent = Running(12 * kGiB, 1, 3);
  runs.least = 10 * kGiB;
  waits.least = urgent.least = 5 * kGiB;
  waits.runs = urgent.runs = false;
  const auto budgets = ShareMemory(16 * kGiB, {runs, waits, urgent});
  EXPECT_EQ(budgets[1], 0u) << "there is room for one, and another is more urgent";
  EXPECT_GE(budgets[2], 5 * kGiB);
  EXPECT_GE(budgets[0], 10 * kGiB);
}

TEST(Share, ALowerPriorityDoesNotSlipInBeforeOneThatWaits) {
  ShareJob runs = Running(12 * kGiB), small = Running(1 * kGiB), urgent = Running(12 * kGiB, 1, 3);
  runs.least = 12 * kGiB;
  urgent.least = 8 * kGiB;
  small.runs = urgent.runs = false;
  const auto budgets = ShareMemory(16 * kGiB, {runs, small, urgent});
  EXPECT_EQ(budgets[1], 0u);
  EXPECT_EQ(budgets[2], 0u);
}

// What must hold whatever the jobs are.
class ShareProperty : public testing::TestWithParam<unsigned> {
 protected:
  static std::vector<ShareJob> Jobs(std::mt19937* random, Bytes memory) {
    const auto pick = [&](double most) {
      return std::uniform_real_distribution<double>(0, most)(*random);
    };
    std::vector<ShareJob> jobs(1 + (*random)() % 6);
    for (ShareJob& job : jobs) {
      job.footprint = static_cast<Bytes>(pick(2.0 * static_cast<double>(memory)));
      job.least = static_cast<Bytes>(pick(0.3) * static_cast<double>(job.footprint));
      job.weight = 0.1 + pick(4);
      job.priority = static_cast<int>((*random)() % 3);
      job.runs = false;
      if ((*random)() % 4 == 0) job.most = memory / 4;
      for (unsigned points = (*random)() % 5; points > 0; --points) {
        job.curve.push_back({static_cast<Bytes>(pick(static_cast<double>(memory))), pick(10)});
      }
    }
    return jobs;
  }
};

TEST_P(ShareProperty, BudgetsFitTheCardAndEachJobsNeeds) {
  std::mt19937 random(GetParam());
  const Bytes memory = 8 * kGiB + random() % kGiB;
  const auto jobs = Jobs(&random, memory);
  const auto budgets = ShareMemory(memory, jobs);
  EXPECT_LE(Sum(budgets), memory);
  for (size_t i = 0; i < jobs.size(); ++i) {
    if (budgets[i] == 0) continue;
    EXPECT_GE(budgets[i], jobs[i].least);
    EXPECT_LE(budgets[i], std::max({jobs[i].footprint, jobs[i].least, Bytes{1}}));
    if (jobs[i].most != 0) {
      EXPECT_LE(budgets[i], std::max({jobs[i].most, jobs[i].least, Bytes{1}}));
    }
  }
}

TEST_P(ShareProperty, MoreWeightNeverMeansLessMemory) {
  std::mt19937 random(GetParam());
  const Bytes memory = 8 * kGiB;
  auto jobs = Jobs(&random, memory);
  for (ShareJob& job : jobs) job.runs = true;
  const auto before = ShareMemory(memory, jobs);
  const size_t one = random() % jobs.size();
  jobs[one].weight *= 1.5;
  const Bytes granule = 16 * kMiB;  // is given as a whole
  EXPECT_GE(ShareMemory(memory, jobs)[one] + granule, before[one]);
}

TEST_P(ShareProperty, MorePriorityNeverMeansLessMemory) {
  std::mt19937 random(GetParam());
  const Bytes memory = 8 * kGiB;
  auto jobs = Jobs(&random, memory);
  for (ShareJob& job : jobs) job.runs = true;
  const auto before = ShareMemory(memory, jobs);
  const size_t one = random() % jobs.size();
  jobs[one].priority = 9;
  EXPECT_GE(ShareMemory(memory, jobs)[one], before[one]);
}

INSTANTIATE_TEST_SUITE_P(Seeds, ShareProperty, testing::Range(0u, 60u));

TEST_P(ShareProperty, TheRestIsGivenOutWithinWhatJobsMayHave) {
  std::mt19937 random(GetParam());
  const Bytes memory = 8 * kGiB;
  const auto jobs = Jobs(&random, memory);
  const auto shared = ShareMemory(memory, jobs), all = WithTheRest(memory, jobs, shared);
  EXPECT_LE(Sum(all), memory);
  bool somebody_may_have_more = false;
  for (size_t i = 0; i < jobs.size(); ++i) {
    EXPECT_GE(all[i], shared[i]);
    EXPECT_EQ(all[i] == 0, shared[i] == 0);
    if (jobs[i].most != 0) {
      EXPECT_LE(all[i], std::max(shared[i], jobs[i].most));
    }
    somebody_may_have_more |= all[i] != 0 && jobs[i].most == 0;
  }
  if (somebody_may_have_more) {
    EXPECT_GE(Sum(all) + 16, memory);
  }
}

TEST(Settled, SmallChangesAreLeftAlone) {
  const std::vector<ShareJob> jobs = {Running(12 * kGiB), Running(12 * kGiB)};
  const std::vector<Bytes> now = {8 * kGiB, 8 * kGiB};
  EXPECT_EQ(Settled(16 * kGiB, jobs, now, {8 * kGiB + 100 * kMiB, 8 * kGiB - 100 * kMiB}), now);
  const std::vector<Bytes> other = {9 * kGiB, 7 * kGiB};
  EXPECT_EQ(Settled(16 * kGiB, jobs, now, other), other);
}

TEST(Settled, WhatDoesNotFitAnyMoreIsNeverKept) {
  const std::vector<ShareJob> jobs = {Running(12 * kGiB), Running(12 * kGiB)};
  const std::vector<Bytes> now = {8 * kGiB, 8 * kGiB}, wanted = {8 * kGiB - kMiB, 8 * kGiB - kMiB};
  EXPECT_EQ(Settled(16 * kGiB - 2 * kMiB, jobs, now, wanted), wanted);
}

TEST(Settled, OneThatComesOrGoesIsNoSmallChange) {
  const std::vector<ShareJob> jobs = {Running(12 * kGiB), Running(1 * kMiB)};
  const std::vector<Bytes> now = {12 * kGiB, 0}, wanted = {12 * kGiB, kMiB};
  EXPECT_EQ(Settled(16 * kGiB, jobs, now, wanted), wanted);
}

}  // namespace
}  // namespace atp::daemon
