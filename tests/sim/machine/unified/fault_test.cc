// SPDX-License-Identifier: Apache-2.0
// Faults of the host and of several devices on managed memory.
#include "tests/sim/machine/bench.h"

namespace atp::sim {
namespace {

TEST(HostFault, BringsNeighboursByTheSameTree) {
  Bench bench(4);
  uint64_t a = bench.Managed(1);
  bench.Write(a, kBlock);
  bench->HostAccess(bench.lane, a, 4096, false);
  EXPECT_EQ(bench.stats().host_faults, 1u);
  EXPECT_EQ(bench.stats().to_host.host_fault, 64u << 10);
  EXPECT_TRUE(bench->ResidentOnHost(a));
  EXPECT_EQ(bench.Where(a + (64 << 10)), 0);
  bench->HostAccess(bench.lane, a, kBlock, false);
  EXPECT_EQ(bench.stats().host_faults, 6u);
  EXPECT_EQ(bench.List(ChunkList::kUnused).size(), 1u);  // the block has emptied
}

TEST(HostFault, WaitsForTheCopy) {
  Bench bench(4);
  uint64_t a = bench.Managed(1);
  bench.Write(a, kBlock);
  Time start = bench->Now(bench.lane);
  bench->HostAccess(bench.lane, a, kBlock, false);
  EXPECT_GT(bench->Now(bench.lane) - start,
            6 * bench.costs().host_fault + static_cast<Time>(kBlock) * 40);
}

TEST(HostFault, OfMappedPagesCostsNothing) {
  Bench bench(4);
  uint64_t a = bench.Managed(1);
  bench->HostAccess(bench.lane, a, kBlock, true);
  Time start = bench->Now(bench.lane);
  bench->HostAccess(bench.lane, a, kBlock, true);
  EXPECT_EQ(bench->Now(bench.lane), start);
}

TEST(HostFault, OfReadMostlyDataDuplicatesAndAWriteCollapses) {
  Bench bench(4);
  uint64_t a = bench.Managed(1);
  bench.Write(a, kBlock);
  bench->Advise(bench.lane, a, kBlock, Advice::kSetReadMostly, 0);
  bench->HostAccess(bench.lane, a, kBlock, false);
  EXPECT_EQ(bench.PagesOn(0, a), 512);
  bench->HostAccess(bench.lane, a, 4096, true);
  EXPECT_EQ(bench.PagesOn(0, a), 511);
}

TEST(HostFault, BeyondTheHostsLimitFails) {
  Bench bench(4, "", kBlock);
  uint64_t a = bench.Managed(2);
  EXPECT_EQ(bench->HostAccess(bench.lane, a, kBlock, true), MachineStatus::kOk);
  EXPECT_EQ(bench->HostAccess(bench.lane, a + kBlock, kBlock, true), MachineStatus::kOutOfMemory);
}

TEST(SeveralDevices, APageMovesToThePeerThatTouchesIt) {
  Bench bench(4, "", 0, 2);
  uint64_t a = bench.Managed(1);
  bench.Write(a, kBlock);
  EXPECT_EQ(bench.Where(a), 0);
  StreamId stream = bench->NewStream(1, false);
  bench->SubmitKernel(bench.lane, stream, Bench::Sweep(a, kBlock));
  bench->SyncDevice(bench.lane, 1);
  EXPECT_EQ(bench.Where(a), 1);
  EXPECT_EQ(bench.stats().peer_bytes, kBlock);
  EXPECT_EQ(bench.List(ChunkList::kUnused, 0).size(), 1u);
}

TEST(SeveralDevices, WithPeerAccessAndAccessedByItStays) {
  Bench bench(4, "", 0, 2);
  uint64_t a = bench.Managed(1);
  bench->SetPeerAccess(1, 0, true);
  bench.Write(a, kBlock);
  bench->Advise(bench.lane, a, kBlock, Advice::kSetAccessedBy, 1);
  StreamId stream = bench->NewStream(1, false);
  bench->SubmitKernel(bench.lane, stream, Bench::Sweep(a, kBlock));
  bench->SyncDevice(bench.lane, 1);
  EXPECT_EQ(bench.Where(a), 0);
  EXPECT_EQ(bench.stats().peer_bytes, 0u);
}

TEST(SeveralDevices, EachEvictsItsOwnMemory) {
  Bench bench(2, "", 0, 2);
  uint64_t a = bench.Managed(2), b = bench.Managed(2);
  bench.Write(a, 2 * kBlock);
  bench->Prefetch(bench.lane, bench->LegacyStream(1), b, 2 * kBlock, 1);
  bench->SyncDevice(bench.lane, 1);
  EXPECT_EQ(bench.Where(a), 0);
  EXPECT_EQ(bench.Where(b), 1);
  EXPECT_EQ(bench.stats().evictions, 0u);
}

}  // namespace
}  // namespace atp::sim
