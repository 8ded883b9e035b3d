// SPDX-License-Identifier: Apache-2.0
// Traces of the same family as the published ones: other batches, sizes, times and rates.
#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "policy/bounds.h"
#include "policy/planner.h"
#include "policy/schedule.h"
#include "policy/validate.h"
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

// A network so many times as wide.
Change Sizes(double factor) {
  return [factor](Trace* trace) {
    Batch(factor)(trace);
    for (Tensor& t : trace->tensors) {
      if (t.global) t.bytes = static_cast<Bytes>(static_cast<double>(t.bytes) * factor);
    }
  };
}

Change Memory(double factor) {
  return [factor](Trace* trace) {
    trace->device_bytes = static_cast<Bytes>(static_cast<double>(trace->device_bytes) * factor);
  };
}

Change Link(double in, double out) {
  return [=](Trace* trace) { trace->link.h2d *= in, trace->link.d2h *= out; };
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

using Changes = std::vector<std::pair<std::string, Change>>;
const Changes kChanges = {
    {"half the batch", Batch(0.5)},     {"a smaller batch", Batch(0.75)},
    {"a larger batch", Batch(1.25)},    {"other sizes", OtherSizes},
    {"other times", OtherTimes},        {"a slower way in", Link(0.7, 1)},
    {"a slower way out", Link(1, 0.7)}, {"twice the link", Link(2, 2)},
    {"more memory", Memory(1.5)},
};

void ExpectNearTheBound(const std::string& file, double most, const Changes& changes) {
  for (const auto& [name, change] : changes) {
    Trace trace = ReadTestTrace(file);
    change(&trace);
    const Plan plan = MakePlan(trace, {});
    ASSERT_TRUE(plan.feasible) << name << ": " << plan.why;
    const double bound = BoundClosed(trace, trace.device_bytes);
    EXPECT_LE(plan.period_seconds, most * bound) << name;
    EXPECT_GE(plan.period_seconds, BoundSafe(trace, trace.device_bytes) * (1 - 1e-9)) << name;
    const std::vector<std::string> wrong = Validate(trace, ToSchedule(plan));
    EXPECT_TRUE(wrong.empty()) << name << ": " << (wrong.empty() ? "" : wrong.front());
  }
}

TEST(Family, PlansOfOtherBertTracesAreAtTheBound) {
  ExpectNearTheBound("BERT-512.jsonl", 1.001, kChanges);
}

// Memory holds little more than twice what the largest launch touches: what returns has no room to
// come early, unless more is away by then than any launch lacks.
TEST(Family, PlansOfBertTracesWithLittleMemoryAreAtTheBound) {
  ExpectNearTheBound("BERT-512.jsonl", 1.001,
                     {{"a fifth", Memory(0.2)},
                      {"a quarter", Memory(0.25)},
                      {"three eighths", Memory(0.375)},
                      {"three quarters", Memory(0.75)},
                      {"four times as wide", Sizes(4)}});
}

TEST(Family, PlansOfOtherInceptionTracesAreNearTheBound) {
  ExpectNearTheBound("Inceptionv3-1536.jsonl", 1.03, kChanges);
}

}  // namespace
}  // namespace atp::policy
