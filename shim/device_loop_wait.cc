// SPDX-License-Identifier: Apache-2.0
// The part of the loop that has to do with streams, and with a program that waits for them.
#include <algorithm>

#include "shim/device_loop.h"

namespace atp::shim {

void DeviceLoop::OnStreamDestroy(CUstream stream) {
  Lock lock(traffic_.mutex());
  EmptyInbox(lock);
  streams_.Forget(stream);
}

void DeviceLoop::BeforeWait(Wait kind, CUstream stream, bool per_thread, CUevent event) {
  if (!turns_ || mode_.load(std::memory_order_relaxed) != Mode::kWatch) return;
  Lock lock(traffic_.mutex());
  if (!traffic_.active() && !demand_.serving()) return;
  const LaunchMark mark = streams_.Awaited(kind, stream, per_thread, event);
  if (mark.count > 0) executor_->AwaitEvents(lock, {mark.events.data(), mark.count});
}

bool DeviceLoop::WaitForProgram() {
  if (mode_.load(std::memory_order_relaxed) != Mode::kWatch) return false;
  Lock lock(traffic_.mutex());
  if (!traffic_.active()) return false;
  const std::vector<CUevent> events = streams_.Everything();
  if (events.empty()) return false;
  if (turns_) executor_->AwaitEvents(lock, events);
  lock.unlock();
  return std::all_of(events.begin(), events.end(),
                     [&](CUevent event) { return hints_.Synchronize(event); });
}

}  // namespace atp::shim
