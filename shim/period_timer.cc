// SPDX-License-Identifier: Apache-2.0
#include "shim/period_timer.h"

#include <algorithm>

namespace atp::shim {

void PeriodTimer::Start(uint32_t length) {
  while (begin_.size() < length) {
    begin_.push_back(port_->NewEvent());
    end_.push_back(port_->NewEvent());
  }
  length_ = length;
  measuring_ = length > 0;
  collecting_ = false;
}

void PeriodTimer::Begin(uint32_t position, CUstream stream, bool per_thread) {
  if (measuring_ && position < length_) port_->Record(begin_[position], stream, per_thread);
}

void PeriodTimer::End(uint32_t position, CUstream stream, bool per_thread) {
  if (measuring_ && position < length_) port_->Record(end_[position], stream, per_thread);
}

bool PeriodTimer::Collect(std::vector<double>* seconds) {
  if (!collecting_) return false;
  // Streams may finish in any order: all must have.
  for (uint32_t i = length_; i-- > 0;) {
    if (!port_->Done(end_[i])) return false;
  }
  seconds->resize(length_);
  offsets_.resize(length_);
  for (uint32_t i = 0; i < length_; ++i) {
    (*seconds)[i] = std::max(0.0, port_->Elapsed(begin_[i], end_[i]));
    offsets_[i] = i == 0 ? 0 : port_->Elapsed(begin_[0], begin_[i]);
  }
  collecting_ = false;
  return true;
}

}  // namespace atp::shim
