// SPDX-License-Identifier: Apache-2.0
#include "sim/machine/copy_run.h"

#include "tests/sim/machine/bench.h"

namespace atp::sim {
namespace {

constexpr uint64_t kBytes = 50'000'000;

Time CopyTime(Bench* bench, CopyKind kind, uint64_t bytes, uint64_t source = 0,
              uint64_t destination = 0, bool pageable = false) {
  CopyWork work{kind, bytes, source, destination, pageable};
  Time start = (*bench)->Now(bench->lane);
  (*bench)->SubmitCopy(bench->lane, bench->stream, work);
  (*bench)->SyncStream(bench->lane, bench->stream);
  return (*bench)->Now(bench->lane) - start;
}

TEST(CopyRun, PinnedCopiesGoAtTheRateOfTheirDirection) {
  Bench bench(8);
  Time latency = bench.costs().copy_latency;
  EXPECT_NEAR(static_cast<double>(CopyTime(&bench, CopyKind::kHostToDevice, kBytes) - latency), 2e9,
              1e3);
  EXPECT_NEAR(static_cast<double>(CopyTime(&bench, CopyKind::kDeviceToHost, kBytes) - latency), 2e9,
              1e3);
  EXPECT_EQ(bench.stats().to_device.copy, kBytes);
  EXPECT_EQ(bench.stats().to_host.copy, kBytes);
}

TEST(CopyRun, PageableCopiesAreSlowerAndBlockTheCaller) {
  Bench bench(8);
  EXPECT_GT(CopyTime(&bench, CopyKind::kHostToDevice, kBytes, 0, 0, true), 6 * kMs);
  Time start = bench->Now(bench.lane);
  bench->SubmitCopy(bench.lane, bench.stream, {CopyKind::kHostToDevice, kBytes, 0, 0, true});
  EXPECT_GT(bench->Now(bench.lane) - start, 6 * kMs);
}

TEST(CopyRun, OnTheDeviceGoesAtTheRateOfDeviceMemory) {
  Bench bench(8);
  double rate = 1555e9 * 0.88;
  EXPECT_NEAR(static_cast<double>(CopyTime(&bench, CopyKind::kDeviceToDevice, kBytes)),
              2.0 * kBytes / rate * 1e12, 3e6);
  EXPECT_NEAR(static_cast<double>(CopyTime(&bench, CopyKind::kSet, kBytes)), kBytes / rate * 1e12,
              3e6);
  EXPECT_EQ(bench.stats().to_device.copy + bench.stats().to_host.copy, 0u);
}

TEST(CopyRun, OfNothingEnds) {
  Bench bench(8);
  EXPECT_EQ(CopyTime(&bench, CopyKind::kSet, 0), bench.costs().copy_latency);
}

TEST(CopyRun, OfResidentManagedMemoryDoesNotFault) {
  Bench bench(8);
  uint64_t a = bench.Managed(4);
  bench.Prefetch(a, 4 * kBlock);
  CopyTime(&bench, CopyKind::kDeviceToHost, 4 * kBlock, a);
  EXPECT_EQ(bench.stats().engine_faults, 0u);
}

TEST(CopyRun, IntoManagedMemoryOnTheHostMigratesItSlowly) {
  Bench bench(8);
  uint64_t a = bench.Managed(4);
  bench->HostAccess(bench.lane, a, 4 * kBlock, true);
  CopyTime(&bench, CopyKind::kSet, 4 * kBlock, 0, a);
  EXPECT_EQ(bench.stats().engine_faults, 24u);
  EXPECT_EQ(bench.stats().to_device.engine_fault, 4 * kBlock);
  EXPECT_EQ(bench.Where(a), 0);
}

TEST(CopyRun, AManagedCopyLargerThanTheCardEnds) {
  Bench bench(1);
  uint64_t a = bench.Managed(3), b = bench.Managed(3);
  CopyTime(&bench, CopyKind::kDeviceToDevice, 3 * kBlock, a, b);
  EXPECT_EQ(bench->Health(0), MachineStatus::kOk);
  EXPECT_GT(bench.stats().evictions, 3u);
}

TEST(CopyRun, BothDirectionsAtOnceShareTheLink) {
  Bench bench(8);
  CopyWork in{CopyKind::kHostToDevice, kBytes, 0, 0, false},
      out{CopyKind::kDeviceToHost, kBytes, 0, 0, false};
  bench->SubmitCopy(bench.lane, bench.stream, in);
  bench->SubmitCopy(bench.lane, bench.side, out);
  bench->SyncDevice(bench.lane, 0);
  // Out at 24 GB/s, in at 12; when out has ended the other half of in goes at 25.
  double expected = (kBytes / 24e9 + kBytes / 2 / 25e9) * 1e12;
  EXPECT_NEAR(static_cast<double>(bench->Now(bench.lane)), expected, expected * 0.01);
}

}  // namespace
}  // namespace atp::sim
