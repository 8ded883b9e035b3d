// SPDX-License-Identifier: Apache-2.0
// What is counted adds up, and two equal runs count the same.
#include "sim/machine/stats.h"

#include <random>

#include "tests/sim/machine/bench.h"

namespace atp::sim {
namespace {

// A busy program: kernels, hints, copies and host accesses in random order, by two lanes.
void RandomProgram(Bench* bench, unsigned seed, int steps, bool advise) {
  std::mt19937 random(seed);
  constexpr uint64_t kBlocks = 24;
  uint64_t base = bench->Managed(kBlocks);
  Lane other = (*bench)->NewLane(0);
  std::vector<uint64_t> small;
  for (int i = 0; i < 4; ++i) small.push_back(bench->ManagedBytes(300 << 10));
  for (int step = 0; step < steps; ++step) {
    uint64_t first = random() % kBlocks, count = 1 + random() % 6;
    if (first + count > kBlocks) count = kBlocks - first;
    uint64_t address = base + first * kBlock + (random() % 4) * 4096,
             bytes = count * kBlock - 4 * 4096;
    uint8_t flags = random() % 2 == 0 ? PageTouch::kRead : PageTouch::kWrite;
    switch (random() % (advise ? 9 : 7)) {
      case 0:
      case 1:
      case 2:
        (*bench)->SubmitKernel(bench->lane, bench->stream,
                               Bench::Sweep(address, bytes, flags, 1 + random() % 4, 300 * kUs));
        break;
      case 3:
        (*bench)->Prefetch(other, bench->side, address, bytes, 0);
        break;
      case 4:
        (*bench)->Prefetch(other, bench->side, address, bytes, kHost);
        break;
      case 5:
        (*bench)->HostAccess(bench->lane, small[random() % 4], 300 << 10, true);
        (*bench)->SubmitKernel(bench->lane, bench->stream,
                               Bench::Sweep(small[random() % 4], 300 << 10));
        break;
      case 6:
        (*bench)->SubmitCopy(bench->lane, bench->stream,
                             {CopyKind::kSet, bytes, 0, address, false});
        break;
      case 7:
        (*bench)->Advise(bench->lane, address, bytes, static_cast<Advice>(random() % 6), 0);
        break;
      case 8:
        (*bench)->Discard(bench->lane, bench->side, address, bytes, random() % 2 == 0, 0);
        break;
    }
    (*bench)->Spend(bench->lane, static_cast<Time>(random() % 500) * kUs);
    (*bench)->Spend(other, static_cast<Time>(random() % 500) * kUs);
  }
  (*bench)->SyncDevice(bench->lane, 0);
}

TEST(Stats, TwoEqualRunsGiveTheSameDigits) {
  auto run = [](const char* overrides) {
    Bench bench(10, overrides);
    RandomProgram(&bench, 5, 200, true);
    return bench->StatsJson();
  };
  EXPECT_EQ(run("f2m=0.5"), run("f2m=0.5"));
  EXPECT_NE(run("f2m=0.5"), run("f2m=0.5,evict=16"));
}

TEST(Stats, BytesThatComeInAreThoseThatWentOutOrAreThere) {
  for (unsigned seed = 1; seed <= 8; ++seed) {
    Bench bench(10);
    RandomProgram(&bench, seed, 150, false);
    uint64_t pages = 0;
    bench.unified().space().ForAll([&](Block& block) {
      pages += static_cast<uint64_t>((block.on_host | block.views[0].resident).Count());
      // Without READ_MOSTLY a page is in one place, and host memory is there wherever the host has
      // data.
      EXPECT_EQ((block.on_host & block.views[0].resident).Count(), 0);
      EXPECT_EQ((block.on_host - block.host_pages).Count(), 0);
      EXPECT_EQ((block.host_mapped - block.on_host).Count(), 0);
    });
    auto json = bench.Json();
    uint64_t in = 0, out = 0;
    for (const char* cause : {"fault", "prefetch", "eviction", "cpu_fault", "copy_engine_fault"}) {
      in += json["bytes"]["h2d"][cause].get<uint64_t>();
      out += json["bytes"]["d2h"][cause].get<uint64_t>();
    }
    // Every resident page was either copied in or began its life here.
    uint64_t host_pages = 0, born_on_host = bench.stats().zeroed_on_host;
    bench.unified().space().ForAll(
        [&](Block& block) { host_pages += static_cast<uint64_t>(block.on_host.Count()); });
    EXPECT_EQ(born_on_host + out - in, host_pages * kPageBytes) << "seed " << seed;
    EXPECT_EQ(json["resident_bytes"].get<uint64_t>(), pages * kPageBytes - host_pages * kPageBytes);
  }
}

TEST(Stats, DeviceMemoryIsNeverOvercommittedAndGivenBackInTheEnd) {
  for (unsigned seed = 20; seed < 26; ++seed) {
    Bench bench(7);
    RandomProgram(&bench, seed, 150, true);
    EXPECT_LE(bench.unified().resident_bytes(0), 7 * kBlock);
    std::vector<uint64_t> begins;
    bench.unified().space().ForAll([&](Block& block) {
      uint64_t address =
          block.slot * kBlock + static_cast<uint64_t>(block.valid.Next(0)) * kPageBytes;
      uint64_t begin = bench.unified().space().Find(address)->begin;
      if (begins.empty() || begins.back() != begin) begins.push_back(begin);
    });
    for (uint64_t begin : begins) bench->RemoveManaged(bench.lane, begin);
    while (bench.unified().memory(0).ReturnFree()) {
    }
    EXPECT_EQ(bench->Info(0).free_bytes, 7 * kBlock) << "seed " << seed;
    EXPECT_EQ(bench.stats().host_bytes, 0u);
    EXPECT_EQ(bench->Health(0), MachineStatus::kOk);
  }
}

TEST(Stats, JsonHasWhatAReaderLooksFor) {
  Bench bench(8);
  uint64_t a = bench.Managed(4);
  bench.Read(a, 4 * kBlock);
  auto json = bench.Json();
  EXPECT_EQ(json["profile"], "a100-40g");
  EXPECT_EQ(json["virtual_ms"]["kernels"]["sweep"]["count"], 1);
  EXPECT_GT(json["virtual_ms"]["kernels"]["sweep"]["fault_ms"].get<double>(), 0);
  EXPECT_GE(json["virtual_ms"]["total"].get<double>(),
            json["virtual_ms"]["kernels"]["sweep"]["ms"].get<double>());
  EXPECT_EQ(json["faults"]["gpu"].get<uint64_t>(), bench.stats().gpu_faults);
  EXPECT_EQ(json["resident_bytes"].get<uint64_t>(), 4 * kBlock);
  EXPECT_EQ(json["discard_violations"], 0);
}

}  // namespace
}  // namespace atp::sim
