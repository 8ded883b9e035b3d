// SPDX-License-Identifier: Apache-2.0
// Static pinning after SUV (MICRO'24): what is touched most often for the room it takes stays on
// the device for all its life, everything else stays in host memory and is read and written over
// the link at each touch.
#include <algorithm>

#include "policy/baselines/baseline.h"
#include "policy/replay/uses.h"

namespace atp::policy {
namespace {

struct Candidate {
  uint32_t tensor;
  uint32_t first, last;  // launches over which it takes room
  double heat;           // touches for each launch of its life
};

std::vector<Candidate> ByHeat(const Trace& trace, const Uses& uses) {
  std::vector<Candidate> candidates;
  for (uint32_t t = 0; t < trace.tensors.size(); ++t) {
    const auto& at = uses.positions[t];
    if (at.empty()) continue;
    const uint32_t first = uses.global[t] ? 0 : at.front();
    const uint32_t last = uses.global[t] ? uses.launches - 1 : at.back();
    candidates.push_back({t, first, last, double(at.size()) / (last - first + 1)});
  }
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& a, const Candidate& b) { return a.heat > b.heat; });
  return candidates;
}

}  // namespace

Policy MakeStaticPin(const Trace& trace, const PlanOptions& options) {
  const Bytes memory = options.memory != 0 ? options.memory : trace.device_bytes;
  const Uses uses(trace);
  std::vector<Bytes> taken(uses.launches);
  for (uint32_t k = 0; k < uses.launches; ++k) taken[k] = trace.launches[k].workspace;
  Rules rules;
  rules.populate_ahead = 1;
  rules.remote.assign(trace.tensors.size(), true);
  for (const Candidate& c : ByHeat(trace, uses)) {
    const Bytes bytes = trace.tensors[c.tensor].bytes;
    const auto begin = taken.begin() + c.first, end = taken.begin() + c.last + 1;
    if (*std::max_element(begin, end) + bytes > memory) continue;
    std::for_each(begin, end, [&](Bytes& used) { used += bytes; });
    rules.remote[c.tensor] = false;
  }
  return {.how = rules};
}

}  // namespace atp::policy
