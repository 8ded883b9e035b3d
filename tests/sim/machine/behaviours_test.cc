// SPDX-License-Identifier: Apache-2.0
// The behaviours of NVIDIA's unified memory without which conclusions drawn on the simulated
// machine would not carry over to a real one (docs/sim.md, "Unified memory"): one test each. The
// twelfth, that hints cannot be captured, is the driver layer's.
#include <algorithm>

#include "tests/sim/machine/bench.h"

namespace atp::sim {
namespace {

using Slots = std::vector<uint64_t>;

TEST(Behaviour, Nr01_ListsAreOrderedByMigrationAndVictimsAreUnusedThenDiscardedThenUsed) {
  Bench bench(4);
  uint64_t a = bench.Managed(4), b = bench.Managed(4), s = a / kBlock;
  for (uint64_t i = 0; i < 4; ++i) bench.Prefetch(a + i * kBlock, kBlock);
  bench.Read(a, kBlock);
  EXPECT_EQ(bench.List(ChunkList::kUsed),
            (Slots{s, s + 1, s + 2, s + 3}));  // an access changes nothing
  bench.Prefetch(a, 4096);                     // a touch does, even of a single page
  EXPECT_EQ(bench.List(ChunkList::kUsed), (Slots{s + 1, s + 2, s + 3, s}));
  EXPECT_EQ(bench.stats().to_device.prefetch, 0u);
  Pass pass;
  bench.unified().Discard(&pass, a + 3 * kBlock, kBlock, /*unmap=*/false);
  bench.Prefetch(a + 2 * kBlock, kBlock, kHost);
  EXPECT_EQ(bench.List(ChunkList::kUnused), (Slots{s + 2}));
  EXPECT_EQ(bench.List(ChunkList::kDiscarded), (Slots{s + 3}));
  bench.Read(b, kBlock);
  EXPECT_TRUE(bench.List(ChunkList::kUnused).empty());
  bench.Read(b + kBlock, kBlock);
  EXPECT_TRUE(bench.List(ChunkList::kDiscarded).empty());
  EXPECT_EQ(bench.stats().to_host.eviction, 0u);  // neither needed a copy
  bench.Read(b + 2 * kBlock, kBlock);
  EXPECT_EQ(bench.Where(a + kBlock), kHost);  // the head of USED
  EXPECT_EQ(bench.Where(a), 0);
}

TEST(Behaviour, Nr02_EvictionCopiesCleanDataExceptDuplicatesAndDiscarded) {
  Bench bench(2);
  uint64_t a = bench.Managed(2), b = bench.Managed(8);
  bench->HostAccess(bench.lane, a, 2 * kBlock, true);
  bench.Read(a, 2 * kBlock);  // never written by the device
  bench.Read(b, kBlock);
  EXPECT_EQ(bench.stats().to_host.eviction, kBlock);
  bench.Read(b + kBlock, kBlock);
  EXPECT_EQ(bench.stats().to_host.eviction, 2 * kBlock);

  Bench shared(2);
  uint64_t c = shared.Managed(2), d = shared.Managed(2);
  shared->HostAccess(shared.lane, c, 2 * kBlock, true);
  shared->Advise(shared.lane, c, 2 * kBlock, Advice::kSetReadMostly, 0);
  shared.Read(c, 2 * kBlock);
  shared.Read(d, 2 * kBlock);
  EXPECT_EQ(shared.stats().to_host.eviction, 0u);
  EXPECT_EQ(shared.stats().duplicates_not_copied, 2 * kBlock);
  EXPECT_EQ(shared.Where(c), kHost);

  Bench dead(2);
  uint64_t e = dead.Managed(2), f = dead.Managed(2);
  dead.Write(e, 2 * kBlock);
  dead.Discard(e, 2 * kBlock);
  dead.Write(f, 2 * kBlock);
  EXPECT_EQ(dead.stats().to_host.eviction, 0u);
}

// The time to stream `blocks` that live on the host through a full card.
Time StreamTime(Bench* bench, uint64_t blocks, bool prefetch) {
  uint64_t a = bench->Managed(blocks);
  for (int round = 0; round < 2; ++round) {  // the second one evicts for every block
    Time start = (*bench)->Now(bench->lane);
    for (uint64_t i = 0; i < blocks; i += 8) {
      if (prefetch) (*bench)->Prefetch(bench->lane, bench->side, a + i * kBlock, 8 * kBlock, 0);
    }
    if (!prefetch) {
      (*bench)->SubmitKernel(bench->lane, bench->side,
                             Bench::Sweep(a, blocks * kBlock, PageTouch::kRead, blocks));
    }
    (*bench)->SyncStream(bench->lane, bench->side);
    if (round == 1) return (*bench)->Now(bench->lane) - start;
  }
  return 0;
}

TEST(Behaviour, Nr03_FaultBatchesAreSerialAndPrefetchUsesBothDirections) {
  Bench faults(64), hints(64);
  Time slow = StreamTime(&faults, 128, false), fast = StreamTime(&hints, 128, true);
  EXPECT_GT(static_cast<double>(slow), 1.5 * static_cast<double>(fast));
  // By faults, the two directions never move data at the same moment: their busy times add up
  // within the time that passed.
  Time in = faults.machine().world().link.At(0).Busy(Direction::kToDevice, slow * 10);
  EXPECT_EQ(in, static_cast<Time>(128 * kBlock) * 40);  // 25 GB/s: the alone rate, all the time
  // The program's own copies share the link.
  Bench busy(64);
  uint64_t a = busy.Managed(16);
  busy->HostAccess(busy.lane, a, 16 * kBlock, true);
  Bench idle(64);
  uint64_t b = idle.Managed(16);
  idle->HostAccess(idle.lane, b, 16 * kBlock, true);
  CopyWork copy;
  copy.kind = CopyKind::kHostToDevice;
  copy.bytes = 64 << 20;
  busy->SubmitCopy(busy.lane, busy.stream, copy);
  auto time = [](Bench& bench, uint64_t address) {
    Time start = bench->Now(bench.lane);
    bench->Prefetch(bench.lane, bench.side, address, 16 * kBlock, 0);
    bench->SyncStream(bench.lane, bench.side);
    return bench->Now(bench.lane) - start;
  };
  EXPECT_GT(time(busy, a), time(idle, b) + 50 * kUs);
}

TEST(Behaviour, Nr04_TheTreeFetchesMoreThanFaultsAskAndNothingStopsThrashing) {
  Bench bench(8);
  uint64_t a = bench.Managed(16);
  // Every 16th page: the driver brings all of them, and goes on doing so although that evicts what
  // is needed next.
  auto sparse = [&] {
    KernelWork work = Bench::Sweep(a, 16 * kBlock, PageTouch::kRead, 16);
    for (WaveTouches& wave : work.waves)
      std::erase_if(wave.pages, [](PageTouch t) { return t.page % 16 != 0; });
    return work;
  };
  bench.Run(sparse());
  EXPECT_EQ(bench.PagesOn(0, a + 15 * kBlock), 512);
  uint64_t before = bench.stats().to_device.fault;
  for (int i = 0; i < 5; ++i) bench.Run(sparse());
  EXPECT_EQ(bench.stats().to_device.fault - before, 5 * 16 * kBlock);
}

TEST(Behaviour, Nr05_APrefetchBeyondTheRoomEvictsItsOwnHeadAndBringsItAgain) {
  Bench bench(8);
  uint64_t a = bench.Managed(12), s = a / kBlock;
  bench->HostAccess(bench.lane, a, 12 * kBlock, true);
  bench.Prefetch(a, 12 * kBlock);
  // First pass: 12 blocks in, 4 out. Second pass: each block in turn was just evicted, 12 in and 12
  // out.
  EXPECT_EQ(bench.stats().to_device.prefetch, 24 * kBlock);
  EXPECT_EQ(bench.stats().to_host.eviction, 16 * kBlock);
  Slots tail;
  for (uint64_t i = 4; i < 12; ++i) tail.push_back(s + i);
  EXPECT_EQ(bench.List(ChunkList::kUsed), tail);  // ascending addresses
  Bench fits(12);
  uint64_t b = fits.Managed(12);
  fits->HostAccess(fits.lane, b, 12 * kBlock, true);
  fits.Prefetch(b, 12 * kBlock);
  EXPECT_EQ(fits.stats().to_device.prefetch, 12 * kBlock);
}

TEST(Behaviour, Nr06_HostPagesPersistAndTheirLimitKillsTheContextOfAFault) {
  Bench bench(4, "", 8 * kBlock);
  uint64_t a = bench.Managed(8);
  bench->HostAccess(bench.lane, a, 8 * kBlock, true);
  bench.Prefetch(a, 4 * kBlock);
  EXPECT_EQ(bench.stats().host_bytes,
            8 * kBlock);  // four blocks have left, their host memory has not
  uint64_t b = bench.Managed(2);
  bench.Read(b, kBlock);  // evicts one of them: its host pages are there already
  EXPECT_EQ(bench->Health(0), MachineStatus::kOk);
  bench.Prefetch(a, 3 * kBlock);
  EXPECT_EQ(bench->Prefetch(bench.lane, bench.side, a, 8 * kBlock, 0), MachineStatus::kOutOfMemory);
  EXPECT_EQ(bench->Health(0), MachineStatus::kOk);  // a hint only fails
  bench.Read(a, 8 * kBlock);                        // a fault has nowhere to go
  EXPECT_EQ(bench->Health(0), MachineStatus::kContextDead);
  EXPECT_EQ(bench->Prefetch(bench.lane, bench.side, a, kBlock, 0), MachineStatus::kContextDead);
}

TEST(Behaviour, Nr07_ChunksStayAfterAPrefetchToTheHostWhichBlocksUnlessTheStreamIsBusy) {
  Bench bench(8);
  uint64_t a = bench.Managed(4);
  bench.Write(a, 4 * kBlock);
  uint64_t free_before = bench->Info(0).free_bytes;
  Time start = bench->Now(bench.lane);
  bench->Prefetch(bench.lane, bench.side, a, 4 * kBlock, kHost);
  Time blocked = bench->Now(bench.lane) - start;
  EXPECT_GT(blocked, static_cast<Time>(4 * kBlock) * 40 + bench.costs().host_map);
  EXPECT_EQ(bench.List(ChunkList::kUnused).size(), 4u);
  EXPECT_EQ(bench->Info(0).free_bytes, free_before);
  Time back = bench.Prefetch(a, 4 * kBlock);
  EXPECT_GT(back, static_cast<Time>(4 * kBlock) * 40);
  EXPECT_TRUE(bench.List(ChunkList::kUnused).empty());  // the same chunks again
  // Busy: the call returns at once, and the driver's one thread does it later, one hint after the
  // other.
  bench->SubmitDelay(bench.lane, bench.side, 10 * kMs);
  start = bench->Now(bench.lane);
  bench->Prefetch(bench.lane, bench.side, a, 4 * kBlock, kHost);
  EXPECT_LT(bench->Now(bench.lane) - start, 50 * kUs);
  EXPECT_EQ(bench.Where(a), 0);
  EXPECT_EQ(bench.stats().deferred_hints, 1u);
  bench->SyncStream(bench.lane, bench.side);
  EXPECT_GT(bench->Now(bench.lane) - start, 10 * kMs + blocked / 2);
  EXPECT_EQ(bench.Where(a), kHost);
}

TEST(Behaviour, Nr08a_AccessedByKeepsEvictedDataInReachWithoutFaults) {
  Bench bench(4);
  uint64_t a = bench.Managed(2), b = bench.Managed(4);
  bench.Write(a, 2 * kBlock);
  bench->Advise(bench.lane, a, 2 * kBlock, Advice::kSetAccessedBy, 0);
  bench.Run(Bench::Sweep(b, 4 * kBlock, PageTouch::kRead, 4));
  ASSERT_EQ(bench.Where(a), kHost);
  uint64_t faults = bench.stats().gpu_faults, moved = bench.stats().to_device.fault;
  Time remote = bench.Read(a, 2 * kBlock);
  EXPECT_EQ(bench.stats().gpu_faults, faults);
  EXPECT_EQ(bench.stats().to_device.fault, moved);
  EXPECT_EQ(bench.stats().to_device.remote, 2 * kBlock);
  EXPECT_EQ(bench.Where(a), kHost);
  // 4 MiB at 0.8 of 25 GB/s.
  EXPECT_NEAR(static_cast<double>(remote), 2.0 * kBlock / (0.8 * 25e9) * 1e12, 5e6);
  bench.Prefetch(a, 2 * kBlock);  // only a prefetch brings it back
  EXPECT_EQ(bench.Where(a), 0);
}

TEST(Behaviour, Nr08b_PreferredHostIsZeroCopyThroughSmallMappings) {
  Bench bench(4);
  uint64_t a = bench.Managed(2);
  bench->HostAccess(bench.lane, a, 2 * kBlock, true);
  bench->Advise(bench.lane, a, 2 * kBlock, Advice::kSetPreferred, kHost);
  bench.Read(a, 2 * kBlock);
  EXPECT_EQ(bench.Where(a), kHost);
  uint64_t faults = bench.stats().gpu_faults;
  EXPECT_EQ(faults, 1024u);  // each page is mapped by a fault of its own
  Time again = bench.Read(a, 2 * kBlock);
  EXPECT_EQ(bench.stats().gpu_faults, faults);
  EXPECT_GE(again, bench.costs().remote_scattered * 1024);
  bench.Prefetch(a, kBlock);  // overrides until it is evicted
  EXPECT_EQ(bench.Where(a), 0);
}

TEST(Behaviour, Nr08c_AWriteToReadMostlyDataFaultsForEachPageAndCollapses) {
  Bench bench(4);
  uint64_t a = bench.Managed(2);
  bench->HostAccess(bench.lane, a, 2 * kBlock, true);
  bench->Advise(bench.lane, a, 2 * kBlock, Advice::kSetReadMostly, 0);
  bench.Read(a, 2 * kBlock);
  Time clean = bench.Read(a, 2 * kBlock);
  EXPECT_EQ(clean, 100 * kUs);
  uint64_t faults = bench.stats().gpu_faults;
  Time written = bench.Write(a, 2 * kBlock);
  EXPECT_EQ(bench.stats().gpu_faults - faults, 1024u);
  EXPECT_GT(written, 1024 * bench.costs().read_mostly_write);
  EXPECT_EQ(bench.Where(a), 0);  // the host's copy is no longer valid
  // The neighbours of a written page are made read-only again, so that the next sweep faults too.
  faults = bench.stats().gpu_faults;
  bench.Write(a, 2 * kBlock);
  EXPECT_GT(bench.stats().gpu_faults - faults, 400u);
}

TEST(Behaviour, Nr09_PlainAllocationsEvictManagedMemoryAndFreeMemoryCountsWhatNobodyClaimed) {
  Bench bench(256);
  EXPECT_EQ(bench->Info(0).free_bytes, 256 * kBlock);
  uint64_t a = bench.Managed(100);
  bench.Prefetch(a, kBlock);
  EXPECT_EQ(bench->Info(0).free_bytes, 192 * kBlock);  // 64 chunks taken for one block
  bench.Prefetch(a, 100 * kBlock);
  EXPECT_EQ(bench->Info(0).free_bytes, 128 * kBlock);
  EXPECT_EQ(bench->AllocDevice(bench.lane, 0, 150 * kBlock), MachineStatus::kOk);
  EXPECT_EQ(bench.stats().evictions, 0u);  // the batch's slack of 28 chunks was enough
  Time start = bench->Now(bench.lane);
  EXPECT_EQ(bench->AllocDevice(bench.lane, 0, 16 * kBlock), MachineStatus::kOk);
  EXPECT_EQ(bench.stats().evictions, 10u);
  EXPECT_GT(bench->Now(bench.lane) - start, static_cast<Time>(10 * kBlock) * 40);
  EXPECT_EQ(bench.Where(a), kHost);
  EXPECT_EQ(bench->AllocDevice(bench.lane, 0, 100 * kBlock), MachineStatus::kOutOfMemory);
  EXPECT_EQ(bench.stats().evictions, 10u);  // refused without evicting
  bench->FreeDevice(bench.lane, 0, 166 * kBlock);
  bench->RemoveManaged(bench.lane, a);
  EXPECT_EQ(bench->Info(0).free_bytes, 256 * kBlock);
}

TEST(Behaviour, Nr10_CopyEnginesFaultOneAtATime) {
  Bench bench(8);
  uint64_t a = bench.Managed(1);
  bench->HostAccess(bench.lane, a, kBlock, true);
  CopyWork copy;
  copy.kind = CopyKind::kDeviceToHost;
  copy.bytes = kBlock;
  copy.source = a;
  auto time = [&] {
    Time start = bench->Now(bench.lane);
    bench->SubmitCopy(bench.lane, bench.stream, copy);
    bench->SyncStream(bench.lane, bench.stream);
    return bench->Now(bench.lane) - start;
  };
  Time cold = time();
  EXPECT_EQ(bench.stats().engine_faults, 6u);  // 64 KiB, then the tree doubles what is there
  EXPECT_EQ(bench.Where(a), 0);
  Time warm = time();
  EXPECT_EQ(bench.stats().engine_faults, 6u);
  EXPECT_GT(cold, warm + 6 * bench.costs().engine_fault);
}

TEST(Behaviour, Nr11_AdviceTakesTheSpaceLockAndSplitsBlocksThatItCutsThrough) {
  Bench bench(8);
  uint64_t a = bench.Managed(4);
  bench.Write(a, 4 * kBlock);
  Lane other = bench->NewLane(bench->Now(bench.lane));
  // A prefetch to the host holds the lock for reading all the while; advice by another thread waits
  // for it.
  bench->Prefetch(bench.lane, bench.side, a, 2 * kBlock, kHost);
  bench->Advise(other, a + 3 * kBlock, kBlock, Advice::kSetAccessedBy, 0);
  EXPECT_GT(bench->Now(other), bench->Now(bench.lane));
  // So does an allocation.
  Lane third = bench->NewLane(bench->Now(other));
  bench->Prefetch(bench.lane, bench.side, a + 2 * kBlock, kBlock, kHost);
  bench->AddManaged(third, uint64_t{1} << 44, kBlock);
  EXPECT_GE(bench->Now(third), bench->Now(bench.lane));

  Bench split(8);
  uint64_t b = split.Managed(2);
  split.Write(b, 2 * kBlock);
  split->Advise(split.lane, b, kBlock + 256 * 4096, Advice::kSetReadMostly, 0);
  Block* first = split.unified().space().BlockOf((b + kBlock) >> kPageBits);
  Block* second = split.unified().space().BlockOf((b + kBlock + 256 * 4096) >> kPageBits);
  EXPECT_NE(first, second);
  EXPECT_TRUE(first->policy.read_mostly);
  EXPECT_FALSE(second->policy.read_mostly);
  EXPECT_FALSE(first->whole);
  EXPECT_TRUE(split.unified().space().BlockOf(b >> kPageBits)->whole);
  // A split block takes no part in touches any more, and never goes to the UNUSED list.
  std::vector<ChunkId> order = split.unified().memory(0).List(ChunkList::kUsed);
  split.Prefetch(b + kBlock, kBlock);
  EXPECT_EQ(split.unified().memory(0).List(ChunkList::kUsed), order);
  split.Prefetch(b + kBlock, kBlock, kHost);
  EXPECT_TRUE(split.List(ChunkList::kUnused).empty());
}

}  // namespace
}  // namespace atp::sim
