// SPDX-License-Identifier: Apache-2.0
// Plans a period away from the launching thread (or at once, where the program's thread plays all
// parts in virtual time).
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_set>

#include "shim/recompute_gain.h"
#include "shim/recorder.h"
#include "shim/repeatable.h"
#include "shim/schedule.h"

namespace atp::shim {

// A plan holds for so many periods where launches reach farther from one to the next.
inline constexpr unsigned kPeriodsAhead = 32;

struct PlanInput {
  Recorder::Period period;
  policy::LinkRates link;
  bool durations_known = false;  // those in `period`; otherwise they are assumed
  // Touches of unknown reach count as all of their allocations, if that can be planned.
  bool whole = false;
  bool first = false;  // nothing has been planned for this phase: whole, where reaches are guesses
  // What a period by whole allocations takes, 0 = not known: a plan by parts has to promise more.
  double whole_seconds = 0;
  // The plan that runs, where launches reach farther from period to period: another one is made
  // only when they touch other ranges by now.
  std::shared_ptr<const Schedule> grown_from;
  double below_seconds = 0;  // another plan has to promise less; 0 = whatever it promises
  uint64_t capacity = 0;
  uint64_t piece_bytes = 0;
  uint64_t frees = 0;        // of the loop when the request was made
  uint32_t phase = 0;        // that it is made for
  bool read_mostly = false;  // what the period only reads may leave without a copy
  double duration_spread = 0, call_seconds = 0, link_scale = 1;  // protocol::Tuning
  bool trial = false;
  bool touches = true;  // what stays is touched now and then
  bool reach = true;    // launches' reaches are found from their PTX (kernel_reach.h)
  bool sight = true;    // and else guessed from what the period shows; false: whole allocations
  bool find_repeatable = false;                  // ATP_RECOMPUTE
  std::shared_ptr<const Repeatable> repeatable;  // of the period, by MakeSchedule
  bool drop = false;                             // what these have written may be dropped
  std::unordered_set<uint64_t> passed;           // Again::key
};

struct PlanOutput {
  std::shared_ptr<const Schedule> schedule;  // null: nothing to do, or `why` says what does not fit
  // All that the period touches fits. What it needs comes by itself and stays; making room for it
  // would only take away what the next phase needs.
  bool fits = false;
  bool same = false;           // the plan that runs serves still
  double promise_seconds = 0;  // of another one that did not promise less; 0: none was made
  bool grown = false;          // it is for other ranges than the one that runs
  std::string why;
  std::shared_ptr<const Repeatable> repeatable;  // where asked for, in a phase's first plan
  std::optional<RecomputeGain> gain;             // where asked for and durations are known
  double cpu_seconds = 0;                        // that making it took
  uint64_t frees = 0;                            // as in the input
  uint32_t phase = 0, length = 0;                // `length`: launches of the period
};

PlanOutput MakeSchedule(PlanInput input);

class PlanJob {
 public:
  // `inline_planning`: Request returns with the result ready.
  void Request(PlanInput input, bool inline_planning);
  bool busy() const { return state_ != nullptr; }
  // The result, once; false while it is still being made. Holding no lock is fine: the caller's
  // lock serialises.
  bool Take(PlanOutput* output);

 private:
  struct State {
    std::mutex mutex;
    bool ready = false;
    PlanOutput output;
  };
  std::shared_ptr<State> state_;
};

}  // namespace atp::shim
