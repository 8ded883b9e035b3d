// SPDX-License-Identifier: Apache-2.0
#include "shim/link_meter.h"

#include <gtest/gtest.h>

namespace atp::shim {
namespace {

constexpr uint64_t kMiB = 1u << 20;
constexpr bool kIn = true, kOut = false;

// Two directions on a link that moves 25 bytes a nanosecond alone, 12 in and 24 out together; each
// keeps its engine busy with moves of 8 MiB for as long as it is on.
class Link {
 public:
  void Run(uint64_t ns, bool in, bool out) {
    for (int d = 0; d < 2; ++d) begin_[d] = now_, done_[d] = 0;
    const double rate[2] = {in ? 24.0 : 25.0, out ? 12.0 : 25.0};
    for (uint64_t step = 0; step < ns; step += kStep) {
      now_ += kStep;
      for (int d = 0; d < 2; ++d) {
        if (!(d == 1 ? in : out)) continue;
        done_[d] += rate[d] * kStep;
        if (done_[d] < 8 * kMiB) continue;
        done_[d] -= 8 * kMiB;
        meter.Moved(d == 1, begin_[d], now_, 8 * kMiB);
        begin_[d] = now_ - 100'000;  // the next one had been asked for before
      }
    }
  }
  LinkMeter meter;

 private:
  static constexpr uint64_t kStep = 500;
  uint64_t now_ = 1'000'000;
  uint64_t begin_[2] = {0, 0};
  double done_[2] = {0, 0};
};

TEST(LinkMeter, KnowsNothingBeforeEnoughHasMoved) {
  LinkMeter meter;
  for (int i = 0; i < 7; ++i) meter.Moved(kIn, i * 1000, i * 1000 + 900, 8 * kMiB);
  EXPECT_EQ(meter.ToDevice().alone, 0);
  EXPECT_EQ(meter.ToDevice().duplex, 0);
  EXPECT_EQ(meter.ToHost().alone, 0);
}

TEST(LinkMeter, OneDirectionTellsItsRateAlone) {
  Link link;
  link.Run(20'000'000, true, false);
  EXPECT_NEAR(link.meter.ToDevice().alone, 25e9, 0.3e9);
  EXPECT_EQ(link.meter.ToDevice().duplex, 0);
}

TEST(LinkMeter, BothDirectionsTogetherTellTheDuplexPair) {
  Link link;
  link.Run(40'000'000, true, true);
  EXPECT_NEAR(link.meter.ToDevice().duplex, 12e9, 0.3e9);
  EXPECT_NEAR(link.meter.ToHost().duplex, 24e9, 0.5e9);
}

TEST(LinkMeter, AMixTellsAllFour) {
  Link link;
  for (int i = 0; i < 10; ++i) {
    link.Run(3'000'000, true, true);
    link.Run(2'000'000, true, false);
    link.Run(2'000'000, false, true);
  }
  EXPECT_NEAR(link.meter.ToDevice().alone, 25e9, 1.5e9);
  EXPECT_NEAR(link.meter.ToDevice().duplex, 12e9, 1e9);
  EXPECT_NEAR(link.meter.ToHost().alone, 25e9, 1.5e9);
  EXPECT_NEAR(link.meter.ToHost().duplex, 24e9, 1.5e9);
}

// A plan that evicts nothing fills the ring with fetches; the next plan, if it evicts, has to know
// what that costs.
TEST(LinkMeter, WhatBothDirectionsReachIsNotForgottenWhileOneOfThemRests) {
  Link link;
  link.Run(40'000'000, true, true);
  ASSERT_NEAR(link.meter.Link().duplex_h2d, 12e9, 0.3e9);
  link.Run(400'000'000, true, false);  // about 1,200 moves
  EXPECT_NEAR(link.meter.Link().h2d, 25e9, 0.3e9);
  EXPECT_NEAR(link.meter.Link().duplex_h2d, 12e9, 0.3e9);
  EXPECT_NEAR(link.meter.Link().duplex_d2h, 24e9, 0.5e9);
}

// As where evictions are put off while launches wait (policy/flow.h).
TEST(LinkMeter, ADirectionThatComesAndGoesWithinEachMoveOfTheOtherTellsTheDuplexRate) {
  LinkMeter meter;
  uint64_t now = 1'000'000;
  const auto in = [&](uint64_t ns, uint64_t bytes) {
    meter.Moved(kIn, now - 1000, now + ns, bytes);
    now += ns;
  };
  in(100'000, 2'500'000);
  for (int i = 0; i < 20; ++i) in(100'000, 2'500'000);
  for (int i = 0; i < 20; ++i) {  // 0.2 ms beside a copy out, 0.15 ms without
    meter.Moved(kOut, now, now + 200'000, 4'800'000);
    in(350'000, 200'000 * 12 + 150'000 * 25);
  }
  EXPECT_NEAR(meter.ToDevice().alone, 25e9, 0.1e9);
  EXPECT_NEAR(meter.ToDevice().duplex, 12e9, 0.1e9);
}

// Evictions whose calls take twice as long as their copies leave the link to the fetches for half
// of the time. Most fetches meet such, most evictions are others: each median by itself would tell
// of another time, and both together of a link that is not there.
TEST(LinkMeter, BothRatesAreOfTheSameTime) {
  LinkMeter meter;
  uint64_t now[2] = {1'000'000, 1'000'000};  // out, in
  const auto run = [&](uint64_t until, double in, double out) {
    for (int d = 0; d < 2; ++d) {
      const uint64_t bytes = d == kIn ? 8 * kMiB : 2 * kMiB;
      const auto ns = static_cast<uint64_t>(static_cast<double>(bytes) / (d == kIn ? in : out));
      for (; now[d] + ns <= until; now[d] += ns)
        meter.Moved(d, now[d] - 100'000, now[d] + ns, bytes);
      now[d] = until;
    }
  };
  for (uint64_t i = 1, t = 1'000'000; i <= 10; ++i) {
    run(t += 7'000'000, 12, 24);
    run(t += 7'000'000, 18.5, 12);
    now[kOut] = t + 2'000'000;
    run(t += 2'000'000, 25, 24);
  }
  const policy::LinkRates link = meter.Link();
  EXPECT_NEAR(link.h2d, 25e9, 0.3e9);
  EXPECT_NEAR(link.duplex_d2h, 24e9, 0.5e9);
  EXPECT_NEAR(link.duplex_h2d, 12e9, 0.6e9);
}

TEST(LinkMeter, ADuplexRateIsNeverAboveTheRateAlone) {
  LinkMeter meter;
  // Noise: moves beside the other direction look faster.
  for (uint64_t i = 1; i < 40; ++i) {
    const bool both = i % 2 == 0;
    const uint64_t begin = i * 1'000'000, end = begin + (both ? 300'000 : 500'000);
    if (both) meter.Moved(kOut, begin, end, 4 * kMiB);
    meter.Moved(kIn, begin - 600'000, begin, kMiB / 4);
    meter.Moved(kIn, begin - 1'000, end, 8 * kMiB);
  }
  const LinkMeter::Rates rates = meter.ToDevice();
  EXPECT_GT(rates.duplex, 0);
  EXPECT_LE(rates.duplex, rates.alone);
}

// The time of such a move contains the call and the way there.
TEST(LinkMeter, AMoveThatFoundTheLinkIdleTellsNothing) {
  LinkMeter meter;
  for (uint64_t i = 1; i < 40; ++i)
    meter.Moved(kIn, i * 1'000'000, i * 1'000'000 + 900'000, 8 * kMiB);
  EXPECT_EQ(meter.ToDevice().alone, 0);
}

TEST(LinkMeter, MovesThatWaitedForTheDriverDoNotSlowTheLink) {
  LinkMeter meter;
  uint64_t now = 1;
  for (int i = 0; i < 60; ++i) {
    const uint64_t took = i % 2 == 0 ? 335'544 : 900'000;
    meter.Moved(kIn, now - 1, now + took, 8 * kMiB);
    now += took;
  }
  EXPECT_NEAR(meter.ToDevice().alone, 25e9, 0.1e9);
}

TEST(LinkMeter, AMoveThatEndsBeforeItsPredecessorIsLeftOut) {
  LinkMeter meter;
  meter.Moved(kOut, 0, 1000, kMiB);
  meter.Moved(kOut, 10, 900, kMiB);
  for (uint64_t i = 1; i < 20; ++i) {
    meter.Moved(kOut, 500 + (i - 1) * 400'000, 1000 + i * 400'000, 8 * kMiB);
  }
  EXPECT_GT(meter.ToHost().alone, 0);
}

TEST(LinkMeter, WhatIsNotMeasuredIsGuessedFromTheOtherDirection) {
  LinkMeter meter;
  EXPECT_GT(meter.Link().h2d, 0);  // before anything has moved
  for (uint64_t i = 1; i < 40; ++i) {
    meter.Moved(kOut, i * 400'000 - 1, (i + 1) * 400'000, 8 * kMiB);
  }
  EXPECT_GT(meter.Link().d2h, 0);
  EXPECT_EQ(meter.Link().h2d, meter.Link().d2h);
  EXPECT_EQ(meter.Link().duplex_h2d, 0);
}

TEST(LinkMeter, ALogHoldsTheMovesBetweenItsStartAndItsEnd) {
  LinkMeter meter;
  meter.Moved(kIn, 1, 1000, kMiB);
  meter.StartLog(2);
  meter.Moved(kIn, 500, 2000, kMiB);  // on the link from its predecessor's end on
  meter.Moved(kOut, 500, 1500, 2 * kMiB);
  meter.Moved(kIn, 2500, 3000, kMiB);
  const LinkMeter::Log log = meter.EndLog();
  ASSERT_EQ(log.moves.size(), 2u);
  EXPECT_TRUE(log.cut);
  EXPECT_EQ(log.moves[0].begin_ns, 1000u);
  EXPECT_FALSE(log.moves[1].to_device);
  meter.Moved(kIn, 3500, 4000, kMiB);
  EXPECT_TRUE(meter.EndLog().moves.empty());
}

TEST(LinkMeter, WhatAnEarlierRunHasMeasuredHoldsUntilThisOneHas) {
  Link link;
  EXPECT_EQ(link.meter.Known().h2d, 0);
  link.meter.Assume({5e9, 6e9, 2e9, 3e9});
  EXPECT_EQ(link.meter.Link().h2d, 5e9);
  EXPECT_EQ(link.meter.Link().duplex_d2h, 3e9);
  EXPECT_EQ(link.meter.Known().d2h, 6e9);
  link.Run(40'000'000, false, true);
  EXPECT_NEAR(link.meter.Link().d2h, 25e9, 1e9);
  EXPECT_NEAR(link.meter.Known().d2h, 25e9, 1e9);
}

TEST(LinkMeter, WhereBothDirectionsAreAlwaysBusyTheirRatesTogetherAreKnownAndAreTheLink) {
  Link link;
  link.Run(40'000'000, true, true);
  ASSERT_EQ(link.meter.ToDevice().alone, 0);
  EXPECT_GT(link.meter.Known().duplex_h2d, 0);
  EXPECT_GE(link.meter.Known().h2d, link.meter.Known().duplex_h2d);
  EXPECT_GE(link.meter.Known().d2h, link.meter.Known().duplex_d2h);
}

}  // namespace
}  // namespace atp::shim
