// SPDX-License-Identifier: Apache-2.0
#include "policy/recompute_plan.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "policy/bounds.h"
#include "policy/lifetimes.h"
#include "policy/schedule.h"
#include "policy/validate.h"
#include "tests/policy/random_trace.h"
#include "tests/policy/test_trace.h"

namespace atp::policy {
namespace {

// A chain of layers whose results are used again backwards, with most memory in use at the turn;
// every other layer takes `layer` seconds to make what the link takes a second for.
Trace Training(double layer, bool global) {
  TraceBuilder b(10);
  std::vector<uint32_t> made;
  const uint32_t input = b.Global(10);
  for (int i = 0; i < 8; ++i) made.push_back(global ? b.Global(10) : b.Local(10));
  const uint32_t gradient = b.Local(10);
  for (int i = 0; i < 8; ++i)
    b.Run(i % 2 == 0 ? layer : 0.5, {i == 0 ? input : made[i - 1]}, {made[i]});
  for (int i = 7; i >= 0; --i) {
    if (i == 7) {
      b.Run(0.5, {made[i]}, {gradient}, 20);
    } else {
      b.Run(0.5, {made[i], gradient}, {gradient});
    }
  }
  return b.trace();
}

PlanOptions Memory(Bytes mib) {
  PlanOptions options;
  options.memory = mib * kMiB;
  options.granule = options.largest_move = kMiB;
  return options;
}

void ExpectValid(const RecomputePlan& best, Bytes memory) {
  ValidateOptions options;
  options.memory = memory;
  for (const auto& problem : Validate(best.made.trace, ToSchedule(best.plan), options)) {
    ADD_FAILURE() << problem;
  }
}

TEST(RecomputePlan, WhatIsCheapAndBoundByTheLinkIsMadeAgain) {
  for (bool global : {false, true}) {
    const Trace trace = Training(0.01, global);
    const Bytes memory = global ? 90 : 45;  // what lives on keeps its room or moves every period
    const RecomputePlan best = BestRecompute(trace, Memory(memory));
    const Plan moved = MakePlan(trace, Memory(memory));
    ASSERT_TRUE(best.plan.feasible);
    EXPECT_FALSE(best.made.reruns.empty());
    EXPECT_LT(best.plan.period_seconds, 0.95 * moved.period_seconds);
    ExpectValid(best, memory * kMiB);
  }
}

TEST(RecomputePlan, NothingIsMadeAgainWhereThatTakesLongerThanTheMove) {
  const RecomputePlan best = BestRecompute(Training(5, false), Memory(45));
  for (const Rerun& r : best.made.reruns) EXPECT_NE(r.producer % 2, 0u);
}

TEST(RecomputePlan, WhereTheLinkHidesAllTheTraceStaysAsItWas) {
  const Trace trace = Training(0.01, false);
  const RecomputePlan best = BestRecompute(trace, Memory(200));
  EXPECT_TRUE(best.made.reruns.empty());
  EXPECT_EQ(best.made.bytes, 0u);
  EXPECT_EQ(best.made.trace.launches.size(), trace.launches.size());
  EXPECT_EQ(best.made.new_position.size(), trace.launches.size());
}

TEST(RecomputePlan, LaunchesThatMayNotRunAgainDoNot) {
  const Trace trace = Training(0.01, false);
  RecomputeOptions options;
  options.may_run_again.assign(trace.launches.size(), false);
  EXPECT_TRUE(BestRecompute(trace, Memory(45), options).made.reruns.empty());
}

// What the shim relies on, checked by reading the trace from its beginning: inputs of what runs
// again hold what they held, what is dropped is not touched until it is restored.
void ExpectSameData(const Trace& trace, const Recomputed& made) {
  const size_t tensors = trace.tensors.size();
  constexpr uint32_t kBefore = UINT32_MAX, kNothing = UINT32_MAX - 1;
  std::vector<uint32_t> version(tensors, kBefore);  // the launch of the old trace that made it
  std::vector<std::vector<uint32_t>> read;          // per old launch: versions it read
  for (uint32_t k = 0; k < trace.launches.size(); ++k) {
    read.emplace_back();
    for (uint32_t t : trace.launches[k].reads) read.back().push_back(version[t]);
    for (uint32_t t : trace.launches[k].writes) version[t] = k;
  }
  const std::vector<uint32_t> at_the_end = version;
  std::fill(version.begin(), version.end(), kBefore);
  size_t rerun = 0;
  std::vector<std::vector<uint32_t>> dropped(made.trace.launches.size());
  for (const Drop& d : made.drops) dropped[d.after].push_back(d.tensor);
  uint32_t old = 0;
  for (uint32_t p = 0; p < made.trace.launches.size(); ++p) {
    const bool again = rerun < made.reruns.size() && made.reruns[rerun].position == p;
    const uint32_t k = again ? made.reruns[rerun].producer : old;
    if (again) {
      EXPECT_EQ(made.reruns[rerun++].before, old);
    } else {
      EXPECT_EQ(made.new_position[old++], p);
    }
    for (size_t i = 0; i < trace.launches[k].reads.size(); ++i) {
      EXPECT_EQ(version[trace.launches[k].reads[i]], read[k][i]) << trace.name << " at " << p;
    }
    for (uint32_t t : made.trace.launches[p].writes) version[t] = k;
    for (uint32_t t : dropped[p]) version[t] = kNothing;
  }
  for (uint32_t t = 0; t < tensors; ++t) {
    if (!trace.tensors[t].global) continue;
    EXPECT_EQ(version[t], at_the_end[t]) << trace.name;
  }
}

TEST(RecomputePlan, OnRandomTracesEveryLaunchReadsWhatItReadBefore) {
  size_t reruns = 0, faster = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    RandomTraceOptions shape;
    shape.launches = 4 + seed * 7 % 60;
    shape.tensors = 4 + seed * 5 % 40;
    shape.touches = 1 + seed % 3;
    shape.unit = kMiB;
    shape.most_units = 1 + seed % 9;
    shape.second_step = seed % 3 == 0 ? 1e-3 : 0.1;
    Trace trace = RandomTrace(seed, shape);
    for (Tensor& t : trace.tensors) t.global = t.global && seed % 2 == 0;
    const std::vector<Bytes> touched = FindLifetimes(trace).touched;
    PlanOptions options = Memory(0);
    options.memory = *std::max_element(touched.begin(), touched.end()) + seed % 5 * kMiB;
    const RecomputePlan best = BestRecompute(trace, options);
    ASSERT_TRUE(best.plan.feasible) << trace.name << " " << best.plan.why;
    ExpectSameData(trace, best.made);
    ExpectValid(best, options.memory);
    const double moved = MakePlan(trace, options).period_seconds;
    EXPECT_LE(best.plan.period_seconds, moved);
    EXPECT_LE(best.made.bytes > 0 ? 1u : 0u, best.made.reruns.size());
    reruns += best.made.reruns.size();
    faster += best.plan.period_seconds < moved;
    RecomputeSet all(trace);  // as much as the rules allow
    for (const Recomputation& r : all.candidates()) all.Add(r);
    ExpectSameData(trace, all.Apply());
  }
  EXPECT_GT(reruns, 100u);
  EXPECT_GT(faster, 30u);
}

}  // namespace
}  // namespace atp::policy
