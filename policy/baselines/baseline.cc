// SPDX-License-Identifier: Apache-2.0
#include "policy/baselines/baseline.h"

#include <algorithm>

namespace atp::policy {
namespace {

constexpr Baseline kBaselines[] = {
    {"plan", "our planner: parts of tensors, both links by time", false, MakePlanned},
    {"stock", "unified memory as the driver does it: by faults, victims by last migration", false,
     MakeStock},
    {"stock-no-prefetch", "the same with the driver's density prefetcher off", false,
     MakeStockNoPrefetch},
    {"deepum", "DeepUM-like: prefetches what the next launches touch, evicts ahead", false,
     MakeDeepUm},
    {"belady", "MSched's order: furthest next use, prefetch without regard to time", false,
     MakeBelady},
    {"g10", "G10's greedy: whole tensors, largest reducible area first", false, MakeG10},
    {"vtensor", "vTensor-like: parts of tensors at the moment of a deficit", false, MakeVTensor},
    {"vtensor-whole", "the same with whole tensors only", false, MakeVTensorWhole},
    {"static-pin", "SUV-like: the hottest data pinned, the rest read over the link", false,
     MakeStaticPin},
    {"protect", "a fixed subset is never evicted, the rest by faults", false, MakeProtect},
    {"atp", "ATP: swap or recompute by bytes per second, genetic search", true, MakeAtp},
    {"atp-rule", "the same in the order of its rule, without the search", true, MakeAtpRule},
    {"plan-recompute", "our planner with recomputation as an option of the model", true,
     MakePlannedRecompute},
    {"plan-elementwise", "the same, but only element-wise launches run again", true,
     MakePlannedElementwise},
    {"ideal", "memory without limit", false, MakeIdeal},
};

}  // namespace

std::span<const Baseline> Baselines() { return kBaselines; }

const Baseline* FindBaseline(std::string_view name) {
  const auto found = std::find_if(std::begin(kBaselines), std::end(kBaselines),
                                  [&](const Baseline& b) { return b.name == name; });
  return found == std::end(kBaselines) ? nullptr : found;
}

ReplayResult Replay(const Trace& trace, const Policy& policy, const ReplayOptions& options) {
  ReplayOptions used = options;
  if (policy.unlimited) used.memory = ~Bytes{0} / 2;
  const Trace& replayed = policy.trace ? *policy.trace : trace;
  if (const Plan* plan = std::get_if<Plan>(&policy.how)) return ReplayPlan(replayed, *plan, used);
  return ReplayRules(replayed, std::get<Rules>(policy.how), used);
}

}  // namespace atp::policy
