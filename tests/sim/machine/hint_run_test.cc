// SPDX-License-Identifier: Apache-2.0
#include "sim/machine/hint_run.h"

#include "tests/sim/machine/bench.h"

namespace atp::sim {
namespace {

TEST(HintRun, HintsOnBusyStreamsGoOneAfterTheOtherThroughOneThread) {
  Bench bench(64);
  uint64_t a = bench.Managed(32);
  bench.Write(a, 16 * kBlock);
  bench->HostAccess(bench.lane, a + 16 * kBlock, 16 * kBlock, true);
  StreamId out = bench->NewStream(0, false), in = bench->NewStream(0, false);
  bench->SubmitDelay(bench.lane, out, kMs);
  bench->SubmitDelay(bench.lane, in, kMs);
  Time start = bench->Now(bench.lane);
  // The one to the host comes first and blocks the thread until all is copied and mapped; only then
  // is the other even begun.
  bench->Prefetch(bench.lane, out, a, 16 * kBlock, kHost);
  bench->Prefetch(bench.lane, in, a + 16 * kBlock, 16 * kBlock, 0);
  bench->SyncDevice(bench.lane, 0);
  Time time = bench->Now(bench.lane) - start;
  EXPECT_GT(time, kMs + static_cast<Time>(32 * kBlock) * 40);
  EXPECT_EQ(bench.stats().deferred_hints, 2u);

  Bench idle(64);  // on idle streams, issued by two threads, they overlap
  uint64_t b = idle.Managed(32);
  idle.Write(b, 16 * kBlock);
  idle->HostAccess(idle.lane, b + 16 * kBlock, 16 * kBlock, true);
  Lane second = idle->NewLane(idle->Now(idle.lane));
  Time begin = idle->Now(second);
  idle->Prefetch(second, idle.side, b + 16 * kBlock, 16 * kBlock, 0);
  idle->Prefetch(idle.lane, idle.stream, b, 16 * kBlock, kHost);
  idle->SyncDevice(idle.lane, 0);
  EXPECT_LT(idle->Now(idle.lane) - begin, time - kMs);
}

TEST(HintRun, APrefetchToTheHostLeavesItsStreamIdleEvenWhenTheOtherDirectionGetsBusy) {
  Bench bench(64);
  uint64_t a = bench.Managed(32);
  bench.Write(a, 16 * kBlock);
  bench->HostAccess(bench.lane, a + 16 * kBlock, 16 * kBlock, true);
  Lane other = bench->NewLane(bench->Now(bench.lane));
  for (uint64_t i = 0; i < 16; i += 4) {
    bench->Prefetch(bench.lane, bench.side, a + i * kBlock, 4 * kBlock, kHost);
    if (i == 0) bench->Prefetch(other, bench.stream, a + 16 * kBlock, 16 * kBlock, 0);
  }
  EXPECT_EQ(bench.stats().deferred_hints, 0u);
}

TEST(HintRun, WorkAfterAHintInItsStreamWaitsForIt) {
  Bench bench(64);
  uint64_t a = bench.Managed(16);
  bench->HostAccess(bench.lane, a, 16 * kBlock, true);
  bench->Prefetch(bench.lane, bench.stream, a, 16 * kBlock, 0);
  Time submitted = bench->Now(bench.lane);
  bench->SubmitKernel(bench.lane, bench.stream, Bench::Sweep(a, 16 * kBlock));
  bench->SyncStream(bench.lane, bench.stream);
  EXPECT_EQ(bench.stats().fault_batches, 0u);
  EXPECT_GT(bench->Now(bench.lane) - submitted, static_cast<Time>(13 * kBlock) * 40);
}

TEST(HintRun, ADeferredHintActsOnlyWhenItsTurnComes) {
  Bench bench(4);
  uint64_t a = bench.Managed(4), b = bench.Managed(4);
  bench.Write(a, 4 * kBlock);
  EventId event = bench->NewEvent();
  bench->SubmitDelay(bench.lane, bench.stream, 5 * kMs);
  bench->Record(bench.lane, bench.stream, event);
  bench->Wait(bench.lane, bench.side, event);
  bench->Prefetch(bench.lane, bench.side, b, 4 * kBlock, 0);
  bench->Spend(bench.lane, 4 * kMs);
  EXPECT_FALSE(bench->EventDone(bench.lane, event));
  EXPECT_EQ(bench.Where(a), 0);
  bench->Spend(bench.lane, 2 * kMs);
  EXPECT_TRUE(bench->EventDone(bench.lane, event));
  EXPECT_EQ(bench.Where(a), kHost);
}

}  // namespace
}  // namespace atp::sim
