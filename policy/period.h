// SPDX-License-Identifier: Apache-2.0
// Finds the period in a stream of launch signatures. One signature = one launch, identities relative to
// allocations already folded in by the caller (64-bit hash). Amortised O(1) per event, bounded memory, one thread.
#pragma once

#include <cstdint>
#include <memory>

namespace atp::policy {

struct PeriodState {
  bool locked = false;
  uint32_t length = 0;    // launches in a period
  uint32_t position = 0;  // of the launch just fed, 0 .. length-1, when locked
  uint64_t period = 0;    // periods completed since the lock
  uint32_t phase = 0;     // which named phase (train, evaluate, ...)
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
  // Feeds the next launch; the answer describes it. On a break `locked` turns false until the next lock.
  PeriodState Feed(uint64_t signature);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace atp::policy
