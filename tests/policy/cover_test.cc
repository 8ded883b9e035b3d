// SPDX-License-Identifier: Apache-2.0
#include "policy/cover.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "tests/policy/random_trace.h"
#include "tests/policy/test_trace.h"

namespace atp::policy {
namespace {

// Bytes by which a launch exceeds memory with all amounts away.
int64_t Worst(const Lifetimes& life, const std::vector<int64_t>& amounts, int64_t memory) {
  const size_t n = life.live.size();
  std::vector<int64_t> over;
  for (Bytes live : life.live) over.push_back(static_cast<int64_t>(live) - memory);
  for (size_t i = 0; i < amounts.size(); ++i) {
    const auto& interval = life.intervals[i];
    for (size_t k = interval.last_use + 1; k < interval.next_use; ++k) over[k % n] -= amounts[i];
  }
  return *std::max_element(over.begin(), over.end());
}

TEST(CoverAmounts, OfASweepAreTheSameShareOfEveryTensor) {
  TraceBuilder builder;
  for (int i = 0; i < 10; ++i) builder.Run(0.01, {builder.Global(90)});
  const Lifetimes life = FindLifetimes(builder.trace());
  const auto amounts = CoverAmounts(life, {540 * int64_t{kMiB}, kMiB});
  ASSERT_EQ(amounts.size(), 10u);
  // At every launch nine tensors wait and 360 MiB of them are away.
  for (int64_t bytes : amounts) EXPECT_NEAR(static_cast<double>(bytes) / kMiB, 40, 8);
  EXPECT_LE(std::accumulate(amounts.begin(), amounts.end(), int64_t{0}), 410 * int64_t{kMiB});
  EXPECT_LE(Worst(life, amounts, 540 * int64_t{kMiB}), 0);
}

TEST(CoverAmounts, CoverEveryLaunchWithWholeGranules) {
  for (uint64_t seed = 0; seed < 150; ++seed) {
    RandomTraceOptions shape;
    shape.launches = 2 + seed % 40, shape.tensors = 2 + seed * 3 % 25, shape.touches = 3;
    shape.unit = 700 * 1024, shape.most_units = 1 + seed % 20, shape.most_workspace = seed % 3;
    const Lifetimes life = FindLifetimes(RandomTrace(seed, shape));
    const int64_t granule = 1 << 20;
    const Bytes least = *std::max_element(life.touched.begin(), life.touched.end());
    for (int64_t lead : {0, 1, 3}) {
      const int64_t memory = static_cast<int64_t>(least) + granule;
      const auto amounts = CoverAmounts(life, {memory, granule, lead, lead});
      ASSERT_EQ(amounts.size(), life.intervals.size()) << seed;
      EXPECT_LE(Worst(life, amounts, memory), 0) << seed << " lead " << lead;
      for (size_t i = 0; i < amounts.size(); ++i) {
        const int64_t size = static_cast<int64_t>(life.intervals[i].bytes);
        EXPECT_TRUE(amounts[i] == size || amounts[i] % granule == 0);
        EXPECT_LE(amounts[i], size);
        EXPECT_GE(amounts[i], 0);
      }
    }
  }
}

TEST(CoverAmounts, AreWholeTensorsWhereThatIsAsked) {
  TraceBuilder builder;
  for (int i = 0; i < 10; ++i) builder.Run(0.01, {builder.Global(90)});
  const Lifetimes life = FindLifetimes(builder.trace());
  const int64_t memory = 540 * int64_t{kMiB};
  const auto amounts = CoverAmounts(life, {memory, kMiB, 0, 0, 1, true});
  ASSERT_EQ(amounts.size(), 10u);
  for (int64_t bytes : amounts) EXPECT_TRUE(bytes == 0 || bytes == 90 * int64_t{kMiB});
  EXPECT_LE(Worst(life, amounts, memory), 0);
}

TEST(CoverAmounts, AreNoneWhereALaunchCannotFit) {
  TraceBuilder builder;
  const uint32_t a = builder.Global(10), b = builder.Global(10);
  builder.Run(1, {a}).Run(1, {a, b});
  EXPECT_TRUE(CoverAmounts(FindLifetimes(builder.trace()), {15 * int64_t{kMiB}, kMiB}).empty());
  EXPECT_TRUE(CoverAmounts(Lifetimes{}, {1, 1}).empty());
}

}  // namespace
}  // namespace atp::policy
