// SPDX-License-Identifier: Apache-2.0
#include "shim/vmm_runs.h"

#include <algorithm>

#include "shim/lifecycle.h"
#include "shim/managed.h"

namespace atp::shim {

void JoinRun(const Range& range, uint64_t range_begin, int device, uint64_t begin, uint64_t bytes) {
  uint64_t end = begin + bytes;
  const auto neighbour = [&](uint64_t address) -> Record* {
    Record* record = g_tracker.Find(address);
    const bool inside = address >= range_begin && address < range_begin + range.bytes;
    return inside && record != nullptr && record->device == device ? record : nullptr;
  };
  Record* before = neighbour(begin - 1);
  Record* after = neighbour(end);
  if (before != nullptr && after == nullptr) {
    if (!AnnounceGrowth(before, end - before->address)) Trouble("a mapping that cannot be tracked");
    return;
  }
  for (Record* record : {before, after}) {
    if (record == nullptr) continue;
    begin = std::min(begin, record->address);
    end = std::max(end, record->address + record->mapped_bytes);
    Withdraw(record);
  }
  if (Announce(begin, end - begin, end - begin, range.context, device) == nullptr) {
    Trouble("a mapping that cannot be tracked");
  }
}

void LeaveRun(uint64_t begin, uint64_t end) {
  for (uint64_t at = begin; at < end;) {
    Record* record = g_tracker.Find(at);
    if (record == nullptr) {
      at += kGranule;
      continue;
    }
    const Record old = *record;
    const uint64_t old_end = old.address + old.mapped_bytes;
    Withdraw(record);
    const auto keep = [&](uint64_t from, uint64_t to) {
      if (from < to) Announce(from, to - from, to - from, old.context, old.device);
    };
    keep(old.address, begin);
    keep(end, old_end);
    at = old_end;
  }
}

}  // namespace atp::shim
