// SPDX-License-Identifier: Apache-2.0
// Finds the period in a stream of launch signatures. One signature = one launch, identities
// relative to allocations already folded in by the caller (64-bit hash). Amortised O(1) per event,
// bounded memory, one thread.
//
// Locks at the last launch of the second equal period (or earlier where a known phase comes back).
// Of nested repetitions the longest that was seen twice wins, for instance the step and not the
// micro-batches in it; until then the inner one may be locked. A period once found is a named
// phase: after launches that belong to none (logging, a first evaluation) it is recognised by a few
// launches in a row, in the place where it goes on. Steps drawn from several lengths become one
// phase each, also when no length ever runs twice in a row; phases that begin alike are told apart
// at the first launch that differs, without leaving the lock. Method: Rabin-Karp hashes over the
// stream.
#pragma once

#include <cstdint>
#include <memory>

namespace atp::policy {

struct PeriodState {
  bool locked = false;
  uint32_t length = 0;    // launches in a period
  uint32_t position = 0;  // of the launch just fed, 0 .. length-1, when locked
  // Whole periods of this phase in a row. At position 0 a value above 0 says that the last `length`
  // launches before this one were exactly one period of this phase.
  uint64_t period = 0;
  // This lap has been followed from its position 0: at the last position, the last `length`
  // launches (this one included) are exactly one period of this phase.
  bool whole = false;
  // Which named phase (train, evaluate, ...); never reused. May change at any position, and the
  // length with it: what the caller keeps per phase must be checked at each launch.
  uint32_t phase = 0;
};

class PeriodDetector {
 public:
  struct Options {
    uint32_t max_length = 1u << 17;
    uint32_t equal_periods = 2;  // lock after so many equal ones
  };
  PeriodDetector();
  explicit PeriodDetector(const Options& options);
  ~PeriodDetector();
  // Feeds the next launch; the answer describes it. On a break `locked` turns false until the next
  // lock. Allocates only when it finds a phase that it has not known before.
  PeriodState Feed(uint64_t signature);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace atp::policy
