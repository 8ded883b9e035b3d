// SPDX-License-Identifier: Apache-2.0
#include "shim/residency.h"

#include <algorithm>
#include <map>
#include <utility>

namespace atp::shim {

void Residency::Add(Allocation* allocation) {
  live_[allocation->id] = allocation;
  where_[allocation->id].assign(allocation->mapped_bytes / kGranule, Where::kUnknown);
}

void Residency::Remove(const Allocation* allocation) {
  live_.erase(allocation->id);
  where_.erase(allocation->id);
}

void Residency::Set(const Allocation* allocation, uint64_t offset, uint64_t bytes, Where where) {
  const auto found = where_.find(allocation->id);
  if (found == where_.end()) return;
  std::vector<Where>& granules = found->second;
  const size_t end = std::min<size_t>(granules.size(), (offset + bytes) / kGranule);
  for (size_t g = offset / kGranule; g < end; ++g) granules[g] = where;
}

void Residency::ForgetAll() {
  for (auto& [id, granules] : where_) std::fill(granules.begin(), granules.end(), Where::kUnknown);
}

void Residency::Missing(Allocation* allocation, uint64_t offset, uint64_t bytes,
                        const Granules& want, Where where, uint64_t piece_bytes,
                        std::vector<Action>* out) const {
  const Granules& is = where_.at(allocation->id);
  bool open = false;  // the last piece in `out` may still grow
  for (uint64_t at = offset; at < offset + bytes; at += kGranule) {
    const size_t g = at / kGranule;
    if (want[g] != where || is[g] == where) {
      open = false;
      continue;
    }
    if (!open || out->back().bytes >= piece_bytes) {
      Action action;
      action.allocation = allocation;
      action.offset = at;
      out->push_back(action);
      open = true;
    }
    out->back().bytes += kGranule;
  }
}

Residency::Approach Residency::ToStartOf(const Schedule& schedule, uint64_t piece_bytes) const {
  std::map<uint64_t, std::pair<Allocation*, Granules>>
      want;  // by address: the order of moves is the same in every run
  for (const auto& [id, allocation] : live_) {
    want[allocation->address] = {allocation, Granules(where_.at(id).size(), Where::kHost)};
  }
  const auto set = [&](const Allocation* a, uint64_t offset, uint64_t bytes, Where where) {
    const auto begin = want.at(a->address).second.begin() + offset / kGranule;
    std::fill(begin, begin + bytes / kGranule, where);
  };
  for (const Placed& t : schedule.tensors) set(t.allocation, t.offset, t.bytes, Where::kDevice);
  for (const Action& o : schedule.out_at_start) set(o.allocation, o.offset, o.bytes, Where::kHost);

  Approach approach;
  for (const auto& [address, entry] : want) {
    const auto& [allocation, granules] = entry;
    Missing(allocation, 0, allocation->mapped_bytes, granules, Where::kHost, piece_bytes,
            &approach.evict);
    approach.resident += kGranule * std::count(granules.begin(), granules.end(), Where::kDevice);
  }
  std::vector<Placed> by_use = schedule.tensors;
  std::stable_sort(by_use.begin(), by_use.end(),
                   [](const Placed& a, const Placed& b) { return a.first_touch < b.first_touch; });
  for (const Placed& t : by_use) {
    Missing(t.allocation, t.offset, t.bytes, want.at(t.allocation->address).second, Where::kDevice,
            piece_bytes, &approach.fetch);
  }
  return approach;
}

}  // namespace atp::shim
