// SPDX-License-Identifier: Apache-2.0
// Measures the launches of one period with events, without ever waiting: begin behind the launch's
// own waits, end behind the launch.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <vector>

#include "shim/mover.h"

namespace atp::shim {

class PeriodTimer {
 public:
  explicit PeriodTimer(HintPort* port) : port_(port) {}

  void Start(uint32_t length);
  bool measuring() const { return measuring_; }
  void Begin(uint32_t position, CUstream stream, bool per_thread);
  void End(uint32_t position, CUstream stream, bool per_thread);
  void Finish() {
    collecting_ |= measuring_;
    measuring_ = false;
  }
  void Drop() { measuring_ = collecting_ = false; }
  // True once, when the finished period's times have arrived; asked again until then.
  bool Collect(std::vector<double>* seconds);
  // Of the period collected last: when each launch began, in seconds after the first one did, and
  // the event behind which that one did.
  const std::vector<double>& offsets() const { return offsets_; }
  CUevent first() const { return begin_.empty() ? nullptr : begin_[0]; }

 private:
  HintPort* port_;
  std::vector<CUevent> begin_, end_;
  std::vector<double> offsets_;
  uint32_t length_ = 0;
  bool measuring_ = false, collecting_ = false;
};

}  // namespace atp::shim
