// SPDX-License-Identifier: Apache-2.0
// Prefetch, advise and discard in detail.
#include "tests/sim/machine/bench.h"

namespace atp::sim {
namespace {

TEST(Prefetch, ToTheDeviceReturnsBeforeTheCopiesEnd) {
  Bench bench(16);
  uint64_t a = bench.Managed(8);
  bench->HostAccess(bench.lane, a, 8 * kBlock, true);
  Time start = bench->Now(bench.lane);
  bench->Prefetch(bench.lane, bench.side, a, 8 * kBlock, 0);
  Time called = bench->Now(bench.lane) - start;
  bench->SyncStream(bench.lane, bench.side);
  Time copied = bench->Now(bench.lane) - start;
  EXPECT_LT(called, 200 * kUs);
  EXPECT_GT(copied, static_cast<Time>(8 * kBlock) * 40);
}

TEST(Prefetch, OfFreshMemoryMovesNothing) {
  Bench bench(16);
  uint64_t a = bench.Managed(8);
  bench.Prefetch(a, 8 * kBlock);
  EXPECT_EQ(bench.stats().to_device.Managed(), 0u);
  EXPECT_EQ(bench.PagesOn(0, a), 512);
}

TEST(Prefetch, OfWhatIsThereIsNoTouchWhereTheDriverElidesIt) {
  Bench bench(4, "touch_elided=1");
  uint64_t a = bench.Managed(4), s = a / kBlock;
  for (uint64_t i = 0; i < 4; ++i) bench.Prefetch(a + i * kBlock, kBlock);
  bench.Prefetch(a, kBlock);
  EXPECT_EQ(bench.List(ChunkList::kUsed), (std::vector<uint64_t>{s, s + 1, s + 2, s + 3}));
  EXPECT_EQ(bench.stats().touches, 0u);
  bench.Prefetch(a + kBlock, kBlock, kHost);
  bench.Prefetch(a, 2 * kBlock);  // half of it is away: the call goes through
  EXPECT_EQ(bench.Where(a + kBlock), 0);
  EXPECT_EQ(bench.List(ChunkList::kUsed).front(), s + 2);
}

TEST(Prefetch, OfPartOfABlockBringsOnlyThatPart) {
  Bench bench(16);
  uint64_t a = bench.Managed(1);
  bench->HostAccess(bench.lane, a, kBlock, true);
  bench.Prefetch(a + 8 * 4096, 4 * 4096);
  EXPECT_EQ(bench.PagesOn(0, a), 4);
  EXPECT_EQ(bench.stats().to_device.prefetch, 4u * 4096);
}

TEST(Prefetch, OfReadMostlyDataLeavesTheHostCopyValid) {
  Bench bench(16);
  uint64_t a = bench.Managed(1);
  bench->HostAccess(bench.lane, a, kBlock, true);
  bench->Advise(bench.lane, a, kBlock, Advice::kSetReadMostly, 0);
  bench.Prefetch(a, kBlock);
  EXPECT_TRUE(bench->ResidentOnHost(a));
  EXPECT_EQ(bench.PagesOn(0, a), 512);
  bench->Advise(bench.lane, a, kBlock, Advice::kUnsetReadMostly, 0);
  EXPECT_EQ(bench.PagesOn(0, a), 0);
}

TEST(Prefetch, RefusesWhatIsNotManaged) {
  Bench bench(16);
  uint64_t a = bench.Managed(1);
  EXPECT_EQ(bench->Prefetch(bench.lane, bench.side, 4096, 4096, 0), MachineStatus::kInvalidValue);
  EXPECT_EQ(bench->Prefetch(bench.lane, bench.side, a, 2 * kBlock, 0),
            MachineStatus::kInvalidValue);
  EXPECT_EQ(bench->Prefetch(bench.lane, bench.side, a, 0, 0), MachineStatus::kInvalidValue);
  EXPECT_EQ(bench->Prefetch(bench.lane, bench.side, a, kBlock, 7), MachineStatus::kInvalidValue);
}

TEST(Discard, UnmapsTakesTheBlockOutOfTheUsedListAndEndsWithAWrite) {
  Bench bench(4);
  uint64_t a = bench.Managed(1);
  bench.Write(a, kBlock);
  bench.Discard(a, kBlock);
  EXPECT_EQ(bench.Where(a), kNoPlace);
  EXPECT_EQ(bench.List(ChunkList::kUnused).size(), 1u);
  bench.Overwrite(a, kBlock);
  EXPECT_EQ(bench.unified().space().BlockOf(a >> kPageBits)->discarded.Count(), 0);
  EXPECT_EQ(bench.List(ChunkList::kUsed).size(), 1u);
  EXPECT_EQ(bench->DiscardViolations(), 0u);
}

TEST(Discard, OfPartOfABlockLeavesItOnTheUsedList) {
  Bench bench(4);
  uint64_t a = bench.Managed(1), b = bench.Managed(4);
  bench.Write(a, kBlock);
  bench.Discard(a, kBlock / 2);
  EXPECT_EQ(bench.List(ChunkList::kUsed).size(), 1u);
  bench.Prefetch(b, 4 * kBlock);
  EXPECT_EQ(bench.stats().to_host.eviction, kBlock / 2);
}

TEST(Discard, ThenPrefetchCopiesNothingAndEndsTheDiscard) {
  Bench bench(4);
  uint64_t a = bench.Managed(1);
  bench.Write(a, kBlock);
  bench.Prefetch(a, kBlock, kHost);
  uint64_t before = bench.stats().to_device.Managed();
  EXPECT_EQ(bench->Discard(bench.lane, bench.side, a, kBlock, true, 0), MachineStatus::kOk);
  bench->SyncStream(bench.lane, bench.side);
  EXPECT_EQ(bench.Where(a), 0);
  EXPECT_EQ(bench.stats().to_device.Managed(), before);
  EXPECT_EQ(bench.unified().space().BlockOf(a >> kPageBits)->discarded.Count(), 0);
}

TEST(Discard, AReadOfLiveDiscardedMemoryIsAViolationAndAnOverwriteIsNot) {
  Bench bench(4);
  uint64_t a = bench.Managed(4);
  bench.Write(a, 4 * kBlock);
  bench.Discard(a, kBlock);
  bench.Overwrite(a, kBlock);
  bench.Read(a, kBlock);
  EXPECT_EQ(bench->DiscardViolations(), 0u);
  bench.Discard(a, kBlock);
  bench.Read(a, 3 * 4096);
  EXPECT_EQ(bench->DiscardViolations(), 3u);
  bench.Discard(a + kBlock, kBlock);
  bench->HostAccess(bench.lane, a + kBlock, 4096, false);
  EXPECT_EQ(bench->DiscardViolations(), 4u);
  bench.Discard(a + 2 * kBlock, kBlock);
  CopyWork copy;
  copy.kind = CopyKind::kDeviceToHost;
  copy.bytes = 2 * 4096;
  copy.source = a + 2 * kBlock;
  bench->SubmitCopy(bench.lane, bench.stream, copy);
  bench->SyncStream(bench.lane, bench.stream);
  EXPECT_EQ(bench->DiscardViolations(), 6u);
  // A prefetch does not bring the content back.
  bench.Discard(a + 3 * kBlock, kBlock);
  bench.Prefetch(a + 3 * kBlock, kBlock);
  bench.Read(a + 3 * kBlock, 4096);
  EXPECT_EQ(bench->DiscardViolations(), 7u);
}

TEST(Discard, OfMemoryThatIsFreedIsNoViolation) {
  Bench bench(4);
  uint64_t a = bench.Managed(1);
  bench.Write(a, kBlock);
  bench.Discard(a, kBlock);
  bench->RemoveManaged(bench.lane, a);
  bench->AddManaged(bench.lane, a, kBlock);
  bench.Read(a, kBlock);
  EXPECT_EQ(bench->DiscardViolations(), 0u);
}

TEST(Discard, AWriteThatDependsOnTheOldContentIsAViolation) {
  Bench bench(4);
  uint64_t a = bench.Managed(1);
  bench.Write(a, kBlock);
  bench.Discard(a, kBlock);
  bench.Run(Bench::Sweep(a, 4096, PageTouch::kRead | PageTouch::kWrite));
  EXPECT_EQ(bench->DiscardViolations(), 1u);
}

TEST(Discard, WithoutUnmappingIsNotEndedByAWriteAndTheEvictionLosesIt) {
  Bench bench(1);
  uint64_t a = bench.Managed(1), b = bench.Managed(1);
  bench.Write(a, kBlock);
  Pass pass;
  bench.unified().Discard(&pass, a, kBlock, /*unmap=*/false);
  EXPECT_EQ(bench.List(ChunkList::kDiscarded).size(), 1u);
  bench.Overwrite(a, kBlock);
  bench.Prefetch(b, kBlock);
  EXPECT_EQ(bench.stats().to_host.eviction, 0u);
  bench.Read(a, 4096);
  EXPECT_EQ(bench->DiscardViolations(), 1u);
}

TEST(Advise, PreferredDeviceDoesNotProtectFromEviction) {
  Bench bench(2);
  uint64_t a = bench.Managed(2), b = bench.Managed(2);
  bench.Write(a, 2 * kBlock);
  bench->Advise(bench.lane, a, 2 * kBlock, Advice::kSetPreferred, 0);
  bench.Write(b, 2 * kBlock);
  EXPECT_EQ(bench.Where(a), kHost);
}

TEST(Advise, FirstTouchAtThePreferredLocationPopulatesTheWholeBlock) {
  Bench bench(2);
  uint64_t a = bench.Managed(1);
  bench->Advise(bench.lane, a, kBlock, Advice::kSetPreferred, 0);
  bench.Read(a, 4096);
  EXPECT_EQ(bench.PagesOn(0, a), 512);
}

TEST(Advise, SplitBlocksKeepWhatTheyHaveAndGiveItBack) {
  Bench bench(4);
  uint64_t a = bench.Managed(2);
  bench.Write(a, 2 * kBlock);
  bench->Advise(bench.lane, a + 5 * 4096, kBlock, Advice::kSetAccessedBy, 0);
  EXPECT_EQ(bench.PagesOn(0, a), 5);
  EXPECT_EQ(bench.PagesOn(0, a + 5 * 4096), 507);
  EXPECT_EQ(bench.PagesOn(0, a + kBlock), 5);
  uint64_t faults = bench.stats().gpu_faults;
  EXPECT_EQ(bench.Read(a, 2 * kBlock), 100 * kUs);
  EXPECT_EQ(bench.stats().gpu_faults, faults);
  uint64_t b = bench.Managed(4);
  bench.Run(Bench::Sweep(b, 4 * kBlock, PageTouch::kWrite, 4));
  EXPECT_EQ(bench.stats().to_host.eviction, 2 * kBlock);
  EXPECT_EQ(bench.Where(a + 6 * 4096), kHost);
  bench->RemoveManaged(bench.lane, a);
  bench->RemoveManaged(bench.lane, b);
  EXPECT_EQ(bench->Info(0).free_bytes, 4 * kBlock);
  EXPECT_EQ(bench.stats().host_bytes, 0u);
}

}  // namespace
}  // namespace atp::sim
