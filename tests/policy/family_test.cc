// SPDX-License-Identifier: Apache-2.0
// Traces of the same family as the published ones: other batches, sizes, times and rates.
#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <string>

#include "policy/bounds.h"
#include "policy/planner.h"
#include "tests/policy/test_trace.h"

namespace atp::policy {
namespace {

using Change = std::function<void(Trace*)>;

// Launches and whatever is born in the period grow with the batch, weights do not.
Change Batch(double factor) {
  return [factor](Trace* trace) {
    for (Tensor& t : trace->tensors) {
      if (!t.global) t.bytes = static_cast<Bytes>(static_cast<double>(t.bytes) * factor) + 1;
    }
    for (Launch& launch : trace->launches) {
      launch.seconds *= factor;
      launch.workspace = static_cast<Bytes>(static_cast<double>(launch.workspace) * factor);
    }
  };
}

double Draw(std::mt19937_64* engine, double low, double high) {
  return low + (high - low) * static_cast<double>((*engine)() >> 11) * 0x1.0p-53;
}

void OtherSizes(Trace* trace) {
  std::mt19937_64 engine(1);
  for (Tensor& t : trace->tensors) {
    t.bytes = static_cast<Bytes>(static_cast<double>(t.bytes) * Draw(&engine, 0.7, 1.4)) + 1;
  }
}

void OtherTimes(Trace* trace) {
  std::mt19937_64 engine(2);
  for (Launch& launch : trace->launches) launch.seconds *= Draw(&engine, 0.5, 1.6);
}

void ExpectNearTheBound(const std::string& file, double most) {
  const Change changes[] = {
      Batch(0.5),
      Batch(0.75),
      Batch(1.25),
      OtherSizes,
      OtherTimes,
      [](Trace* trace) { trace->link.h2d *= 0.7; },
      [](Trace* trace) { trace->link.d2h *= 0.7; },
  };
  for (size_t i = 0; i < std::size(changes); ++i) {
    Trace trace = ReadTestTrace(file);
    changes[i](&trace);
    const Plan plan = MakePlan(trace, {});
    ASSERT_TRUE(plan.feasible) << "change " << i << ": " << plan.why;
    const double bound = BoundClosed(trace, trace.device_bytes);
    EXPECT_LE(plan.period_seconds, most * bound) << "change " << i;
    EXPECT_GE(plan.period_seconds, BoundSafe(trace, trace.device_bytes) * (1 - 1e-9));
  }
}

TEST(Family, PlansOfOtherBertTracesAreAtTheBound) { ExpectNearTheBound("BERT-512.jsonl", 1.001); }

TEST(Family, PlansOfOtherInceptionTracesAreNearTheBound) {
  ExpectNearTheBound("Inceptionv3-1536.jsonl", 1.03);
}

}  // namespace
}  // namespace atp::policy
