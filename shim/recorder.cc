// SPDX-License-Identifier: Apache-2.0
#include "shim/recorder.h"

#include <algorithm>

namespace atp::shim {

void Recorder::Record(const LaunchView& launch) {
  if (entries_.empty()) {
    entries_.resize(kLaunches);
    touches_.resize(kTouches);
  }
  Entry& entry = entries_[launches_++ % kLaunches];
  entry.signature = launch.signature;
  entry.identity = launch.identity;
  entry.first_touch = touched_;
  entry.touch_count = static_cast<uint32_t>(launch.touch_count);
  for (size_t i = 0; i < launch.touch_count; ++i) {
    const Touch& t = launch.touches[i];
    touches_[touched_++ % kTouches] = {t.allocation->id, t.reads, t.writes};
  }
}

Recorder::Period Recorder::Last(uint32_t length, const std::vector<double>& seconds,
                                const std::unordered_map<uint64_t, Allocation*>& live) const {
  Period period;
  if (length == 0 || length > launches_ || length > kLaunches) return period;
  const uint64_t begin = launches_ - length;
  if (touched_ - entries_[begin % kLaunches].first_touch > kTouches) return period;

  std::unordered_map<uint64_t, uint32_t> index;
  period.trace.launches.resize(length);
  for (uint32_t i = 0; i < length; ++i) {
    const Entry& entry = entries_[(begin + i) % kLaunches];
    period.signatures.push_back(entry.signature);
    period.identities.push_back(entry.identity);
    policy::Launch& launch = period.trace.launches[i];
    launch.seconds = i < seconds.size() ? seconds[i] : 0;
    for (uint32_t k = 0; k < entry.touch_count; ++k) {
      const TouchEntry& touch = touches_[(entry.first_touch + k) % kTouches];
      const auto [it, added] = index.try_emplace(touch.allocation_id, period.placed.size());
      if (added) {
        const auto alive = live.find(touch.allocation_id);
        if (alive == live.end()) return period;
        Allocation* a = alive->second;
        period.placed.push_back({a, 0, a->mapped_bytes, i, /*written=*/false});
        policy::Tensor tensor;
        tensor.bytes = a->mapped_bytes;
        period.trace.tensors.push_back(std::move(tensor));
      }
      const auto add_once = [&](std::vector<uint32_t>& list) {
        if (std::find(list.begin(), list.end(), it->second) == list.end()) {
          list.push_back(it->second);
        }
      };
      // Advice that a write has ended twice already is not given a third time.
      constexpr uint8_t kGivenUp = 2;
      const bool writes =
          touch.writes || period.placed[it->second].allocation->read_mostly_broken >= kGivenUp;
      if (touch.reads) add_once(launch.reads);
      if (writes) add_once(launch.writes);
      period.placed[it->second].written |= writes;
    }
  }
  period.usable = true;
  return period;
}

Recorder::Beginning Recorder::BeginningOf(const std::vector<uint64_t>& signatures) const {
  const uint64_t length = signatures.size(),
                 oldest = launches_ - std::min<uint64_t>(launches_, kLaunches);
  const auto signature = [&](uint64_t i) { return entries_[i % kLaunches].signature; };
  const auto begins = [&](uint64_t at) {
    for (uint64_t i = 0; i < length; ++i) {
      if (signature(at + i) != signatures[i]) return false;
    }
    return true;
  };
  Beginning beginning;
  uint64_t at = oldest;
  while (at + length <= launches_ && !begins(at)) ++at;
  if (length == 0 || at + length > launches_) return beginning;
  // Part of a period may have run before the first whole one.
  for (uint64_t back = 1; at > oldest && back < length; ++back, --at) {
    if (signature(at - 1) != signatures[length - back]) break;
    beginning.rotation = static_cast<uint32_t>(length - back);
  }
  for (uint64_t i = 1; i <= beginning.before.size() && at >= oldest + i; ++i) {
    beginning.before[beginning.before.size() - i] = signature(at - i);
  }
  return beginning;
}

void AssumeDurations(double total, policy::Trace* trace) {
  constexpr double kLeast = 1e-6;
  double all = 0;
  for (policy::Launch& launch : trace->launches) {
    launch.seconds = 0;
    for (const auto* list : {&launch.reads, &launch.writes}) {
      for (const uint32_t t : *list) launch.seconds += static_cast<double>(trace->tensors[t].bytes);
    }
    all += launch.seconds;
  }
  for (policy::Launch& launch : trace->launches) {
    launch.seconds = std::max(kLeast, all > 0 ? launch.seconds / all * total : 0);
  }
}

}  // namespace atp::shim
