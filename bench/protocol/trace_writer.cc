// SPDX-License-Identifier: Apache-2.0
// What an event of a trace costs the program that writes it, the chunks that it fills included (not
// the disk). Target: at most 100 ns a launch with four touches.
#include "protocol/trace_writer.h"

#include <benchmark/benchmark.h>

#include <array>

namespace {

using atp::protocol::TouchRow;
using atp::protocol::TraceWriter;

// Argument: touches of each launch.
void BM_Launch(benchmark::State& state) {
  size_t written = 0;
  TraceWriter writer({}, [&](const uint8_t*, size_t bytes) { return (written += bytes) > 0; });
  const uint32_t name = writer.String("kernel");
  std::array<TouchRow, 16> touches;
  touches.fill({1, 0, 4096, atp::protocol::kReads});
  const std::span<const TouchRow> some(touches.data(), size_t(state.range(0)));
  for (auto _ : state) {
    writer.Launch({0x1234, 1e-5, name, 0, 0, 0, 0, atp::protocol::kNoString}, some);
  }
  state.counters["bytes/event"] = benchmark::Counter(double(written) / double(state.iterations()));
}
BENCHMARK(BM_Launch)->Arg(0)->Arg(2)->Arg(4)->Arg(16);

void BM_AllocateAndFree(benchmark::State& state) {
  TraceWriter writer({}, [](const uint8_t*, size_t) { return true; });
  const uint32_t kind = writer.String("managed");
  uint64_t id = 0;
  for (auto _ : state) {
    writer.Allocate({++id, 1 << 20, id, 0, kind, atp::protocol::kNoString});
    writer.Free({id, id, atp::protocol::kNoString});
  }
}
BENCHMARK(BM_AllocateAndFree);

}  // namespace

BENCHMARK_MAIN();
