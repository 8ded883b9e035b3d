// SPDX-License-Identifier: Apache-2.0
// What a period would gain by running launches again.
#include "shim/recompute_gain.h"

#include <gtest/gtest.h>

namespace atp::shim {
namespace {

// Four tensors of 8 granules, written in turn and read in reverse, on a device with room for two,
// behind a link that takes ten times as long for one as a launch does.
class RecomputeGainTest : public testing::Test {
 protected:
  static constexpr uint32_t kTensors = 4;
  static constexpr uint64_t kBytes = 8 * kGranule;
  RecomputeGainTest() {
    trace_.link.h2d = trace_.link.d2h = static_cast<double>(kBytes) / 10e-3;
    options_.memory = trace_.device_bytes = 2 * kBytes + kGranule;
    for (uint32_t t = 0; t < kTensors; ++t) {
      Allocation& a = allocations_[t];
      a.address = (t + 1ull) << 32;
      a.bytes = a.mapped_bytes = kBytes;
      period_.allocations.push_back(&a);
      period_.seen.allocations.push_back(kBytes);
      placed_.push_back({&a, 0, kBytes, t, true});
      trace_.tensors.push_back({});
      trace_.tensors.back().bytes = kBytes;
    }
    for (uint32_t i = 0; i < 2 * kTensors; ++i) {
      policy::Launch launch;
      launch.seconds = 1e-3;
      const bool forward = i < kTensors;
      (forward ? launch.writes : launch.reads) = {forward ? i : 2 * kTensors - 1 - i};
      trace_.launches.push_back(launch);
      if (!forward) continue;
      Again again;
      again.position = i;
      again.outputs.push_back({0, allocations_[i].address, kBytes, 0, &allocations_[i]});
      repeatable_.again.push_back(again);
    }
  }
  RecomputeGain Find() {
    const policy::Plan plain = policy::MakePlan(trace_, options_);
    EXPECT_TRUE(plain.feasible) << plain.why;
    return GainOf(trace_, options_, plain, period_, placed_, repeatable_);
  }

  Allocation allocations_[kTensors];
  policy::Trace trace_;
  policy::PlanOptions options_;
  Recorder::Period period_;
  std::vector<Placed> placed_;
  Repeatable repeatable_;
};

TEST_F(RecomputeGainTest, WhatWaitsAcrossTheNarrowestPlaceIsMadeAgain) {
  const RecomputeGain gain = Find();
  EXPECT_EQ(gain.droppable, 4u);
  EXPECT_LT(gain.seconds, gain.plain_seconds);
  EXPECT_GT(gain.rerun_seconds, 0);
  EXPECT_FALSE(gain.producers.empty());
  EXPECT_GT(gain.dropped_bytes, 0u);
}

TEST_F(RecomputeGainTest, NotWhatIsWrittenInPart) {
  for (Again& again : repeatable_.again) again.outputs[0].bytes -= 4;
  const RecomputeGain gain = Find();
  EXPECT_EQ(gain.droppable, 0u);
  EXPECT_EQ(gain.seconds, gain.plain_seconds);
}

TEST_F(RecomputeGainTest, NorWhatMayRunAgainAtOnceOnly) {
  for (Again& again : repeatable_.again) again.unwatched = true;
  EXPECT_EQ(Find().droppable, 0u);
}

TEST_F(RecomputeGainTest, TheRestOfTheLastBlockIsNobodys) {
  for (uint32_t t = 0; t < kTensors; ++t) {
    period_.seen.allocations[t] -= 4;
    repeatable_.again[t].outputs[0].bytes -= 4;
  }
  EXPECT_EQ(Find().droppable, 4u);
}

TEST_F(RecomputeGainTest, NothingIsWhatMayNotRunAgain) {
  repeatable_.again.clear();
  EXPECT_TRUE(Find().producers.empty());
}

}  // namespace
}  // namespace atp::shim
