// SPDX-License-Identifier: Apache-2.0
#include "policy/lifetimes.h"

#include <gtest/gtest.h>

#include "tests/policy/test_trace.h"

namespace atp::policy {
namespace {

TEST(Lifetimes, CountsWhatIsAliveAtEachLaunchAndBetween) {
  TraceBuilder builder;
  const uint32_t weight = builder.Global(10), local = builder.Local(3);
  builder.Run(1, {weight}, {local}, 5).Run(1, {}).Run(1, {local}).Run(1, {});
  const Lifetimes life = FindLifetimes(builder.trace());
  auto mib = [](const std::vector<Bytes>& bytes) {
    std::vector<Bytes> result;
    for (Bytes b : bytes) result.push_back(b / kMiB);
    return result;
  };
  EXPECT_EQ(mib(life.touched), (std::vector<Bytes>{18, 0, 3, 0}));
  EXPECT_EQ(mib(life.live), (std::vector<Bytes>{18, 13, 13, 10}));
  EXPECT_EQ(mib(life.live_after), (std::vector<Bytes>{13, 13, 10, 10}));
}

TEST(Lifetimes, FindsIntervalsThatWrapAround) {
  TraceBuilder builder;
  const uint32_t weight = builder.Global(10);
  builder.Run(1, {}).Run(1, {weight}).Run(1, {});
  const Lifetimes life = FindLifetimes(builder.trace());
  ASSERT_EQ(life.intervals.size(), 1u);
  EXPECT_EQ(life.intervals[0].last_use, 1u);
  EXPECT_EQ(life.intervals[0].next_use, 4u);
}

TEST(Lifetimes, ALocalTensorThatIsOverwrittenIsDeadBefore) {
  TraceBuilder builder;
  const uint32_t local = builder.Local(10), global = builder.Global(10);
  builder.Run(1, {}, {local, global}).Run(1, {}).Run(1, {}, {local, global}).Run(1, {local});
  const Lifetimes life = FindLifetimes(builder.trace());
  for (const auto& interval : life.intervals) EXPECT_EQ(interval.tensor, global);
  EXPECT_EQ(life.live[1], 10 * kMiB);
}

TEST(Lifetimes, KnowWhatIsWritten) {
  TraceBuilder builder;
  const uint32_t a = builder.Global(1), b = builder.Global(1);
  builder.Run(1, {a}, {b}).Run(1, {a, b});
  EXPECT_EQ(FindLifetimes(builder.trace()).written, (std::vector<bool>{false, true}));
  EXPECT_TRUE(FindLifetimes(Trace{}).live.empty());
}

}  // namespace
}  // namespace atp::policy
