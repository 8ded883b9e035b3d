// SPDX-License-Identifier: Apache-2.0
#include "policy/baselines/baseline.h"

#include <gtest/gtest.h>

#include "policy/bounds.h"
#include "policy/recompute.h"
#include "policy/replay/uses.h"
#include "policy/synthetic/synthetic.h"
#include "tests/policy/test_trace.h"

namespace atp::policy {
namespace {

struct Replayed {
  ReplayResult result;
  bool recomputes = false;
};

Replayed ReplayBy(std::string_view name, const Trace& trace, Bytes memory) {
  const Baseline* baseline = FindBaseline(name);
  EXPECT_NE(baseline, nullptr) << name;
  PlanOptions plan_options;
  plan_options.memory = memory;
  plan_options.may_map = true;
  ReplayOptions options;
  options.memory = memory;
  return {Replay(trace, baseline->make(trace, plan_options), options), baseline->recomputes};
}

Trace Synthetic(const std::string& kind) {
  SyntheticOptions options;
  options.kind = kind;
  options.layers = 12;
  return MakeSynthetic(options);
}

TEST(Baselines, NamesAreUniqueAndUnknownOnesAreNotFound) {
  for (const Baseline& b : Baselines()) EXPECT_EQ(FindBaseline(b.name), &b);
  EXPECT_EQ(FindBaseline("nobody"), nullptr);
}

TEST(Baselines, EachRunsEachShapeOfProgramWithinMemory) {
  for (const SyntheticKind& kind : SyntheticKinds()) {
    const Trace trace = Synthetic(std::string(kind.name));
    const Bytes least = LargestLaunchBytes(trace);
    const Bytes memory = least + (PeakLiveBytes(trace) - least) / 2;
    for (const Baseline& b : Baselines()) {
      const Replayed run = ReplayBy(b.name, trace, memory);
      ASSERT_TRUE(run.result.completed) << b.name << " on " << kind.name << ": " << run.result.why;
      if (b.name != "ideal") {
        EXPECT_LE(run.result.peak, memory) << b.name << " on " << kind.name;
      }
    }
  }
}

// To 0.1 %: plans stop searching this near to their bound (docs/results/baselines.md has the rows).
TEST(Baselines, OurPlanIsAsFastAsTheBestThatDoesNotRecompute) {
  for (const SyntheticKind& kind : SyntheticKinds()) {
    const Trace trace = Synthetic(std::string(kind.name));
    for (Bytes tenths : {1, 2, 4, 6, 8}) {
      const Bytes memory = PeakLiveBytes(trace) * tenths / 10;
      if (memory < LargestLaunchBytes(trace)) continue;
      const double ours = ReplayBy("plan", trace, memory).result.period_seconds;
      for (const Baseline& b : Baselines()) {
        if (b.recomputes || b.name == "ideal") continue;
        const double theirs = ReplayBy(b.name, trace, memory).result.period_seconds;
        EXPECT_LE(ours, theirs * 1.001) << b.name << " on " << kind.name << " at 0." << tenths;
      }
    }
  }
}

TEST(Baselines, TheIdealTakesTheTimeOfTheLaunches) {
  const Trace trace = Synthetic("layers");
  const double ideal = ReplayBy("ideal", trace, LargestLaunchBytes(trace)).result.period_seconds;
  EXPECT_NEAR(ideal, ComputeSeconds(trace), 1e-9);
}

TEST(Baselines, PartsOfTensorsBeatWholeOnesWhereAFewAreLarge) {
  const Trace trace = Synthetic("large");
  const Bytes memory = PeakLiveBytes(trace) / 2;
  const double parts = ReplayBy("plan", trace, memory).result.period_seconds;
  const double whole = ReplayBy("g10", trace, memory).result.period_seconds;
  EXPECT_GT(whole / parts, 1.0);
}

TEST(Baselines, G10PlansWholeTensorsOnly) {
  const Trace trace = Synthetic("layers");
  PlanOptions options;
  options.memory = PeakLiveBytes(trace) * 6 / 10;
  const Policy policy = MakeG10(trace, options);
  const Plan& plan = std::get<Plan>(policy.how);
  EXPECT_FALSE(plan.evictions.empty());
  for (const Move& move : plan.evictions) {
    EXPECT_EQ(move.bytes, trace.tensors[move.tensor].bytes);
  }
}

TEST(Baselines, AtpRecomputesOnlyWhatForwardCannotHide) {
  Trace trace = Synthetic("attention");
  PlanOptions options;
  options.memory = PeakLiveBytes(trace) * 95 / 100;
  EXPECT_EQ(MakeAtp(trace, options).trace->launches.size(), trace.launches.size());
  trace.link.d2h = trace.link.h2d = 1e9;
  options.memory = PeakLiveBytes(trace) / 2;
  EXPECT_GT(MakeAtp(trace, options).trace->launches.size(), trace.launches.size());
}

TEST(Baselines, StaticPinningMovesNothing) {
  const Trace trace = Synthetic("layers");
  const ReplayResult result = ReplayBy("static-pin", trace, PeakLiveBytes(trace) / 2).result;
  EXPECT_EQ(result.h2d + result.d2h, 0u);
  EXPECT_GT(result.remote_h2d + result.remote_d2h, 0u);
}

TEST(Baselines, ProtectingASubsetHelpsOnACycleLargerThanMemory) {
  const Trace trace = Synthetic("sweep");
  const Bytes memory = PeakLiveBytes(trace) * 7 / 10;
  const ReplayResult stock = ReplayBy("stock", trace, memory).result;
  const ReplayResult protect = ReplayBy("protect", trace, memory).result;
  EXPECT_LT(protect.h2d, stock.h2d);
  EXPECT_LT(protect.period_seconds, stock.period_seconds);
}

}  // namespace
}  // namespace atp::policy
