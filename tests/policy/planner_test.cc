// SPDX-License-Identifier: Apache-2.0
#include "policy/planner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "policy/bounds.h"
#include "policy/schedule.h"
#include "policy/validate.h"
#include "tests/policy/test_trace.h"

namespace atp::policy {
namespace {

void ExpectValid(const Trace& trace, const Plan& plan, Bytes memory) {
  ValidateOptions options;
  options.memory = memory;
  for (const auto& problem : Validate(trace, ToSchedule(plan), options)) ADD_FAILURE() << problem;
}

// Forward pass that makes activations, backward pass that takes them again, last first.
TraceBuilder Training(int layers, Bytes mib, double seconds) {
  TraceBuilder builder;
  std::vector<uint32_t> activations;
  const uint32_t input = builder.Global(mib);
  activations.push_back(input);
  for (int i = 0; i < layers; ++i) {
    const uint32_t next = builder.Local(mib);
    builder.Run(seconds, {activations.back()}, {next});
    activations.push_back(next);
  }
  for (int i = layers; i > 0; --i) {
    builder.Run(seconds,
                {activations[static_cast<size_t>(i)], activations[static_cast<size_t>(i - 1)]});
  }
  return builder;
}

TEST(Planner, MovesNothingWhenAllFits) {
  TraceBuilder builder = Training(10, 20, 0.01);
  PlanOptions options;
  options.memory = 11 * 20 * kMiB;
  const Plan plan = MakePlan(builder.trace(), options);
  EXPECT_TRUE(plan.feasible);
  EXPECT_TRUE(plan.evictions.empty());
  EXPECT_TRUE(plan.fetches.empty());
  EXPECT_DOUBLE_EQ(plan.period_seconds, plan.compute_seconds);
  ASSERT_EQ(plan.initially_resident.size(), 1u);
  EXPECT_EQ(plan.initially_resident[0].bytes, 20 * kMiB);
}

TEST(Planner, HidesAllTrafficBehindEnoughCompute) {
  TraceBuilder builder = Training(10, 20, 0.1);  // 100 MiB of link time each launch
  PlanOptions options;
  options.memory = 100 * kMiB;
  const Plan plan = MakePlan(builder.trace(), options);
  ASSERT_TRUE(plan.feasible) << plan.why;
  EXPECT_NEAR(plan.stall_seconds, 0, 1e-9);
  EXPECT_GE(plan.moved_d2h, 120 * kMiB);
  EXPECT_EQ(plan.moved_d2h, plan.moved_h2d);
  ExpectValid(builder.trace(), plan, options.memory);
}

TEST(Planner, StallsNoMoreThanTheBoundAsksFor) {
  TraceBuilder builder = Training(20, 64, 0.01);  // 10 MiB of link time each launch: link-bound
  PlanOptions options;
  options.memory = 400 * kMiB;
  const Plan plan = MakePlan(builder.trace(), options);
  ASSERT_TRUE(plan.feasible);
  // 944 of 1344 MiB must have left before the last forward launch, and nothing can leave before the
  // first has ended; they can return only after the first backward launch, and before the last one.
  const double best = 0.01 + 0.944 + 0.02 + 0.944 + 0.01;
  EXPECT_GE(plan.period_seconds, best - 1e-9);
  EXPECT_LE(plan.period_seconds, best + 0.008 + 1e-6);  // a granule takes 2 ms, each direction
  ExpectValid(builder.trace(), plan, options.memory);
}

TEST(Planner, SaysWhichLaunchCannotFit) {
  TraceBuilder builder;
  builder.Run(1, {builder.Global(10)}).Run(1, {builder.Global(30)}, {}, 10);
  builder.trace().launches[1].name = "big";
  PlanOptions options;
  options.memory = 39 * kMiB;
  const Plan plan = MakePlan(builder.trace(), options);
  EXPECT_FALSE(plan.feasible);
  EXPECT_NE(plan.why.find("launch 1 (big)"), std::string::npos) << plan.why;
  options.memory = 40 * kMiB;
  EXPECT_TRUE(MakePlan(builder.trace(), options).feasible);
  options.head_room = kMiB;
  EXPECT_FALSE(MakePlan(builder.trace(), options).feasible);
}

// A damaged store once had the planner go on for ever.
TEST(Planner, DurationsThatNoLaunchHasAreRefused) {
  for (const double seconds :
       {1e300, -1.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
    Trace trace;
    trace.device_bytes = 4;
    trace.link.h2d = trace.link.d2h = 1;
    trace.tensors.resize(3);
    for (uint32_t t = 0; t < 3; ++t) {
      trace.tensors[t].bytes = 2;
      Launch launch;
      launch.seconds = t == 1 ? seconds : 1e-300;
      launch.reads = launch.writes = {t};
      trace.launches.push_back(launch);
    }
    const Plan plan = MakePlan(trace, {});
    EXPECT_FALSE(plan.feasible) << seconds;
    EXPECT_NE(plan.why.find("launch 1"), std::string::npos) << plan.why;
  }
}

TEST(Planner, SaysWhenTheLinkHasNoRateOrALaunchNoDuration) {
  TraceBuilder builder;
  builder.Run(1, {builder.Global(10)}).Run(1, {builder.Global(10)}).Run(1, {builder.Global(10)});
  PlanOptions options;
  options.memory = 20 * kMiB;
  Trace no_link = builder.trace();
  no_link.link = {};
  EXPECT_FALSE(MakePlan(no_link, options).feasible);
  Trace no_time = builder.trace();
  no_time.launches[0].seconds = -1;
  EXPECT_FALSE(MakePlan(no_time, options).feasible);
  EXPECT_TRUE(MakePlan(Trace{}, options).feasible);
}

TEST(Planner, KeepsHeadRoomFree) {
  TraceBuilder builder = Training(10, 20, 0.1);
  PlanOptions options;
  options.memory = 130 * kMiB;
  options.head_room = 30 * kMiB;
  const Plan plan = MakePlan(builder.trace(), options);
  ASSERT_TRUE(plan.feasible);
  ExpectValid(builder.trace(), plan, 100 * kMiB);
}

TEST(Planner, MovesWholeGranulesButForTheTail) {
  TraceBuilder builder;
  std::vector<uint32_t> tensors;
  for (int i = 0; i < 8; ++i) tensors.push_back(builder.Global(7));  // 3 granules and a half
  for (uint32_t t : tensors) builder.Run(0.001, {t}, {t});
  PlanOptions options;
  options.memory = 30 * kMiB;
  const Plan plan = MakePlan(builder.trace(), options);
  ASSERT_TRUE(plan.feasible);
  ASSERT_FALSE(plan.evictions.empty());
  for (const auto* moves : {&plan.evictions, &plan.fetches}) {
    for (const Move& move : *moves) {
      EXPECT_EQ(move.offset % options.granule, 0u);
      EXPECT_TRUE(move.bytes % options.granule == 0 || move.offset + move.bytes == 7 * kMiB);
      EXPECT_LE(move.bytes, options.largest_move);
    }
  }
  ExpectValid(builder.trace(), plan, options.memory);
}

TEST(Planner, EveryMoveNamesItsLastAndNextUser) {
  TraceBuilder builder = Training(10, 20, 0.1);
  PlanOptions options;
  options.memory = 100 * kMiB;
  const Plan plan = MakePlan(builder.trace(), options);
  auto touches = [&](uint32_t launch, uint32_t tensor) {
    const Launch& l = builder.trace().launches[launch];
    return std::count(l.reads.begin(), l.reads.end(), tensor) +
               std::count(l.writes.begin(), l.writes.end(), tensor) >
           0;
  };
  for (const auto* moves : {&plan.evictions, &plan.fetches}) {
    for (const Move& move : *moves) {
      EXPECT_TRUE(touches(move.after, move.tensor));
      EXPECT_TRUE(touches(move.before, move.tensor));
    }
  }
}

TEST(Planner, CleanDataLeavesWithoutACopyWhereThatWorks) {
  TraceBuilder builder(100);
  for (int i = 0; i < 10; ++i) builder.Run(0.01, {builder.Global(20)});
  PlanOptions options;
  options.memory = 120 * kMiB;
  const Plan copied = MakePlan(builder.trace(), options);
  options.clean_leaves_free = true;
  const Plan free = MakePlan(builder.trace(), options);
  EXPECT_GT(copied.moved_d2h, 0u);
  EXPECT_EQ(free.moved_d2h, 0u);
  EXPECT_LE(free.period_seconds, copied.period_seconds + 1e-9);
  EXPECT_TRUE(std::none_of(free.evictions.begin(), free.evictions.end(),
                           [](const Move& m) { return m.copies; }));
  ExpectValid(builder.trace(), free, options.memory);
}

TEST(Planner, SpreadsASweepOverAllTensors) {
  // Mixture of experts: a few weights often, many seldom, all of them more than memory; the link
  // binds. Leaving whole tensors on the host took 1.9 times as long as the bound asks for.
  TraceBuilder builder;
  std::vector<uint32_t> experts;
  for (int i = 0; i < 24; ++i) experts.push_back(builder.Global(64));
  for (int k = 0; k < 60; ++k) {
    builder.Run(0.001, {experts[static_cast<size_t>(k % 3)]});
    builder.Run(0.001, {experts[static_cast<size_t>(3 + k * 5 % 21)]});
  }
  Trace& trace = builder.trace();
  trace.link.duplex_h2d = trace.link.h2d / 2;
  for (bool clean_leaves_free : {false, true}) {
    PlanOptions options;
    options.memory = 1000 * kMiB;
    options.clean_leaves_free = clean_leaves_free;
    const Plan plan = MakePlan(trace, options);
    ExpectValid(trace, plan, options.memory);
    const double bound =
        clean_leaves_free ? BoundSafe(trace, options.memory) : BoundClosed(trace, options.memory);
    EXPECT_LE(plan.period_seconds, 1.1 * bound);
  }
}

TEST(Planner, KeepsToTheHostMemoryOrSaysWhatItNeeds) {
  TraceBuilder builder = Training(20, 64, 0.01);
  PlanOptions options;
  options.memory = 400 * kMiB;
  const Plan plan = MakePlan(builder.trace(), options);
  ASSERT_TRUE(plan.feasible);
  // 944 MiB do not fit at the turn.
  EXPECT_GE(plan.host_bytes, 944 * kMiB);
  EXPECT_LE(plan.host_bytes, 1344 * kMiB);
  options.host_memory = plan.host_bytes;
  EXPECT_TRUE(MakePlan(builder.trace(), options).feasible);
  options.host_memory = 900 * kMiB;
  const Plan none = MakePlan(builder.trace(), options);
  EXPECT_FALSE(none.feasible);
  EXPECT_NE(none.why.find("host memory"), std::string::npos) << none.why;
}

TEST(Planner, CountsHostMemoryAsLongAsTheTensorLives) {
  // a is away twice, and dies; then b is away: their pages are not needed at the same time.
  TraceBuilder builder;
  const uint32_t a = builder.Local(60), b = builder.Local(60), big = builder.Global(50);
  builder.Run(1, {}, {a}).Run(1, {big}).Run(1, {a}).Run(1, {big}).Run(1, {a});
  builder.Run(1, {}, {b}).Run(1, {big}).Run(1, {b});
  PlanOptions options;
  options.memory = 70 * kMiB;
  const Plan plan = MakePlan(builder.trace(), options);
  ASSERT_TRUE(plan.feasible) << plan.why;
  EXPECT_GE(plan.host_bytes, 40 * kMiB + 40 * kMiB);  // of `a` or `b`, and of `big`
  EXPECT_LE(plan.host_bytes, 60 * kMiB + 50 * kMiB);
}

TEST(Planner, LeavesWhatItIsNotSureOfWhereItIs) {
  TraceBuilder builder;
  std::vector<uint32_t> tensors;
  for (int i = 0; i < 10; ++i) tensors.push_back(builder.Global(32));
  for (uint32_t t : tensors) builder.Run(0.1, {t}, {t});
  PlanOptions options;
  options.memory = 200 * kMiB;
  options.confidence.assign(10, 0.9);
  options.confidence[2] = 0.2;
  options.confidence[7] = 0.4;
  const Plan plan = MakePlan(builder.trace(), options);
  ASSERT_TRUE(plan.feasible) << plan.why;
  ExpectValid(builder.trace(), plan, options.memory);
  EXPECT_GT(plan.moved_h2d, 0u);
  for (const auto* moves : {&plan.evictions, &plan.fetches}) {
    for (const Move& move : *moves) EXPECT_TRUE(move.tensor != 2 && move.tensor != 7);
  }
  // With too little sure, nothing fits, and that is said.
  options.confidence.assign(10, 0.1);
  EXPECT_FALSE(MakePlan(builder.trace(), options).feasible);
}

TEST(Planner, NamesTheTensorsThatItCountsOnAsReadMostly) {
  TraceBuilder builder(100);
  std::vector<uint32_t> weights;
  for (int i = 0; i < 10; ++i) weights.push_back(builder.Global(20));
  const uint32_t state = builder.Global(20);
  for (uint32_t weight : weights) builder.Run(0.01, {weight});
  builder.Run(0.01, {state}, {state});
  PlanOptions options;
  options.memory = 60 * kMiB;
  EXPECT_TRUE(MakePlan(builder.trace(), options).advised.empty());
  options.clean_leaves_free = true;
  const Plan all = MakePlan(builder.trace(), options);
  options.never_advised = {weights[3], weights[4], 99};
  const Plan some = MakePlan(builder.trace(), options);
  for (const Plan* plan : {&all, &some}) {
    ExpectValid(builder.trace(), *plan, options.memory);
    EXPECT_TRUE(std::is_sorted(plan->advised.begin(), plan->advised.end()));
    for (const Move& move : plan->evictions) {
      const bool advised =
          std::binary_search(plan->advised.begin(), plan->advised.end(), move.tensor);
      EXPECT_NE(move.copies, advised);
    }
    EXPECT_FALSE(std::binary_search(plan->advised.begin(), plan->advised.end(), state));
  }
  // Room for three of eleven: each weight has to leave.
  EXPECT_EQ(all.advised.size(), weights.size());
  EXPECT_EQ(some.advised.size(), weights.size() - 2);
  EXPECT_GT(some.moved_d2h, all.moved_d2h);
}

TEST(Planner, DriverTimeOfEachGranuleSlowsTheLink) {
  TraceBuilder builder = Training(20, 64, 0.01);
  PlanOptions options;
  options.memory = 400 * kMiB;
  const Plan ideal = MakePlan(builder.trace(), options);
  options.cpu_seconds_per_granule = 0.002;  // as long as the copy itself
  const Plan real = MakePlan(builder.trace(), options);
  EXPECT_NEAR(real.stall_seconds / ideal.stall_seconds, 2, 0.35);
  for (const Move& move : real.fetches) {
    EXPECT_GE(move.end - move.start, static_cast<double>(move.bytes) / (2.0 * kMiB) * 0.0039);
  }
}

// Room that is used again at once costs the turnaround each time: where the link sets the pace, a
// little of every weight moves instead of a few as a whole.
TEST(Planner, WithATurnaroundASweepMovesALittleOfEachWeight) {
  TraceBuilder builder;
  std::vector<uint32_t> weights;
  for (int i = 0; i < 48; ++i) weights.push_back(builder.Global(16));
  for (uint32_t w : weights) builder.Run(0.002, {w});
  PlanOptions options;
  options.memory = 512 * kMiB;
  options.clean_leaves_free = true;
  const Plan at_once = MakePlan(builder.trace(), options);
  options.turnaround_seconds = 0.0025;  // a granule takes 0.002
  const Plan later = MakePlan(builder.trace(), options);
  ExpectValid(builder.trace(), later, options.memory);
  const auto moved = [](const Plan& plan) {
    std::set<uint32_t> tensors;
    for (const Move& move : plan.fetches) tensors.insert(move.tensor);
    return tensors.size();
  };
  EXPECT_LT(moved(at_once), weights.size());
  EXPECT_EQ(moved(later), weights.size());
  EXPECT_LT(later.period_seconds, 1.05 * BoundSafe(builder.trace(), options.memory));
}

// A decoder: weights that nothing writes, and caches that each launch adds to.
TEST(Planner, WhereACopyOutSlowsTheCopiesInWhatLeavesWithoutOneGoes) {
  TraceBuilder builder;
  std::vector<uint32_t> weights, caches;
  for (int i = 0; i < 24; ++i) {
    weights.push_back(builder.Global(32));
    caches.push_back(builder.Global(16));
  }
  for (int i = 0; i < 24; ++i) {
    builder.Run(0.001, {weights[i]});
    builder.Run(0.0005, {caches[i]}, {caches[i]});
  }
  builder.trace().link.duplex_h2d = builder.trace().link.h2d / 2;
  builder.trace().link.duplex_d2h = builder.trace().link.d2h;
  PlanOptions options;
  options.memory = 800 * kMiB;
  options.clean_leaves_free = true;
  options.turnaround_seconds = 0.0025;
  const Plan plan = MakePlan(builder.trace(), options);
  ExpectValid(builder.trace(), plan, options.memory);
  EXPECT_EQ(plan.moved_d2h, 0u);
  EXPECT_LT(plan.period_seconds, 1.15 * BoundSafe(builder.trace(), options.memory));
}

TEST(Planner, RespectsTheRatesWhileBothDirectionsAreBusy) {
  TraceBuilder builder;
  std::vector<uint32_t> tensors;
  for (int i = 0; i < 20; ++i) tensors.push_back(builder.Global(32));
  for (uint32_t t : tensors) builder.Run(0.03, {t}, {t});
  PlanOptions options;
  options.memory = 200 * kMiB;
  const Plan free = MakePlan(builder.trace(), options);
  builder.trace().link.duplex_h2d = builder.trace().link.h2d / 2;
  builder.trace().link.duplex_d2h = builder.trace().link.d2h / 2;  // half duplex
  const Plan coupled = MakePlan(builder.trace(), options);
  ASSERT_TRUE(free.feasible && coupled.feasible);
  EXPECT_GT(coupled.stall_seconds, free.stall_seconds + 0.1);
  ExpectValid(builder.trace(), coupled, options.memory);
}

TEST(Planner, SmallDevicesLoseAboutAGranule) {
  // A device of 24 granules, tensors of 3; fine granules stand for no rounding at all.
  for (double seconds : {0.0005, 0.002, 0.01, 0.05}) {
    TraceBuilder builder = Training(12, 6, seconds);
    PlanOptions fine, coarse;
    fine.memory = coarse.memory = 48 * kMiB;
    fine.granule = 64 * 1024;
    const Plan without = MakePlan(builder.trace(), fine), with = MakePlan(builder.trace(), coarse);
    ASSERT_TRUE(with.feasible && without.feasible);
    EXPECT_GT(with.moved_h2d, 0u);
    EXPECT_LE(with.period_seconds, without.period_seconds + 2 * 0.002) << seconds;  // each way
    ExpectValid(builder.trace(), with, coarse.memory);
  }
}

TEST(Planner, ReachesTheBoundOnPublishedTraces) {
  const Trace bert = ReadTestTrace("BERT-512.jsonl");
  const Plan a = MakePlan(bert, PlanOptions());
  ExpectValid(bert, a, bert.device_bytes);
  EXPECT_LE(a.period_seconds / BoundClosed(bert, bert.device_bytes), 1.001);
  const Trace inception = ReadTestTrace("Inceptionv3-1536.jsonl");
  const Plan b = MakePlan(inception, PlanOptions());
  ExpectValid(inception, b, inception.device_bytes);
  EXPECT_LE(b.period_seconds / BoundClosed(inception, inception.device_bytes), 1.03);
}

// Gradients are averaged over processes piece by piece: choosing victims for each of so many short
// launches and repairing the result took all the work that planning may take, and what moves least
// was not tried any more: no plan.
TEST(Planner, FindsAPlanWhereTheFirstWayAsksForTooMuchWork) {
  const Trace trace = ReadTestTrace("ddp.jsonl");
  Bytes footprint = 0;
  for (const Tensor& tensor : trace.tensors) footprint += tensor.bytes;
  for (const double share : {0.5, 0.6, 0.66, 0.7, 0.8}) {
    PlanOptions options;
    options.memory = static_cast<Bytes>(share * static_cast<double>(footprint));
    const Plan plan = MakePlan(trace, options);
    ASSERT_TRUE(plan.feasible) << share << ": " << plan.why;
    EXPECT_LE(plan.period_seconds, 1.005 * BoundClosed(trace, options.memory)) << share;
    ExpectValid(trace, plan, options.memory);
  }
}

}  // namespace
}  // namespace atp::policy
