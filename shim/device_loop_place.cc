// SPDX-License-Identifier: Apache-2.0
// Launches that pass in a plan without the lock, and how the loop learns of them.
#include "shim/device_loop.h"

namespace atp::shim {

// Without the lock. True: it is the plan's next launch, nothing has to be done for it, and nobody
// has to look at it now.
bool DeviceLoop::Pass(const LaunchView& launch) {
  if (!streams_.Knows(launch.stream, launch.per_thread)) return false;
  bool ends_read_mostly = false;
  ForEachUse(launch,
             [&](Allocation* a, bool writes) { ends_read_mostly |= writes && IsReadMostly(a); });
  return !ends_read_mostly && place_.Pass(launch.signature) != PlanPlace::kNowhere;
}

// Under the lock, the launch at hand: the same way, if nothing has to be done for it either, so
// that others may follow it at once. False: the place is closed until OpenPlace. The loop knows of
// all launches before it in both cases.
bool DeviceLoop::Step(uint64_t signature) {
  if (!place_.open()) return false;
  const uint32_t position = place_.PassLocked(signature);
  if (position == PlanPlace::kNowhere) {
    ClosePlace();
    return false;
  }
  Settle(position - 1);
  position_ = position;
  return true;
}

// Launches up to `newest` have passed. They were what the plan says.
void DeviceLoop::Settle(uint32_t newest) {
  while (position_ < newest) {
    ++position_;
    detector_.Feed(schedule_->signatures[position_]);
    Shift(schedule_->signatures[position_]);
    recorder_.Repeat(schedule_->length);
    memory_.Launched(schedule_->identities[position_]);
  }
}

// The launch at `position`, and all before it, have what they need. Not in the first period, whose
// fetches are others than the plan's, nor where each launch is to be seen: to be measured, or
// because its arguments count on.
void DeviceLoop::OpenPlace(uint64_t generation, uint32_t position) {
  const bool newest = generation == generation_ && position == position_ && !place_.open();
  if (!newest || turns_ || period_ == 0 || timer_.measuring() || schedule_->grows) return;
  place_.Open(schedule_, generation, position);
}

}  // namespace atp::shim
