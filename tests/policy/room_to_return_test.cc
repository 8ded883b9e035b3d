// SPDX-License-Identifier: Apache-2.0
#include "policy/room_to_return.h"

#include <gtest/gtest.h>

#include "tests/policy/test_trace.h"

namespace atp::policy {
namespace {

// Six launches of a second each. A and B are used at both ends of the period, C by the first two.
struct Waiting {
  Waiting() {
    a = builder.Global(100), b = builder.Global(100), c = builder.Global(100);
    builder.Run(1, {a, c}).Run(1, {b, c}).Run(1, {}).Run(1, {}).Run(1, {a}).Run(1, {b});
    life = FindLifetimes(builder.trace());
    amounts.assign(life.intervals.size(), 0);
    layout.period = 7;
    layout.launch_start = {0, 1, 2, 3, 5, 6};  // the fifth waits for a second
    layout.launch_end = {1, 2, 3, 4, 6, 7};
    for (uint32_t i = 0; i < amounts.size(); ++i) {
      const InactiveInterval& interval = life.intervals[i];
      if (interval.tensor == a && interval.last_use == 0) from_a = i;
      if (interval.tensor == b && interval.last_use == 1) from_b = i;
      if (interval.tensor == c && interval.last_use == 1) from_c = i;
    }
    amounts[from_a] = 60 * static_cast<int64_t>(kMiB);
    layout.out.push_back({from_a, 0, 60 * kMiB, 1, 1.6});
    layout.in.push_back({from_a, 0, 60 * kMiB, 4.4, 5});
  }
  std::vector<int64_t> More() const {
    return WithRoomToReturn(life, builder.trace().link, layout, amounts);
  }
  TraceBuilder builder{100};
  uint32_t a = 0, b = 0, c = 0, from_a = 0, from_b = 0, from_c = 0;
  Lifetimes life;
  std::vector<int64_t> amounts;
  Layout layout;
};

TEST(WithRoomToReturn, SendsAwayWhatIsNeededLatestForAsLongAsALaunchWaits) {
  const Waiting waiting;
  std::vector<int64_t> expected = waiting.amounts;
  expected[waiting.from_c] = 100 * static_cast<int64_t>(kMiB);  // a second of the link
  EXPECT_EQ(waiting.More(), expected);
}

TEST(WithRoomToReturn, SpillsIntoTheNextLatestWhereThatIsNotEnough) {
  Waiting waiting;
  waiting.amounts[waiting.from_c] = 70 * static_cast<int64_t>(kMiB);
  std::vector<int64_t> expected = waiting.amounts;
  expected[waiting.from_c] = 100 * static_cast<int64_t>(kMiB);
  expected[waiting.from_b] = 70 * static_cast<int64_t>(kMiB);
  EXPECT_EQ(waiting.More(), expected);
}

TEST(WithRoomToReturn, HasNothingToSayOfLaunchesThatWaitForTheWayOut) {
  Waiting waiting;
  waiting.layout.out.push_back({waiting.from_a, 60 * kMiB, 40 * kMiB, 4, 5});
  EXPECT_TRUE(waiting.More().empty());
}

TEST(WithRoomToReturn, HasNothingToSayWhereNoLaunchWaits) {
  Waiting waiting;
  waiting.layout.period = 6;
  waiting.layout.launch_start = {0, 1, 2, 3, 4, 5};
  waiting.layout.launch_end = {1, 2, 3, 4, 5, 6};
  EXPECT_TRUE(waiting.More().empty());
}

}  // namespace
}  // namespace atp::policy
