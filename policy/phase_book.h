// SPDX-License-Identifier: Apache-2.0
// The periods that a program is known to run (train step, evaluation, one step per length bucket, ...)
// and where in them a few launches in a row belong. Part of the period detector. Bounded memory: the
// least recently used phase is forgotten. One thread.
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
    uint32_t id = 0;                    // never reused
    std::vector<uint64_t> signatures;
    std::vector<uint64_t> prefix;       // hash of the first i launches; one more than launches
    uint64_t used = 0;                  // launch index of the last use
    uint32_t length() const { return static_cast<uint32_t>(signatures.size()); }
  };
  struct Place {
    uint32_t phase = kNone;  // index for Get
    uint32_t position = 0;
  };

  PhaseBook(uint32_t phases, uint64_t launches) : most_phases_(phases), most_launches_(launches) {}

  // Adds launches [begin, end) of the history as a phase, or finds it.
  uint32_t Add(const LaunchHistory& history, uint64_t begin, uint64_t end);
  Phase& Get(uint32_t phase) { return phases_[phase]; }
  uint32_t size() const { return static_cast<uint32_t>(phases_.size()); }
  uint32_t FindExact(uint64_t hash, uint64_t length) const;

  // Where the last kGram launches occur, if in exactly one place of one phase. A place in the longer
  // phase counts, since phases may contain others.
  Place FindLast(const LaunchHistory& history) const;
  // Another phase that begins with the first `position` launches of `phase` and goes on with
  // `signature`.
  uint32_t FindBranch(uint32_t phase, uint32_t position, uint64_t signature) const;

 private:
  struct Gram {
    uint32_t phase, position;
    bool unique;
  };
  void Forget();
  void Index(uint32_t phase);

  uint32_t most_phases_, next_id_ = 0;
  uint64_t most_launches_, launches_ = 0;
  std::vector<Phase> phases_;
  std::unordered_map<uint64_t, Gram> grams_;
};

}  // namespace atp::policy
