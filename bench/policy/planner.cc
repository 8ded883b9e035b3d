// SPDX-License-Identifier: Apache-2.0
// How long planning takes and what memory it needs, by the length of the period. Training steps
// made here: layers forwards and backwards with an optimizer, live data at 2.5 times the device.
// For each length: CPU milliseconds of the bounds, of a plan, and of a plan after a small change
// (every twentieth duration off by 3 %), and the most memory that a plan held at once. Then every
// synthetic kind (policy/synthetic), as it is and with about 1,400 launches, at shares of its
// footprint, with and without free exits (ReadMostly): where the link is busy all the time, more
// ways of planning are tried. The best of several runs, since other processes only add time. --json
// prints one array on stdout; --quick leaves the longest out.
#include "policy/planner.h"

#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "policy/bounds.h"
#include "policy/replay/uses.h"
#include "policy/synthetic/synthetic.h"

namespace {

size_t g_live_bytes = 0, g_peak_bytes = 0;  // of the heap, by operator new; one thread

void* Allocate(size_t bytes) {
  void* block = std::malloc(bytes + alignof(std::max_align_t));
  if (block == nullptr) std::abort();
  *static_cast<size_t*>(block) = bytes;
  g_live_bytes += bytes;
  g_peak_bytes = std::max(g_peak_bytes, g_live_bytes);
  return static_cast<char*>(block) + alignof(std::max_align_t);
}

void Release(void* pointer) {
  if (pointer == nullptr) return;
  void* block = static_cast<char*>(pointer) - alignof(std::max_align_t);
  g_live_bytes -= *static_cast<size_t*>(block);
  std::free(block);
}

}  // namespace

void* operator new(size_t bytes) { return Allocate(bytes); }
void* operator new[](size_t bytes) { return Allocate(bytes); }
void operator delete(void* pointer) noexcept { Release(pointer); }
void operator delete[](void* pointer) noexcept { Release(pointer); }
void operator delete(void* pointer, size_t) noexcept { Release(pointer); }
void operator delete[](void* pointer, size_t) noexcept { Release(pointer); }

namespace {

using atp::policy::Bytes;
using Json = nlohmann::ordered_json;

// Per layer: one weight, two activations; launches: two forwards, three backwards, one update.
atp::policy::Trace TrainingStep(size_t launches) {
  constexpr Bytes kMiB = 1 << 20;
  const size_t layers = std::max<size_t>(launches / 6, 2);
  atp::policy::Trace trace;
  trace.link.h2d = trace.link.d2h = 16e9;
  auto tensor = [&](Bytes bytes, bool global) {
    atp::policy::Tensor t;
    t.bytes = bytes;
    t.global = global;
    trace.tensors.push_back(t);
    return static_cast<uint32_t>(trace.tensors.size() - 1);
  };
  auto run = [&](double us, std::vector<uint32_t> reads, std::vector<uint32_t> writes) {
    atp::policy::Launch launch;
    launch.seconds = us * 1e-6;
    launch.reads = std::move(reads);
    launch.writes = std::move(writes);
    trace.launches.push_back(launch);
  };
  std::vector<uint32_t> weight, inner, outer = {tensor(20 * kMiB, true)};
  for (size_t i = 0; i < layers; ++i) {
    weight.push_back(tensor((4 + i % 5) * kMiB, true));
    inner.push_back(tensor((24 + i % 7 * 3) * kMiB, false));
    outer.push_back(tensor(20 * kMiB, false));
    run(900 + static_cast<double>(i % 11) * 40, {outer[i], weight[i]}, {inner[i]});
    run(500, {inner[i]}, {outer[i + 1]});
  }
  for (size_t i = layers; i-- > 0;) {
    const uint32_t gradient = tensor((4 + i % 5) * kMiB, false);
    run(600, {outer[i + 1], inner[i]}, {inner[i]});
    run(900, {inner[i], outer[i]}, {gradient});
    run(800, {inner[i], weight[i]}, {});
    run(60, {gradient, weight[i]}, {weight[i]});
  }
  const Bytes activations = layers * (20 + 33) * kMiB;
  trace.device_bytes = activations * 2 / 5;
  return trace;
}

double CpuMilliseconds() {
  timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) * 1e-6;
}

template <typename Body>
double Best(int rounds, Body body) {
  double best = 1e300;
  for (int i = 0; i < rounds; ++i) {
    const double start = CpuMilliseconds();
    body();
    best = std::min(best, CpuMilliseconds() - start);
  }
  return best;
}

Json Measure(size_t launches, int rounds) {
  atp::policy::Trace trace = TrainingStep(launches);
  atp::policy::Trace changed = trace;
  for (size_t k = 0; k < changed.launches.size(); k += 20) changed.launches[k].seconds *= 1.03;
  const atp::policy::PlanOptions options;
  atp::policy::Plan plan;
  size_t held = 0;
  const double plan_ms = Best(rounds, [&] {
    plan = {};
    g_peak_bytes = g_live_bytes;
    const size_t before = g_live_bytes;
    plan = MakePlan(trace, options);
    held = g_peak_bytes - before;
  });
  const double replan_ms = Best(rounds, [&] { plan = MakePlan(changed, options); });
  double bound = 0;
  const double bounds_ms = Best(rounds, [&] {
    bound = BoundClosed(changed, changed.device_bytes) + BoundSafe(changed, changed.device_bytes) +
            BoundAny(changed, changed.device_bytes);
  });
  if (!plan.feasible || !(bound > 0)) {
    std::fprintf(stderr, "planner: no plan for %zu launches: %s\n", launches, plan.why.c_str());
    std::exit(1);
  }
  return {{"launches", trace.launches.size()},
          {"tensors", trace.tensors.size()},
          {"planning_ms", plan_ms},
          {"replanning_ms", replan_ms},
          {"three_bounds_ms", bounds_ms},
          {"memory_bytes", held},
          {"memory_bytes_per_launch", held / trace.launches.size()},
          {"moves", plan.evictions.size() + plan.fetches.size()},
          {"plan_over_bound", plan.period_seconds / BoundClosed(changed, changed.device_bytes)}};
}

// The slowest plan of a synthetic kind over memory sizes, with and without free exits. `launches`:
// about how many, by its layers; 0 = as it is.
Json MeasureKind(const std::string& kind, size_t launches, int rounds) {
  atp::policy::SyntheticOptions options;
  options.kind = kind;
  atp::policy::Trace trace = atp::policy::MakeSynthetic(options);
  if (launches > 0) {
    const double more = static_cast<double>(launches) / static_cast<double>(trace.launches.size());
    options.layers = static_cast<uint32_t>(options.layers * more);
    trace = atp::policy::MakeSynthetic(options);
  }
  const Bytes footprint = atp::policy::PeakLiveBytes(trace);
  Json slowest = {
      {"kind", kind},        {"launches", trace.launches.size()}, {"tensors", trace.tensors.size()},
      {"memory_share", 0.0}, {"clean_leaves_free", false},        {"planning_ms", 0.0},
      {"moves", 0}};
  for (double share : {0.1, 0.2, 0.4, 0.6, 0.8}) {
    for (bool free : {false, true}) {
      atp::policy::PlanOptions plan_options;
      plan_options.memory = static_cast<Bytes>(share * static_cast<double>(footprint));
      plan_options.clean_leaves_free = free;
      if (plan_options.memory < atp::policy::LargestLaunchBytes(trace)) continue;
      atp::policy::Plan plan;
      const double ms = Best(rounds, [&] { plan = MakePlan(trace, plan_options); });
      if (ms <= slowest["planning_ms"].get<double>()) continue;
      slowest["memory_share"] = share;
      slowest["clean_leaves_free"] = free;
      slowest["planning_ms"] = ms;
      slowest["moves"] = plan.evictions.size() + plan.fetches.size();
    }
  }
  return slowest;
}

}  // namespace

int main(int argc, char** argv) {
  bool json = false, quick = false;
  for (int i = 1; i < argc; ++i) {
    const bool known = std::strcmp(argv[i], "--json") == 0 || std::strcmp(argv[i], "--quick") == 0;
    if (!known) {
      std::fprintf(stderr, "usage: planner [--json] [--quick]\n");
      return std::strcmp(argv[i], "--help") == 0 ? 0 : 2;
    }
    json |= std::strcmp(argv[i], "--json") == 0;
    quick |= std::strcmp(argv[i], "--quick") == 0;
  }
  Json rows = Json::array();
  for (size_t launches : {size_t{150}, size_t{1400}, size_t{10000}, size_t{100000}}) {
    if (quick && launches > 1400) continue;
    rows.push_back(Measure(launches, launches > 10000 ? 2 : 5));
  }
  Json kinds = Json::array();
  for (const atp::policy::SyntheticKind& kind : atp::policy::SyntheticKinds()) {
    for (size_t launches : {size_t{0}, size_t{1400}}) {
      if (quick && launches > 0) continue;
      kinds.push_back(MeasureKind(std::string(kind.name), launches, quick ? 1 : 3));
    }
  }
  if (json) {
    rows.insert(rows.end(), kinds.begin(), kinds.end());
    std::printf("%s\n", rows.dump().c_str());
    return 0;
  }
  std::printf("%10s %10s %12s %12s %12s %12s %8s\n", "launches", "tensors", "plan ms", "re-plan ms",
              "bounds ms", "memory MiB", "moves");
  for (const Json& row : rows) {
    std::printf("%10zu %10zu %12.2f %12.2f %12.2f %12.1f %8zu\n", row["launches"].get<size_t>(),
                row["tensors"].get<size_t>(), row["planning_ms"].get<double>(),
                row["replanning_ms"].get<double>(), row["three_bounds_ms"].get<double>(),
                static_cast<double>(row["memory_bytes"].get<size_t>()) / (1 << 20),
                row["moves"].get<size_t>());
  }
  std::printf(
      "\n%-14s %10s %10s %10s %10s %12s %8s   (the slowest of 10 to 80 %% of the footprint)\n",
      "kind", "launches", "tensors", "memory", "exits", "plan ms", "moves");
  for (const Json& row : kinds) {
    std::printf("%-14s %10zu %10zu %8.0f %% %10s %12.2f %8zu\n",
                row["kind"].get<std::string>().c_str(), row["launches"].get<size_t>(),
                row["tensors"].get<size_t>(), 100 * row["memory_share"].get<double>(),
                row["clean_leaves_free"].get<bool>() ? "some free" : "copied",
                row["planning_ms"].get<double>(), row["moves"].get<size_t>());
  }
  return 0;
}
