// SPDX-License-Identifier: Apache-2.0
#include "policy/link_queue.h"

#include <gtest/gtest.h>

namespace atp::policy {
namespace {

RateProfile Steady(double rate, double period) { return {{0.0}, {rate}, period}; }

TEST(LinkQueue, RunsJobsByOrderAmongThoseThatAreReady) {
  const std::vector<LinkJob> jobs = {{0, 2, 0, 10}, {0, 1, 1, 10}, {1, 0, 2, 10}};
  const auto pieces = RunLinkQueue(jobs, Steady(10, 10), {}, {1, 100, false, 100});
  ASSERT_EQ(pieces.size(), 3u);
  EXPECT_EQ(pieces[0].id, 1u);
  EXPECT_EQ(pieces[1].id, 2u);  // came later, but goes before job 0
  EXPECT_EQ(pieces[2].id, 0u);
  EXPECT_DOUBLE_EQ(pieces[2].end, 3.0);
}

TEST(LinkQueue, CutsAtGranulesBeforeEachCut) {
  const std::vector<LinkJob> jobs = {{0, 0, 0, 11}};
  const auto pieces = RunLinkQueue(jobs, Steady(1, 20), {5.5}, {2, 100, false, 1});
  ASSERT_EQ(pieces.size(), 3u);
  EXPECT_EQ(pieces[0].bytes, 4u);  // whole granules before the cut
  EXPECT_EQ(pieces[1].bytes, 2u);  // one across it
  EXPECT_EQ(pieces[2].bytes, 5u);  // the rest with the tail
}

TEST(LinkQueue, TheTailMayGoFirst) {
  const std::vector<LinkJob> jobs = {{0, 0, 0, 11}};
  const auto pieces = RunLinkQueue(jobs, Steady(1, 20), {}, {4, 4, true, 1});
  ASSERT_EQ(pieces.size(), 3u);
  EXPECT_EQ(pieces[0].bytes, 3u);
  EXPECT_EQ(pieces[1].bytes, 4u);
}

TEST(LinkQueue, CarriesWorkIntoTheNextPeriod) {
  // 8 seconds of work are released at second 6 of 10.
  const std::vector<LinkJob> jobs = {{6, 6, 0, 8}, {1, 1, 1, 1}};
  const auto pieces = RunLinkQueue(jobs, Steady(1, 10), {}, {1, 100, false, 10});
  ASSERT_EQ(pieces.size(), 2u);
  EXPECT_EQ(pieces[0].id, 1u);
  EXPECT_DOUBLE_EQ(pieces[0].start, 4.0);  // behind what the period before left over
  EXPECT_DOUBLE_EQ(pieces[1].start, 6.0);
  EXPECT_DOUBLE_EQ(pieces[1].end, 14.0);
}

TEST(LinkQueue, FollowsARateThatChanges) {
  RateProfile profile{{0.0, 1.0, 2.0}, {10, 0, 20}, 4};
  const auto pieces = RunLinkQueue({{0, 0, 0, 30}}, profile, {}, {1, 100, false, 1});
  ASSERT_EQ(pieces.size(), 1u);
  EXPECT_DOUBLE_EQ(pieces[0].end, 3.0);
}

TEST(LinkQueue, DoesNothingWithoutJobs) {
  EXPECT_TRUE(RunLinkQueue({}, Steady(1, 1), {}, {1, 1, false, 1}).empty());
  EXPECT_TRUE(RunLinkQueue({{0, 0, 0, 5}}, Steady(0, 1), {}, {1, 1, false, 1}).empty());
}

}  // namespace
}  // namespace atp::policy
