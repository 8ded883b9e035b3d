// SPDX-License-Identifier: Apache-2.0
// What the loop of a device has from earlier runs, by atpd, and gives to it. All of it is guesses:
// a remembered phase is planned when the memory that it touches is there, runs when the program's
// launches are its launches, one by one, and ends with the first that is another. Of what a store
// says only signatures, touches and times are used; nothing in it can have memory discarded. The
// lock of the loop is held.
#pragma once

#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "protocol/learned.h"
#include "shim/daemon_link.h"
#include "shim/phase_states.h"
#include "shim/recorder.h"
#include "shim/shape_follower.h"
#include "shim/tuning_trial.h"

namespace atp::shim {

using LiveAllocations = std::unordered_map<uint64_t, Allocation*>;  // by id

class LoopMemory {
 public:
  // Names of phases that come from here; the detector's count from 0.
  static constexpr uint32_t kFirstPhase = 1u << 31;
  // The same for phases of which only the shape was known.
  static constexpr uint32_t kFirstShape = kFirstPhase + (1u << 30);

  explicit LoopMemory(uint64_t budget) : tuning_(budget) {}

  // Asks what is known of the program, as it is now. `await`: until there is an answer.
  void Ask(int device, uint64_t capacity, const LiveAllocations& live, bool await);

  // Other memory is live now than before.
  void Changed() { changed_ = true; }
  // What is about to be freed takes with it the phases that use it: what was learned of them stays.
  void Freeing(const PhaseStates& phases, const Allocation* allocation);
  // True when Next may have something.
  bool Waiting() {
    if (question_.Ready()) TakeAnswer();
    return changed_ || !offers_.empty();
  }

  struct Recalled {
    uint32_t phase = 0;
    Recorder::Period period;  // durations of 0: not known
    std::vector<uint64_t> before;
    std::vector<double> seconds;  // empty: not known
    double plain_seconds = 0;
  };
  // A remembered phase whose memory is all live; each once for each change of what is live. Of
  // phases that differ in the sizes of their memory alone, the one that fits best.
  std::optional<Recalled> Next(const LiveAllocations& live);
  policy::LinkRates link() const { return link_; }  // 0 = not known
  TuningTrial& tuning() { return tuning_; }
  const TuningTrial& tuning() const { return tuning_; }

  // Each launch, in the order in which they are recorded.
  void Launched(uint64_t identity) {
    if (!shapes_.empty()) lap_ = shapes_.Feed(identity);
  }
  // The remembered phase whose kernels the last launches were, one lap of them, on whatever memory;
  // null: there is none. `number` names it.
  const protocol::LearnedPhase* LapJustEnded(uint32_t* number) const {
    return lap_ == ShapeFollower::kNone ? nullptr : &phases_[*number = lap_];
  }
  // The times of that phase for such a lap, or none.
  std::vector<double> SecondsOf(uint32_t number, const Recorder::Period& period) const;

  // Hands what has been learned so far to atpd. `at_once`: at exit.
  void Tell(const PhaseStates& phases, const policy::LinkRates& link, bool at_once);
  // True in the 4th, 8th, 16th, ... planned period: what is learned late changes little.
  bool IsTimeToTell(uint64_t planned_periods);

 private:
  void TakeAnswer();
  void MakeOffers(const LiveAllocations& live);
  std::optional<Recalled> Resolve(uint32_t index, const LiveAllocations& live) const;

  DaemonQuestion question_;
  TuningTrial tuning_;
  protocol::Fingerprint fingerprint_;
  uint64_t capacity_ = 0;
  int device_ = 0;
  std::vector<protocol::LearnedPhase> phases_;
  std::vector<uint32_t> recalled_;  // how often each
  policy::LinkRates link_;
  ShapeFollower shapes_;  // of phases_
  uint32_t lap_ = ShapeFollower::kNone;
  bool changed_ = false;
  // To be offered since the last change: indices of phases_, the best last.
  std::vector<uint32_t> offers_;
  uint64_t tell_at_ = 4;
  std::map<uint64_t, protocol::LearnedPhase> kept_;  // by KeyOf the phase that is gone
};

}  // namespace atp::shim
