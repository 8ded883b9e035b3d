// SPDX-License-Identifier: Apache-2.0
// What eviction does with each kind of page: bytes copied, host memory, state afterwards.
#include "tests/sim/machine/bench.h"

namespace atp::sim {
namespace {

class EvictionTable : public testing::Test {
 protected:
  EvictionTable() : bench_(1), page_(bench_.Managed(1)), other_(bench_.Managed(1)) {}
  Block* TheBlock() { return bench_.unified().space().BlockOf(page_ >> kPageBits); }
  void Evict() {
    bench_.Prefetch(other_, kBlock);
    EXPECT_EQ(bench_.PagesOn(0, page_), 0);
    EXPECT_EQ(TheBlock()->views[0].root, kNoChunk);
  }
  uint64_t Copied() { return bench_.stats().to_host.eviction; }
  Bench bench_;
  uint64_t page_, other_;
};

TEST_F(EvictionTable, DirtyPagesAreCopied) {
  bench_.Write(page_, kBlock);
  Evict();
  EXPECT_EQ(Copied(), kBlock);
  EXPECT_EQ(bench_.stats().host_bytes, kBlock);
  EXPECT_EQ(bench_.Where(page_), kHost);
}

TEST_F(EvictionTable, CleanPagesAreCopiedToo) {
  bench_->HostAccess(bench_.lane, page_, kBlock, true);
  bench_.Read(page_, kBlock);
  Evict();
  EXPECT_EQ(Copied(), kBlock);
  EXPECT_EQ(bench_.stats().host_bytes, kBlock);  // the host pages of before are used again
}

TEST_F(EvictionTable, OnlyResidentPagesAreCopied) {
  bench_.Prefetch(page_, 64 * 4096);
  Evict();
  EXPECT_EQ(Copied(), 64u * 4096);
  EXPECT_EQ(bench_.stats().host_bytes, 64u * 4096);
  EXPECT_EQ(bench_.Where(page_ + 64 * 4096), kNoPlace);
}

TEST_F(EvictionTable, ReadDuplicatedPagesAreOnlyUnmappedAndComeBackByOneCopy) {
  bench_->HostAccess(bench_.lane, page_, kBlock, true);
  bench_->Advise(bench_.lane, page_, kBlock, Advice::kSetReadMostly, 0);
  bench_.Prefetch(page_, kBlock);
  uint64_t before = bench_.stats().to_device.prefetch;
  Evict();
  EXPECT_EQ(Copied(), 0u);
  EXPECT_EQ(bench_.stats().duplicates_not_copied, kBlock);
  bench_.Prefetch(page_, kBlock);
  EXPECT_EQ(bench_.stats().to_device.prefetch - before, kBlock);
}

TEST_F(EvictionTable, DiscardedPagesAreNotCopiedButGetZeroedHostMemoryTheFirstTime) {
  bench_.Write(page_, kBlock);
  Pass pass;
  bench_.unified().Discard(&pass, page_, kBlock, /*unmap=*/false);
  Evict();
  EXPECT_EQ(Copied(), 0u);
  EXPECT_EQ(bench_.stats().discarded_not_copied, kBlock);
  EXPECT_EQ(bench_.stats().host_bytes, kBlock);
  EXPECT_EQ(bench_.stats().zeroed_on_host, kBlock);
  EXPECT_EQ(TheBlock()->discarded.Count(), 512);  // the status stays
}

TEST_F(EvictionTable, AnEmptyChunkIsJustDetached) {
  bench_.Write(page_, kBlock);
  bench_.Prefetch(page_, kBlock, kHost);
  uint64_t to_host = bench_.stats().to_host.Managed();
  Evict();
  EXPECT_EQ(bench_.stats().to_host.Managed(), to_host);
  EXPECT_EQ(bench_.stats().evictions, 0u);
  EXPECT_EQ(bench_.stats().unused_taken, 1u);
}

TEST_F(EvictionTable, TheNextOwnerOfTheChunkWaitsForTheCopyOutOfIt) {
  bench_.Write(page_, kBlock);
  bench_->HostAccess(bench_.lane, other_, kBlock, true);
  Time time = bench_.Prefetch(other_, kBlock);
  EXPECT_GT(time, static_cast<Time>(2 * kBlock) * 40);  // out, then in, at 25 GB/s
}

TEST(Eviction, ASplitChunkTakesAllItsOwnersWithIt) {
  Bench bench(1);
  uint64_t a = bench.ManagedBytes(64 << 10), b = bench.ManagedBytes(64 << 10), c = bench.Managed(1);
  bench.Write(a, 64 << 10);
  bench.Write(b, 64 << 10);
  EXPECT_EQ(bench.unified().memory(0).List(ChunkList::kUsed).size(), 1u);
  bench.Write(c, kBlock);
  EXPECT_EQ(bench.Where(a), kHost);
  EXPECT_EQ(bench.Where(b), kHost);
  EXPECT_EQ(bench.stats().to_host.eviction, 128u << 10);
  EXPECT_EQ(bench.stats().evictions, 1u);
}

TEST(Eviction, HostMemoryInSmallPiecesMakesItSlower) {
  auto time = [](const char* overrides) {
    Bench bench(4, overrides);
    uint64_t a = bench.Managed(4), b = bench.Managed(4);
    bench.Write(a, 4 * kBlock);
    return bench.Prefetch(b, 4 * kBlock);
  };
  EXPECT_GT(time("f2m=0"), time("f2m=1") + 4 * (400 * kNs) * 500);
}

TEST(Eviction, NothingIsEvictedWhenEverythingIsPinned) {
  Bench bench(4);
  ASSERT_EQ(bench->AllocDevice(bench.lane, 0, 4 * kBlock), MachineStatus::kOk);
  uint64_t a = bench.Managed(1);
  EXPECT_EQ(bench->Prefetch(bench.lane, bench.side, a, kBlock, 0), MachineStatus::kOutOfMemory);
  bench.Read(a, kBlock);
  EXPECT_EQ(bench->Health(0), MachineStatus::kContextDead);
}

}  // namespace
}  // namespace atp::sim
