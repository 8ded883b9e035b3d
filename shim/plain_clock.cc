// SPDX-License-Identifier: Apache-2.0
#include "shim/plain_clock.h"

#include <algorithm>

namespace atp::shim {

void PlainClock::Launch(const LaunchView& launch) {
  if (ring_.size() < kRing) ring_.resize(kRing);
  CUevent& event = ring_[count_++ % kRing];
  if (event == nullptr) event = port_->NewEvent();
  port_->Record(event, launch.stream, launch.per_thread);
}

uint32_t PlainClock::Planned(uint32_t length, uint64_t periods) {
  const uint64_t seen = std::min(count_, kRing);
  const uint64_t whole = seen == 0 || length == 0 ? 0 : (seen - 1) / length;
  periods_ = static_cast<uint32_t>(std::min<uint64_t>({whole, periods, kMostPeriods}));
  length_ = periods_ > 0 ? length : 0;
  return periods_;
}

uint32_t PlainClock::Collect(Seconds* seconds) {
  if (length_ == 0 || !port_->Done(At(0))) return 0;
  for (uint32_t i = 0; i < periods_; ++i) {
    (*seconds)[i] = port_->Elapsed(At(uint64_t{i + 1} * length_), At(uint64_t{i} * length_));
  }
  length_ = 0;
  return periods_;
}

}  // namespace atp::shim
