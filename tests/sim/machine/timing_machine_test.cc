// SPDX-License-Identifier: Apache-2.0
// The machine as a whole: what a driver does with it.
#include "tests/sim/machine/bench.h"

namespace atp::sim {
namespace {

TEST(MachineAsAWhole, AResidentKernelLastsItsResidentTimeAndAColdOneLonger) {
  Bench bench(64);
  uint64_t a = bench.Managed(8);
  Time cold = bench.Read(a, 8 * kBlock);
  Time warm = bench.Read(a, 8 * kBlock);
  EXPECT_EQ(warm, 100 * kUs);
  EXPECT_GT(cold, warm);
  EXPECT_EQ(bench.Where(a), 0);
  EXPECT_GT(bench.stats().gpu_faults, 0u);
}

TEST(MachineAsAWhole, ASweepLargerThanTheCardMissesEveryTime) {
  Bench bench(16);
  uint64_t a = bench.Managed(24);
  auto sweep = [&] { bench.Run(Bench::Sweep(a, 24 * kBlock, PageTouch::kRead, 24)); };
  sweep();
  EXPECT_EQ(bench.stats().to_device.fault, 0u);  // nobody had data yet
  EXPECT_EQ(bench.stats().evictions, 8u);
  sweep();
  EXPECT_EQ(bench.stats().to_device.fault, 24 * kBlock);
  sweep();
  EXPECT_EQ(bench.stats().to_device.fault, 2 * 24 * kBlock);
  EXPECT_EQ(bench.stats().evictions, 8u + 2 * 24);
}

TEST(MachineAsAWhole, ASweepByPrefetchTakesTheLinkInBothDirectionsAtOnce) {
  Bench bench(64);
  uint64_t a = bench.Managed(256);
  for (int pass = 0; pass < 2; ++pass) {
    for (uint64_t i = 0; i < 256; i += 8)
      bench->Prefetch(bench.lane, bench.side, a + i * kBlock, 8 * kBlock, 0);
    bench->SyncStream(bench.lane, bench.side);
  }
  Time start = bench->Now(bench.lane);
  for (uint64_t i = 0; i < 256; i += 8)
    bench->Prefetch(bench.lane, bench.side, a + i * kBlock, 8 * kBlock, 0);
  bench->SyncStream(bench.lane, bench.side);
  Time time = bench->Now(bench.lane) - start;
  double rate = 256.0 * kBlock / static_cast<double>(time) * 1e12;
  // As many bytes leave at 24 GB/s as come in at 12; once they have left, the rest comes in at 25
  // GB/s.
  double fastest = 1 / (1 / 24e9 + 0.5 / 25e9);
  EXPECT_GT(rate, 0.85 * fastest);
  EXPECT_LE(rate, fastest);
}

}  // namespace
}  // namespace atp::sim
