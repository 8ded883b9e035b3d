// SPDX-License-Identifier: Apache-2.0
// The part of the loop that has to do with streams: what a launch waits for there, what is recorded
// behind it, and a program that waits for them.
#include <algorithm>
#include <utility>

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

// Waits until `done`, or until the plan that it is a question of has ended. False: too long.
bool DeviceLoop::AwaitInPlan(const std::function<bool()>& done, Lock& lock) {
  const auto over = [&, generation = generation_] {
    return generation != generation_ || !traffic_.active() || done();
  };
  return over() || executor_->Await(lock, over);
}

// What the launch needs has been issued; `arriving`: it is to wait on its stream for these.
void DeviceLoop::HoldForFetches(uint64_t period, uint32_t position, Traffic::FetchEvents* arriving,
                                Lock& lock) {
  bool news = false;
  const uint64_t generation = generation_, needed = traffic_.Need(period, position, &news);
  // Waking all movers takes longer than all else here: they stand in line for the lock then.
  if (news) executor_->Changed();
  const auto issued = [&] { return traffic_.FetchesIssued(needed); };
  if (!AwaitInPlan(issued, lock)) return LetGo("a fetch did not start in time", lock);
  const bool ended = generation != generation_ || !traffic_.active();
  if (ended || !traffic_.HasFetches(period, position)) return;
  *arriving = traffic_.LastFetches(needed);
}

// Without the lock where it can: the driver may hold a thread up here, and another one's launch
// must not wait for that. An event that has been recorded anew meanwhile stands behind a later
// fetch, which is on its way too.
void DeviceLoop::AwaitOnStream(const LaunchView& launch, Traffic::FetchEvents* arriving) {
  const unsigned count = std::exchange(arriving->count, 0);
  for (unsigned i = 0; i < count; ++i) {
    hints_.StreamWait(launch.stream, launch.per_thread, arriving->events[i]);
  }
}

void DeviceLoop::AfterLaunch(const LaunchView& launch) {
  if (launched_.generation == 0 && launched_.demand == 0) return;
  if (launched_.demand != 0) {
    if (!demand_.After(launch, launched_.demand)) return;
    Lock lock(traffic_.mutex());
    demand_.Awaited();
    return executor_->Changed();
  }
  Lock lock(traffic_.mutex());
  if (launched_.generation != generation_ || !traffic_.active()) return;
  timer_.End(launched_.position, launch.stream, launch.per_thread);
  if (WantsShadow(launch, launched_.position) && !RunShadow(launch, lock)) return;
  if (launched_.position + 1 == schedule_->length) {
    timer_.Finish();
    record_.SubmittedWhole();
  }
  if (launched_.flagged) MarkLastUse(lock);
}

// Events behind the launch, on all streams, tell the movers that what it was the last to use may
// leave. They are recorded without the lock: nobody reads the slot until its number is told, and
// nobody else writes it. A plan that has begun meanwhile may have given its events to another
// launch: their record stands behind more than it has to.
void DeviceLoop::MarkLastUse(Lock& lock) {
  LaunchMark mark = traffic_.MarkSlot(launched_.flag_sequence);
  const ProgramStreams::List streams = streams_.Prepare(&mark);
  traffic_.MarkSlot(launched_.flag_sequence).events = mark.events;
  lock.unlock();
  streams_.Mark(streams, &mark);
  lock.lock();
  if (launched_.generation != generation_ || !traffic_.active()) return;
  traffic_.MarkSlot(launched_.flag_sequence) = mark;
  traffic_.MarkRecorded(launched_.flag_sequence);
  executor_->Changed();
}

}  // namespace atp::shim
