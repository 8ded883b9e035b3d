// SPDX-License-Identifier: Apache-2.0
#include "policy/replay/uses.h"

#include <algorithm>

#include "policy/lifetimes.h"

namespace atp::policy {

Uses::Uses(const Trace& trace) : launches(static_cast<uint32_t>(trace.launches.size())) {
  const size_t tensors = trace.tensors.size();
  positions.resize(tensors);
  written.resize(tensors, false);
  global.resize(tensors);
  touched.resize(launches);
  born.resize(launches);
  dies.resize(launches);
  for (uint32_t k = 0; k < launches; ++k) {
    auto& all = touched[k];
    all = trace.launches[k].reads;
    all.insert(all.end(), trace.launches[k].writes.begin(), trace.launches[k].writes.end());
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    for (uint32_t t : all) positions[t].push_back(k);
    for (uint32_t t : trace.launches[k].writes) written[t] = true;
  }
  for (uint32_t t = 0; t < tensors; ++t) {
    global[t] = trace.tensors[t].global;
    dead_after.emplace_back(positions[t].size(), false);
    FindLives(trace, t);
  }
}

void Uses::FindLives(const Trace& trace, uint32_t tensor) {
  const auto& at = positions[tensor];
  for (size_t i = 0; i < at.size(); ++i) {
    auto among = [&](const std::vector<uint32_t>& list) {
      return std::find(list.begin(), list.end(), tensor) != list.end();
    };
    const Launch& launch = trace.launches[at[i]];
    const bool restored = i > 0 && among(launch.restores);
    if (global[tensor] ? !restored : i > 0 && among(launch.reads)) continue;
    born[at[i]].push_back(tensor);
    const size_t before = i > 0 ? i - 1 : at.size() - 1;
    dead_after[tensor][before] = true;
    dies[at[before]].push_back(tensor);
  }
}

Instance Uses::NextUse(uint32_t tensor, Instance instance) const {
  const auto& at = positions[tensor];
  if (at.empty()) return kNever;
  const Instance period = instance / launches;
  const uint32_t position = static_cast<uint32_t>(instance % launches);
  const auto next = std::upper_bound(at.begin(), at.end(), position);
  const size_t last = next == at.begin() ? at.size() - 1 : next - at.begin() - 1;
  if (dead_after[tensor][last]) return kNever;
  if (next != at.end()) return period * launches + *next;
  return (period + 1) * launches + at.front();
}

Bytes PeakLiveBytes(const Trace& trace) {
  const std::vector<Bytes> live = FindLifetimes(trace).live;
  return live.empty() ? 0 : *std::max_element(live.begin(), live.end());
}

Bytes LargestLaunchBytes(const Trace& trace) {
  const std::vector<Bytes> touched = FindLifetimes(trace).touched;
  return touched.empty() ? 0 : *std::max_element(touched.begin(), touched.end());
}

}  // namespace atp::policy
