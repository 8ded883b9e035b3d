// SPDX-License-Identifier: Apache-2.0
#include "policy/baselines/deficit_walk.h"

#include <algorithm>
#include <set>

#include "policy/replay/uses.h"

namespace atp::policy {
namespace {

class Walk {
 public:
  Walk(const Trace& trace, Bytes memory, Bytes granule)
      : trace_(trace), uses_(trace), memory_(memory), granule_(granule) {
    resident_.assign(trace.tensors.size(), 0);
    next_use_.assign(trace.tensors.size(), kNever);
    last_use_.assign(trace.tensors.size(), 0);
  }

  std::vector<Outing> Run() {
    constexpr uint32_t kPeriods = 3;  // the first two lead into the steady state
    for (uint32_t period = 0; period < kPeriods; ++period) {
      outings_.clear();
      for (uint32_t k = 0; k < uses_.launches; ++k) Step(Instance{period} * uses_.launches + k);
    }
    return std::move(outings_);
  }

 private:
  void Step(Instance instance) {
    const uint32_t k = static_cast<uint32_t>(instance % uses_.launches);
    Bytes needed = trace_.launches[k].workspace;
    for (uint32_t t : uses_.touched[k]) {
      needed += trace_.tensors[t].bytes - resident_[t];
      by_use_.erase({next_use_[t], t});  // no victims while they are in use
    }
    while (used_ + needed > memory_ && !by_use_.empty()) SendOut(used_ + needed - memory_);
    for (uint32_t t : uses_.touched[k]) {
      used_ += trace_.tensors[t].bytes - resident_[t];
      resident_[t] = trace_.tensors[t].bytes;
      last_use_[t] = instance;
      next_use_[t] = uses_.NextUse(t, instance);
      if (next_use_[t] == kNever) {
        used_ -= resident_[t];
        resident_[t] = 0;
      } else {
        by_use_.insert({next_use_[t], t});
      }
    }
  }

  void SendOut(Bytes deficit) {
    const auto furthest = std::prev(by_use_.end());
    const uint32_t t = furthest->second;
    Bytes keep = 0;
    if (granule_ > 0 && resident_[t] > deficit) {
      keep = (resident_[t] - deficit) / granule_ * granule_;
    }
    const Bytes bytes = resident_[t] - keep;
    outings_.push_back({t, keep, bytes, static_cast<uint32_t>(last_use_[t] % uses_.launches),
                        static_cast<uint32_t>(next_use_[t] % uses_.launches)});
    resident_[t] = keep;
    used_ -= bytes;
    if (keep == 0) by_use_.erase(furthest);
  }

  const Trace& trace_;
  const Uses uses_;
  const Bytes memory_, granule_;
  Bytes used_ = 0;
  std::vector<Bytes> resident_;  // per tensor: its first so many bytes
  std::vector<Instance> next_use_, last_use_;
  std::set<std::pair<Instance, uint32_t>> by_use_;
  std::vector<Outing> outings_;
};

}  // namespace

std::vector<Outing> WalkDeficits(const Trace& trace, Bytes memory, Bytes granule) {
  return Walk(trace, memory, granule).Run();
}

}  // namespace atp::policy
