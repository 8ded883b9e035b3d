// SPDX-License-Identifier: Apache-2.0
#include "policy/recompute.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "policy/bounds.h"
#include "policy/lifetimes.h"
#include "tests/policy/test_trace.h"

namespace atp::policy {
namespace {

// input -> cheap -> costly, then back: 0 cheap, 1 costly, 2 filler, 3 uses costly, 4 uses cheap and
// input.
struct Shape {
  TraceBuilder b;
  uint32_t input = b.Global(10), cheap = b.Local(10), costly = b.Local(10), filler = b.Local(10);
  Shape() {
    b.Run(0.01, {input}, {cheap})
        .Run(1, {cheap}, {costly})
        .Run(1, {}, {filler})
        .Run(1, {costly})
        .Run(1, {cheap, input});
  }
  Trace& trace() { return b.trace(); }
};

bool Offers(const RecomputeSet& set, uint32_t tensor) {
  return std::any_of(set.candidates().begin(), set.candidates().end(),
                     [&](const Recomputation& r) { return r.tensor == tensor; });
}

uint64_t MostLive(const Trace& trace) {
  const std::vector<Bytes> live = FindLifetimes(trace).live;
  return *std::max_element(live.begin(), live.end());
}

TEST(Recompute, TheMostBytesForASecondComeFirst) {
  Shape s;
  const RecomputeSet set(s.trace());
  ASSERT_EQ(set.candidates().size(), 2u);
  EXPECT_EQ(set.candidates()[0].tensor, s.cheap);
  EXPECT_EQ(set.candidates()[0].producer, 0u);
  EXPECT_DOUBLE_EQ(set.candidates()[0].seconds, 0.01);
  EXPECT_EQ(set.candidates()[1].tensor, s.costly);
}

TEST(Recompute, WhatWasMadeFromChangedDataIsNotLegal) {
  Shape s;
  s.trace().launches[2].writes.push_back(s.input);
  const RecomputeSet set(s.trace());
  EXPECT_FALSE(Offers(set, s.cheap));
  EXPECT_TRUE(Offers(set, s.costly));  // its input is there
}

TEST(Recompute, NothingSpansALaunchThatMayTouchAnything) {
  Shape s;
  RecomputeOptions options;
  options.unsure.assign(s.trace().launches.size(), false);
  EXPECT_TRUE(Offers(RecomputeSet(s.trace(), options), s.cheap));
  options.unsure[2] = true;
  EXPECT_FALSE(Offers(RecomputeSet(s.trace(), options), s.cheap));
  options.unsure[2] = false;
  options.unsure[0] = true;  // the producer itself is what may_run_again is for
  EXPECT_TRUE(Offers(RecomputeSet(s.trace(), options), s.cheap));
}

TEST(Recompute, FoldedItRunsWithTheLaunchThatNeedsIt) {
  Shape s;
  RecomputeSet set(s.trace());
  ASSERT_TRUE(set.Add(set.candidates()[0]));
  const Recomputed made = set.Apply();
  const Folded folded = FoldReruns(made);
  ASSERT_EQ(folded.trace.launches.size(), s.trace().launches.size());
  ASSERT_EQ(folded.drops.size(), 1u);
  const Folded::Drop& drop = folded.drops[0];
  EXPECT_EQ(drop.tensor, s.cheap);
  EXPECT_EQ(drop.producer, 0u);
  EXPECT_EQ(drop.before, made.reruns[0].before);
  EXPECT_LT(drop.after, drop.before);
  const Launch &was = s.trace().launches[drop.before], &is = folded.trace.launches[drop.before];
  EXPECT_EQ(is.restores, std::vector<uint32_t>{s.cheap});
  EXPECT_DOUBLE_EQ(is.seconds, was.seconds + s.trace().launches[0].seconds);
  for (uint32_t input : s.trace().launches[0].reads) {
    EXPECT_NE(std::find(is.reads.begin(), is.reads.end(), input), is.reads.end());
  }
  EXPECT_LT(MostLive(folded.trace), MostLive(s.trace()));
}

TEST(Recompute, WhatIsUpdatedInPlaceIsNotLegal) {
  Shape s;
  s.trace().launches[0].reads.push_back(s.cheap);
  EXPECT_FALSE(Offers(RecomputeSet(s.trace()), s.cheap));
}

TEST(Recompute, WhatIsBroughtUpToDateAfterItWasMadeIsNotLegal) {
  Shape s;
  s.trace().launches[2].reads.push_back(s.costly);
  s.trace().launches[2].writes.push_back(s.costly);
  EXPECT_FALSE(Offers(RecomputeSet(s.trace()), s.costly));
}

TEST(Recompute, AProducerThatMayNotRunAgainIsLeftAlone) {
  Shape s;
  RecomputeOptions options;
  options.may_run_again = {false, true, true, true, true};
  const RecomputeSet set(s.trace(), options);
  EXPECT_FALSE(Offers(set, s.cheap));
  EXPECT_TRUE(Offers(set, s.costly));
  options.may_run_again = {true};  // launches beyond the list may not
  EXPECT_FALSE(Offers(RecomputeSet(s.trace(), options), s.costly));
}

TEST(Recompute, AProducerWhoseOtherResultHasChangedSinceIsLeftAloneWhereResultsLieInPlace) {
  Shape s;
  const uint32_t other = s.b.Global(1);
  s.trace().launches[1].writes.push_back(other);
  EXPECT_TRUE(Offers(RecomputeSet(s.trace()), s.costly));
  s.trace().launches[2].writes.push_back(other);
  EXPECT_FALSE(Offers(RecomputeSet(s.trace()), s.costly));
}

TEST(Recompute, WhatNeedsDeadDataRunsAChain) {
  Shape s;
  s.trace().launches[4].reads = {s.input};  // now `cheap` is dead when `costly` is needed
  RecomputeSet set(s.trace());
  ASSERT_EQ(set.candidates().size(), 1u);
  EXPECT_DOUBLE_EQ(set.candidates()[0].seconds, 1.01);
  ASSERT_TRUE(set.Add(set.candidates()[0]));
  const Recomputed made = set.Apply();
  ASSERT_EQ(made.reruns.size(), 2u);
  EXPECT_EQ(made.reruns[0].producer, 0u);
  EXPECT_EQ(made.reruns[1].producer, 1u);
  EXPECT_EQ(made.new_position, (std::vector<uint32_t>{0, 1, 2, 5, 6}));
  RecomputeOptions options;
  options.longest_chain = 1;
  EXPECT_TRUE(RecomputeSet(s.trace(), options).candidates().empty());
}

TEST(Recompute, WhatAnotherChainNeedsIsMadeForItFirstAndStays) {
  Shape s;
  RecomputeSet set(s.trace());
  for (const Recomputation& r : set.candidates()) EXPECT_TRUE(set.Add(r));
  const Recomputed made = set.Apply();
  // cheap and costly before launch 3; cheap is there at launch 4.
  ASSERT_EQ(made.trace.launches.size(), 7u);
  EXPECT_EQ(made.reruns[0].restores, std::vector<uint32_t>{s.cheap});
  EXPECT_EQ(made.reruns[1].restores, std::vector<uint32_t>{s.costly});
  EXPECT_EQ(made.new_position, (std::vector<uint32_t>{0, 1, 2, 5, 6}));
  EXPECT_EQ(made.bytes, 20 * kMiB);
  EXPECT_DOUBLE_EQ(made.seconds, 1.01);
}

TEST(Recompute, OneThatWouldMakeAChainTooLongIsRefused) {
  Shape s;
  RecomputeOptions options;
  options.longest_chain = 1;
  RecomputeSet set(s.trace(), options);
  ASSERT_EQ(set.candidates().size(), 2u);
  EXPECT_TRUE(set.Add(set.candidates()[1]));   // costly needs cheap at launch 3
  EXPECT_FALSE(set.Add(set.candidates()[0]));  // which is then dropped
  EXPECT_EQ(set.chosen().size(), 1u);
  set.Shrink(0);
  EXPECT_TRUE(set.Add(set.candidates()[0]));
  EXPECT_FALSE(set.Add(set.candidates()[1]));
}

TEST(Recompute, TheProducerRunsAgainJustBeforeTheUse) {
  Shape s;
  RecomputeSet set(s.trace());
  ASSERT_TRUE(set.Add(set.candidates()[0]));
  const Recomputed made = set.Apply();
  ASSERT_EQ(made.trace.launches.size(), 6u);
  EXPECT_EQ(made.new_position, (std::vector<uint32_t>{0, 1, 2, 3, 5}));
  EXPECT_EQ(made.trace.launches[4].reads, s.trace().launches[0].reads);
  EXPECT_EQ(made.trace.launches[4].writes, std::vector<uint32_t>{s.cheap});
  ASSERT_EQ(made.reruns.size(), 1u);
  EXPECT_EQ(made.reruns[0].position, 4u);
  EXPECT_EQ(made.reruns[0].before, 4u);
  ASSERT_EQ(made.drops.size(), 1u);
  EXPECT_EQ(made.drops[0].tensor, s.cheap);
  EXPECT_EQ(made.drops[0].after, 1u);
  EXPECT_EQ(made.drops[0].before, 4u);
  EXPECT_NEAR(ComputeSeconds(made.trace), ComputeSeconds(s.trace()) + 0.01, 1e-9);
  EXPECT_LT(MostLive(made.trace), MostLive(s.trace()));
}

TEST(Recompute, DataThatLivesAcrossPeriodsIsDroppedToo) {
  Shape s;
  s.trace().tensors[s.cheap].global = true;
  RecomputeSet set(s.trace());
  ASSERT_TRUE(set.Add(set.candidates()[0]));
  const Recomputed made = set.Apply();
  EXPECT_EQ(made.trace.launches[4].restores, std::vector<uint32_t>{s.cheap});
  const Lifetimes life = FindLifetimes(made.trace);
  for (const InactiveInterval& i : life.intervals) {
    EXPECT_FALSE(i.tensor == s.cheap && i.next_use == 4) << "it need not be moved";
  }
  EXPECT_EQ(life.live[2], life.live[3] + 10 * kMiB);  // input and costly, and what launch 2 makes
}

TEST(Recompute, OtherResultsThatLieInPlaceAreWrittenAgain) {
  Shape s;
  const uint32_t global = s.b.Global(1), local = s.b.Local(2);
  for (uint32_t t : {global, local}) s.trace().launches[1].writes.push_back(t);
  RecomputeSet set(s.trace());
  ASSERT_EQ(set.candidates().back().tensor, s.costly);
  ASSERT_TRUE(set.Add(set.candidates().back()));
  const Recomputed made = set.Apply();
  const Launch& again = made.trace.launches[3];
  EXPECT_EQ(again.writes, (std::vector<uint32_t>{s.costly, global}));
  EXPECT_EQ(again.restores, std::vector<uint32_t>{s.costly});
  EXPECT_EQ(again.workspace, 2 * kMiB);  // what is dead goes to waste
}

}  // namespace
}  // namespace atp::policy
