// SPDX-License-Identifier: Apache-2.0
// What the loop knows of each phase of a program (train, evaluate, ...), kept while another one
// runs: a phase that comes back is served by its plan from its first launch on. Values only; the
// lock of the loop is held.
#pragma once

#include <array>
#include <cstdint>
#include <list>
#include <memory>
#include <vector>

#include "shim/recorder.h"
#include "shim/schedule.h"

namespace atp::shim {

struct PhaseState {
  uint32_t phase = 0;   // as the detector names it
  uint32_t length = 0;  // launches
  // The plan adopted last and the fastest one; null: not planned yet.
  std::shared_ptr<const Schedule> schedule, best;
  double best_seconds = 0;
  // The promise of another plan that was not less than what this one took; 0: none. And periods in
  // a row that took longer than that.
  double refused_seconds = 0;
  unsigned missed = 0;
  bool asked_for_drops = false;
  bool settled = false;         // a later plan was worse than `best`: no more plans
  bool whole = false;           // a plan by parts of allocations was worse: sight deceives here
  bool fits = false;            // its whole footprint fits: nothing to plan
  bool given_up = false;        // no plan is possible, or none pays
  std::vector<double> seconds;  // measured, by position; empty before the first planned period
  double plain_seconds = 0;     // a period on plain managed memory; 0 = not known
  unsigned slower = 0;          // planned periods in a row that took longer than that
  uint64_t planned_periods = 0;
  Recorder::Beginning beginning;  // where it began for the first time
  // Known from an earlier run: it may begin there again, so many times at most.
  uint8_t remembered = 0;

  bool Is(uint32_t p, uint32_t l) const { return phase == p && length == l; }

  // Another plan must promise less than this share of what periods take.
  static constexpr double kWorthAPlan = 0.98;
  // A period took so long: one of several in a row after which a plan that was refused is worth
  // asking for again. It was held against a period that had found more of its data in place.
  bool Missed(double took);
};

// The last launches, the newest one at the end.
using LastLaunches = decltype(Recorder::Beginning::before);

class PhaseStates {
 public:
  static constexpr size_t kMost = 16;  // what was left the longest time ago is forgotten

  // Finds or begins the state of a phase. `keep` is not forgotten for it.
  PhaseState* Enter(uint32_t phase, uint32_t length, const PhaseState* keep);
  PhaseState* Find(uint32_t phase, uint32_t length);  // null: forgotten
  // The longest phase with a plan that has just ended, by the last launches, and begins again with
  // this one, or that began behind the same launches in an earlier run; null: there is none.
  PhaseState* BeginsWith(uint64_t signature, const LastLaunches& last);
  // Its plans name the allocation no more.
  void Forget(const Allocation* allocation);
  void ForgetWhatFits();  // more memory is in use now
  void ForgetPlans();     // the budget is another one now
  const std::list<PhaseState>& all() const { return states_; }

 private:
  std::list<PhaseState> states_;  // the last one entered in front
};

}  // namespace atp::shim
