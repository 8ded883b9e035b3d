// SPDX-License-Identifier: Apache-2.0
#include "sim/machine/link.h"

#include <gtest/gtest.h>

#include <random>

namespace atp::sim {
namespace {

constexpr Direction kIn = Direction::kToDevice, kOut = Direction::kToHost;
// 25 GB/s alone, 12 in and 24 out while both run: a megabyte takes 40 us, or 83.33 / 41.67 us.
constexpr LinkRates kRates{{25'000'000'000, 25'000'000'000}, {12'000'000'000, 24'000'000'000}};
constexpr uint64_t kMb = 1'000'000;

class LinkTest : public testing::Test {
 protected:
  Ready In(uint64_t bytes, Time at, const Ready& after = {}) { return Push(kIn, bytes, at, after); }
  Ready Out(uint64_t bytes, Time at, const Ready& after = {}) {
    return Push(kOut, bytes, at, after);
  }
  Ready Push(Direction direction, uint64_t bytes, Time at, Ready after) {
    after.at = std::max(after.at, at);
    return Interconnect::Of(link_.Push(0, at, Channel::kDriver, direction, bytes, 0, after));
  }
  double EndUs(const Ready& ready) {
    return static_cast<double>(link_.Resolve(ready)) / static_cast<double>(kUs);
  }
  Timeline timeline_;
  Interconnect link_{2, kRates, &timeline_};
};

TEST_F(LinkTest, APieceAloneGoesAtTheFullRate) {
  EXPECT_EQ(link_.Resolve(In(kMb, 0)), 40 * kUs);
  EXPECT_EQ(link_.Resolve(In(kMb, 0)), 80 * kUs);  // first in, first out
}

TEST_F(LinkTest, TwoDirectionsTogetherGoAtTheDuplexPair) {
  Ready in = In(2 * kMb, 0), out = Out(2 * kMb, 0);
  // Out: 2 MB at 24 GB/s = 83.33 us; by then 1 MB is in, the other goes at 25 GB/s.
  EXPECT_NEAR(EndUs(out), 83.333, 0.001);
  EXPECT_NEAR(EndUs(in), 83.333 + 40, 0.001);
}

TEST_F(LinkTest, APieceThatIsUnderWayIsSlowedDownByALaterOne) {
  Ready in = In(2 * kMb, 0);
  EXPECT_EQ(link_.Resolve(in), 80 * kUs);
  Ready out = Out(kMb, 40 * kUs);
  // 1 MB is in after 40 us; then both: out ends at 40 + 41.67, when 0.5 MB is left to come in.
  EXPECT_NEAR(EndUs(out), 81.667, 0.001);
  EXPECT_NEAR(EndUs(in), 81.667 + 20, 0.001);
}

TEST_F(LinkTest, APieceWaitsForTheOnesItDependsOn) {
  Ready out = Out(kMb, 0);
  Ready in = In(kMb, 0, out);
  EXPECT_EQ(link_.Resolve(out), 40 * kUs);
  EXPECT_EQ(link_.Resolve(in), 80 * kUs);  // never both at once
}

TEST_F(LinkTest, SetupKeepsTheEngineButNotTheLink) {
  Ready after;
  Ticket in = link_.Push(0, 0, Channel::kDriver, kIn, kMb, 100 * kUs, after);
  Ready out = Out(2 * kMb, 0);
  EXPECT_EQ(link_.Resolve(out), 80 * kUs);
  EXPECT_EQ(link_.Resolve(Interconnect::Of(in)), 140 * kUs);
}

TEST_F(LinkTest, TheProgramsCopiesAndTheDriversShareADirectionEvenly) {
  Ready migration = In(2 * kMb, 0);
  Ready copy = Interconnect::Of(link_.Push(0, 0, Channel::kProgram, kIn, kMb, 0, {}));
  EXPECT_EQ(link_.Resolve(copy), 80 * kUs);  // 12.5 GB/s each
  EXPECT_EQ(link_.Resolve(migration), 120 * kUs);
}

TEST_F(LinkTest, LinksOfTwoDevicesDoNotShareTheirRates) {
  Ready out = Out(kMb, 0);
  Ready in = Interconnect::Of(link_.Push(1, 0, Channel::kDriver, kIn, kMb, 0, {}));
  EXPECT_EQ(link_.Resolve(out), 40 * kUs);
  EXPECT_EQ(link_.Resolve(in), 40 * kUs);
  Ready chained = Interconnect::Of(link_.Push(1, 0, Channel::kDriver, kIn, kMb, 0, out));
  EXPECT_EQ(link_.Resolve(chained), 80 * kUs);
}

TEST_F(LinkTest, OldTicketsAreOver) {
  Ready in = In(kMb, 0);
  EXPECT_EQ(link_.Resolve(in), 40 * kUs);
  In(kMb, 1000 * kUs);
  EXPECT_LE(link_.Resolve(in), 40 * kUs);
}

TEST_F(LinkTest, EndsOnlyMoveToLaterTimesAndRatesAreNeverExceeded) {
  std::mt19937 random(11);
  Time now = 0;
  std::vector<std::pair<Ready, Time>> pushed;
  uint64_t bytes[2] = {0, 0};
  for (int i = 0; i < 400; ++i) {
    now += static_cast<Time>(random() % 60) * kUs;
    int d = static_cast<int>(random() % 2);
    uint64_t size = 4096 * (1 + random() % 512);
    Ready after;
    if (!pushed.empty() && random() % 3 == 0) after = pushed[pushed.size() - 1].first;
    bytes[d] += size;
    Ready ready = Push(static_cast<Direction>(d), size, now, after);
    for (size_t k = pushed.size() > 20 ? pushed.size() - 20 : 0; k < pushed.size(); ++k) {
      if (pushed[k].second <= now) continue;  // over: the link may have forgotten it
      Time end = link_.Resolve(pushed[k].first);
      ASSERT_GE(end, pushed[k].second);
      pushed[k].second = end;
    }
    pushed.emplace_back(ready, link_.Resolve(ready));
  }
  Time end = 0;
  for (auto& [ready, last] : pushed) end = std::max(end, last);
  for (int d = 0; d < 2; ++d) {
    double busy = static_cast<double>(link_.At(0).Busy(static_cast<Direction>(d), end)) * 1e-12;
    double sent = static_cast<double>(bytes[d]);
    EXPECT_GE(busy * 25e9, sent * 0.999999);
    EXPECT_LE(busy * (d == 0 ? 12e9 : 24e9), sent * 1.000001);
  }
}

}  // namespace
}  // namespace atp::sim
