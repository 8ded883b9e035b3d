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

template <typename Change>
void Residency::ForEach(const Allocation* allocation, uint64_t offset, uint64_t bytes,
                        Change change) {
  const auto found = where_.find(allocation->id);
  if (found == where_.end()) return;
  std::vector<Where>& granules = found->second;
  const size_t end = std::min<size_t>(granules.size(), (offset + bytes) / kGranule);
  for (size_t g = offset / kGranule; g < end; ++g) change(&granules[g]);
}

void Residency::MovedToHost(const Allocation* allocation, uint64_t offset, uint64_t bytes,
                            bool clean) {
  ForEach(allocation, offset, bytes,
          [&](Where* w) { *w = clean ? Where::kHostAdvised : Where::kHost; });
}

void Residency::MovedToDevice(const Allocation* allocation, uint64_t offset, uint64_t bytes) {
  ForEach(allocation, offset, bytes, [](Where* w) {
    *w = *w == Where::kHostAdvised || *w == Where::kBoth ? Where::kBoth : Where::kDevice;
  });
}

void Residency::ForgetAll() {
  for (auto& [id, granules] : where_) std::fill(granules.begin(), granules.end(), Where::kUnknown);
}

bool Residency::IsDuplicated(const Allocation* allocation, uint64_t offset, uint64_t bytes) const {
  const auto found = where_.find(allocation->id);
  if (found == where_.end()) return false;
  const auto begin = found->second.begin() + static_cast<ptrdiff_t>(offset / kGranule);
  return std::all_of(begin, begin + static_cast<ptrdiff_t>(bytes / kGranule),
                     [](Where w) { return w == Where::kBoth || w == Where::kHostAdvised; });
}

void Residency::Collapse(const Allocation* allocation) {
  ForEach(allocation, 0, allocation->mapped_bytes, [](Where* w) {
    if (*w == Where::kBoth || *w == Where::kHostAdvised) *w = Where::kHost;
  });
}

void Residency::Missing(Allocation* allocation, uint64_t offset, uint64_t bytes,
                        const Granules& want, Where where, uint32_t position, uint64_t piece_bytes,
                        std::vector<Action>* out) const {
  const Granules& is = where_.at(allocation->id);
  bool open = false;  // the last piece in `out` may still grow
  for (uint64_t at = offset; at < offset + bytes; at += kGranule) {
    const size_t g = at / kGranule;
    const bool on_device = is[g] == Where::kDevice || is[g] == Where::kBoth;
    const bool on_host = is[g] == Where::kHost || is[g] == Where::kHostAdvised;
    const bool there = where == Where::kDevice ? on_device : on_host;
    if (want[g] != where || there) {
      open = false;
      continue;
    }
    const bool in_place = where == Where::kDevice && !on_host;
    if (!open || out->back().bytes >= piece_bytes || out->back().in_place != in_place) {
      Action action;
      action.allocation = allocation;
      action.offset = at;
      action.position = position;
      action.in_place = in_place;
      // Advised ranges leave by the way that ends in one place, whatever was true of them.
      action.clean = allocation->read_mostly;
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
    Missing(allocation, 0, allocation->mapped_bytes, granules, Where::kHost, 0, piece_bytes,
            &approach.evict);
    approach.resident += kGranule * std::count(granules.begin(), granules.end(), Where::kDevice);
  }
  std::vector<Placed> by_use = schedule.tensors;
  std::stable_sort(by_use.begin(), by_use.end(),
                   [](const Placed& a, const Placed& b) { return a.first_touch < b.first_touch; });
  for (const Placed& t : by_use) {
    Missing(t.allocation, t.offset, t.bytes, want.at(t.allocation->address).second, Where::kDevice,
            t.first_touch, piece_bytes, &approach.fetch);
  }
  for (const Action& fetch : approach.fetch) {
    if (!fetch.in_place) approach.resident -= fetch.bytes;
  }
  return approach;
}

}  // namespace atp::shim
