// SPDX-License-Identifier: Apache-2.0
#include "shim/plain_clock.h"

#include <algorithm>

namespace atp::shim {

PlainClock::Begin& PlainClock::Next() {
  if (ring_.size() < kRing) ring_.resize(kRing);
  return ring_[count_++ % kRing];
}

void PlainClock::Launch(const LaunchView& launch) {
  Begin& begin = Next();
  if (begin.event == nullptr) begin.event = port_->NewEvent();
  port_->Record(begin.event, launch.stream, launch.per_thread);
  begin.known = true;
}

void PlainClock::Miss() { Next().known = false; }

uint32_t PlainClock::Planned(uint32_t length, uint64_t periods) {
  const uint64_t seen = std::min(count_, kRing);
  const uint64_t whole = seen == 0 || length == 0 ? 0 : (seen - 1) / length;
  const uint64_t wanted = std::min<uint64_t>({whole, periods, kMostPeriods});
  periods_ = 0;
  while (periods_ < wanted && At(0).known && At(uint64_t{periods_ + 1} * length).known) ++periods_;
  length_ = periods_ > 0 ? length : 0;
  return periods_;
}

uint32_t PlainClock::Collect(Seconds* seconds) {
  if (length_ == 0 || !port_->Done(At(0).event)) return 0;
  for (uint32_t i = 0; i < periods_; ++i) {
    (*seconds)[i] =
        port_->Elapsed(At(uint64_t{i + 1} * length_).event, At(uint64_t{i} * length_).event);
  }
  length_ = 0;
  return periods_;
}

}  // namespace atp::shim
