// SPDX-License-Identifier: Apache-2.0
#include "policy/baselines/deficit_walk.h"

#include <gtest/gtest.h>

#include "tests/policy/test_trace.h"

namespace atp::policy {
namespace {

// Three tensors of 10 MiB, used one after the other.
TraceBuilder Cycle() {
  TraceBuilder b;
  for (int i = 0; i < 3; ++i) b.Global(10);
  for (uint32_t i = 0; i < 3; ++i) b.Run(1, {i});
  return b;
}

TEST(DeficitWalk, NothingGoesOutWhenAllFits) {
  EXPECT_TRUE(WalkDeficits(Cycle().trace(), 30 * kMiB, 2 * kMiB).empty());
}

TEST(DeficitWalk, PartsAreAsLargeAsTheDeficit) {
  const auto outings = WalkDeficits(Cycle().trace(), 26 * kMiB, 2 * kMiB);
  ASSERT_FALSE(outings.empty());
  for (const Outing& o : outings) EXPECT_EQ(o.bytes, 4 * kMiB);
}

TEST(DeficitWalk, WithoutPartsWholeTensorsGoOut) {
  const auto outings = WalkDeficits(Cycle().trace(), 26 * kMiB, 0);
  ASSERT_FALSE(outings.empty());
  for (const Outing& o : outings) EXPECT_EQ(o.bytes, 10 * kMiB);
}

TEST(DeficitWalk, AnOutingLiesBetweenTwoUses) {
  for (const Outing& o : WalkDeficits(Cycle().trace(), 20 * kMiB, 2 * kMiB)) {
    EXPECT_EQ(o.after, o.tensor);
    EXPECT_EQ(o.before, o.tensor);  // once a period: it wraps
  }
}

}  // namespace
}  // namespace atp::policy
