// SPDX-License-Identifier: Apache-2.0
// The periods that a program is known to run (train step, evaluation, one step per length bucket,
// ...) and where in them a few launches in a row belong. Part of the period detector. Bounded
// memory: the phase that was followed least is forgotten first. One thread.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "policy/launch_history.h"

namespace atp::policy {

class PhaseBook {
 public:
  static constexpr uint32_t kNone = ~0u;
  static constexpr uint32_t kGram = 4;  // launches in a row that tell a place

  struct Phase {
    uint32_t id = 0;  // never reused; the slot is, and is free while empty
    std::vector<uint64_t> signatures;
    std::vector<uint64_t> prefix;  // hash of the first i launches; one more than launches
    uint64_t followed = 0;         // launches that ran as this phase said
    uint32_t length() const { return static_cast<uint32_t>(signatures.size()); }
  };
  struct Place {
    uint32_t phase = kNone;  // slot
    uint32_t position = 0;
  };

  PhaseBook(uint32_t phases, uint64_t launches) : most_launches_(launches), phases_(phases) {}

  // Adds launches [begin, end) of the history as a phase, or finds it. Returns its slot; what was
  // in the slot before is forgotten, but never the phase `keep`.
  uint32_t Add(const LaunchHistory& history, uint64_t begin, uint64_t end, uint32_t keep);
  void Forget(uint32_t phase);
  Phase& Get(uint32_t phase) { return phases_[phase]; }
  bool empty() const { return launches_ == 0; }
  uint32_t FindExact(uint64_t hash, uint64_t length) const;

  // Where the last kGram launches occur, if in exactly one place of one phase. A place in the
  // longer phase counts, since phases may contain others.
  Place FindLast(const LaunchHistory& history) const;
  // A phase other than `not_this` that begins with `position` launches of hash `prefix` and goes on
  // with `signature`; the one that was followed most.
  uint32_t FindBranch(uint64_t prefix, uint32_t position, uint64_t signature,
                      uint32_t not_this) const;
  // All slots; an empty phase is a free slot.
  const std::vector<Phase>& phases() const { return phases_; }

 private:
  struct Gram {
    uint32_t phase, position;
    bool unique;
  };
  uint32_t FreeSlot(uint64_t launches, uint32_t keep);
  template <typename Visit>
  void EachGram(uint32_t phase, Visit visit) const;
  void Index(uint32_t phase);

  uint32_t next_id_ = 0;
  uint64_t most_launches_, launches_ = 0;
  std::vector<Phase> phases_;
  std::unordered_map<uint64_t, Gram> grams_;
};

}  // namespace atp::policy
