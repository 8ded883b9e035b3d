// SPDX-License-Identifier: Apache-2.0
#include "policy/replay/uses.h"

#include <gtest/gtest.h>

#include "tests/policy/test_trace.h"

namespace atp::policy {
namespace {

TEST(Uses, ANextUseWrapsForGlobalTensorsOnly) {
  TraceBuilder b;
  const uint32_t global = b.Global(1), local = b.Local(1);
  b.Run(1, {global}, {local}).Run(1, {local}).Run(1, {});
  const Uses uses(b.trace());
  EXPECT_EQ(uses.NextUse(global, 0), 3u);
  EXPECT_EQ(uses.NextUse(global, 4), 6u);
  EXPECT_EQ(uses.NextUse(local, 0), 1u);
  EXPECT_EQ(uses.NextUse(local, 1), kNever);
}

TEST(Uses, ALocalTensorThatIsOverwrittenLivesTwice) {
  TraceBuilder b;
  const uint32_t t = b.Local(1);
  b.Run(1, {}, {t}).Run(1, {t}).Run(1, {}).Run(1, {}, {t}).Run(1, {t});
  const Uses uses(b.trace());
  EXPECT_EQ(uses.NextUse(t, 0), 1u);
  EXPECT_EQ(uses.NextUse(t, 1), kNever);  // dead until overwritten
  EXPECT_EQ(uses.NextUse(t, 3), 4u);
  EXPECT_EQ(uses.born[0], std::vector<uint32_t>{t});
  EXPECT_EQ(uses.dies[1], std::vector<uint32_t>{t});
  EXPECT_EQ(uses.born[3], std::vector<uint32_t>{t});
  EXPECT_EQ(uses.dies[4], std::vector<uint32_t>{t});
}

TEST(Uses, AnUpdateInPlaceDoesNotEndALife) {
  TraceBuilder b;
  const uint32_t t = b.Local(1);
  b.Run(1, {}, {t}).Run(1, {t}, {t}).Run(1, {t});
  const Uses uses(b.trace());
  EXPECT_EQ(uses.NextUse(t, 0), 1u);
  EXPECT_TRUE(uses.born[1].empty());
}

TEST(Uses, TheFootprintIsThePeakOfLiveBytes) {
  TraceBuilder b;
  const uint32_t a = b.Global(3), c = b.Local(5);
  b.Run(1, {a}, {c}, 2).Run(1, {c});
  EXPECT_EQ(PeakLiveBytes(b.trace()), 10 * kMiB);
  EXPECT_EQ(LargestLaunchBytes(b.trace()), 10 * kMiB);
}

}  // namespace
}  // namespace atp::policy
