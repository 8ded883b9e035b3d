// SPDX-License-Identifier: Apache-2.0
#include "policy/synthetic/synthetic.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "policy/lifetimes.h"
#include "policy/trace_json.h"

namespace atp::policy {
namespace {

Trace Make(const std::string& kind, uint64_t seed = 1) {
  SyntheticOptions options;
  options.kind = kind;
  options.seed = seed;
  return MakeSynthetic(options);
}

TEST(Synthetic, EachKindIsAWellFormedTrace) {
  for (const SyntheticKind& kind : SyntheticKinds()) {
    const Trace trace = Make(std::string(kind.name));
    ASSERT_FALSE(trace.launches.empty()) << kind.name;
    std::set<std::string> ids;
    for (const Tensor& t : trace.tensors) {
      EXPECT_TRUE(ids.insert(t.id).second) << kind.name << " " << t.id;
      EXPECT_GT(t.bytes, 0u);
    }
    for (const Launch& l : trace.launches) {
      EXPECT_GT(l.seconds, 0);
      for (uint32_t t : l.reads) EXPECT_LT(t, trace.tensors.size());
      for (uint32_t t : l.writes) EXPECT_LT(t, trace.tensors.size());
    }
    Trace again;
    std::string error;
    EXPECT_TRUE(ReadTrace(WriteTrace(trace), &again, &error)) << kind.name << ": " << error;
  }
}

TEST(Synthetic, TheSameSeedGivesTheSameTraceAndAnotherSeedAnother) {
  EXPECT_EQ(WriteTrace(Make("random", 3)), WriteTrace(Make("random", 3)));
  EXPECT_NE(WriteTrace(Make("random", 3)), WriteTrace(Make("random", 4)));
  EXPECT_NE(WriteTrace(Make("moe", 3)), WriteTrace(Make("moe", 4)));
}

TEST(Synthetic, ADecodeReadsMoreCacheForEachToken) {
  const Trace trace = Make("decode");
  size_t first = 0, last = 0;
  for (const Launch& l : trace.launches) {
    if (l.name == "decode:layer0.0") first = l.reads.size();
    if (l.name == "decode:layer0.3") last = l.reads.size();
  }
  EXPECT_EQ(last, first + 3);
}

TEST(Synthetic, AnOptimizerUpdatesItsStatesInPlace) {
  const Trace trace = Make("optimizer");
  const Launch& last = trace.launches.back();
  EXPECT_EQ(last.writes.size(), 3u);
  for (uint32_t t : last.writes) {
    EXPECT_NE(std::find(last.reads.begin(), last.reads.end(), t), last.reads.end());
    EXPECT_TRUE(trace.tensors[t].global);
  }
}

TEST(Synthetic, LargeTensorsAreLargeAgainstMemory) {
  const Trace trace = Make("large");
  for (const Tensor& t : trace.tensors) EXPECT_GT(t.bytes, trace.device_bytes / 8);
}

TEST(Synthetic, SkewedRoutingUsesSomeExpertsFarMore) {
  SyntheticOptions options;
  options.kind = "moe";
  options.steps = 100;
  options.layers = 1;
  const Trace trace = MakeSynthetic(options);
  std::vector<int> uses(trace.tensors.size(), 0);
  for (const Launch& l : trace.launches) {
    for (uint32_t t : l.reads) ++uses[t];
  }
  EXPECT_GT(uses[0], 3 * uses[options.experts - 1]);
}

TEST(Synthetic, AnUnknownKindHasNoLaunches) { EXPECT_TRUE(Make("nothing").launches.empty()); }

}  // namespace
}  // namespace atp::policy
