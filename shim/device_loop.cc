// SPDX-License-Identifier: Apache-2.0
#include "shim/device_loop.h"

#include <algorithm>
#include <thread>

#include "shim/card_share.h"
#include "shim/device.h"
#include "shim/settings.h"
#include "shim/shimlog.h"
#include "shim/tracker.h"

namespace atp::shim {

thread_local constinit DeviceLoop::Launched DeviceLoop::launched_;

namespace {

// Durations are measured again every so many periods: clocks and neighbours change. Not in the
// first period of a plan, in which what the last plan left behind may still fault.
constexpr uint64_t kMeasureEvery = 32;
constexpr uint64_t kMeasuredFirst = 1;
// A new plan is worth making when the period's measured time has moved by this much.
constexpr double kDrift = 0.03;

// The link is known by what a plan moves: a plan made before both directions at once have been
// measured is made again. In this period of it, and whenever durations are measured.
constexpr uint64_t kLinkIsKnown = 4;

// Where launches reach farther from period to period.
constexpr uint64_t kLookAgain = kPeriodsAhead / 2;

constexpr const char* kTooManyStreams = "more than 8 streams launch kernels";

double Sum(const std::vector<double>& values) {
  double sum = 0;
  for (double v : values) sum += v;
  return sum;
}

}  // namespace

DeviceLoop::DeviceLoop(int device, CUcontext context)
    : device_(device),
      context_(context),
      budget_(DeviceBudget(device)),
      hints_(context, device),
      traffic_(&hints_, budget_ - TuningTrial(budget_).HeadRoom()),
      timer_(&hints_),
      memory_(budget_),
      streams_(&hints_),
      plain_(&hints_),
      demand_(&hints_, this, &plain_) {
  traffic_.Observe(this);
}

void DeviceLoop::OnAlloc(Allocation* allocation) {
  Lock lock(traffic_.mutex());
  allocation->shown = true;
  managed_bytes_ += allocation->mapped_bytes;
  phases_.ForgetWhatFits();
  memory_.Changed();
  if (mode_ == Mode::kWatch) residency_.Add(allocation);
  if (mode_ == Mode::kFits && managed_bytes_ > Capacity() &&
      Settings().policy == Policy::kLearned) {
    mode_ = StartWatching() ? Mode::kWatch : Mode::kOff;
  }
}

// The budget is another one: plans were made for the old one. What they moved stays where it is
// until the next plan, which is made where the period begins again.
void DeviceLoop::FollowShare() {
  Lock lock(traffic_.mutex());
  share_seen_ = ShareVersion();
  const uint64_t budget = DeviceBudget(device_);
  if (budget == budget_) return;
  budget_ = budget;
  memory_.tuning().Follow(budget);
  traffic_.SetCapacity(budget - memory_.tuning().HeadRoom());
  if (mode_ == Mode::kFits && managed_bytes_ > Capacity()) {
    mode_ = StartWatching() ? Mode::kWatch : Mode::kOff;
    return;
  }
  if (mode_ != Mode::kWatch) return;
  EmptyInbox(lock);
  ++happened_;
  ++frees_;  // a plan that is being made is for the old one
  if (schedule_ != nullptr) Break();
  phases_.ForgetPlans();
  memory_.Changed();
  record_.Budget(budget_, traffic_.capacity());
}

bool DeviceLoop::StartWatching() {
  if (!warned_) {
    warned_ = true;
    ATP_LOG_WARN(
        "device %d: %s of managed and %s of plain memory exceed the budget of %s less %s of "
        "head-room: memory will move",
        device_, HumanBytes(managed_bytes_).text(), HumanBytes(NativeBytes(device_)).text(),
        HumanBytes(budget_).text(), HumanBytes(budget_ - traffic_.capacity()).text());
  }
  record_.Open(device_, budget_, traffic_.capacity());
  inbox_.Open();
  if (executor_ == nullptr) {
    if (!hints_.Open()) return false;
    StartExecutor();
  }
  // While all fits, nobody asks where memory is.
  g_tracker.ForEach(nullptr, [&](Record* record) {
    if (record->device == device_ && record->shown) residency_.Add(record);
  });
  memory_.Ask(device_, traffic_.capacity(), residency_.live(), turns_);
  return true;
}

void DeviceLoop::StartExecutor() {
  const LaneCalls lanes = DriverHints::Lanes();
  turns_ = lanes.wait_any != nullptr && !Settings().real_threads;
  constexpr uint32_t kLanesPerDevice = 8;
  const uint32_t first_lane = 1 + static_cast<uint32_t>(device_) * kLanesPerDevice;
  if (Settings().Disabled(kDisableMoreMovers)) traffic_.UseEvictMovers(1);
  const std::vector<Mover*> movers = demand_.Share(traffic_.movers());
  executor_ = turns_ ? MakeLaneExecutor(lanes, movers, first_lane)
                     : MakeThreadExecutor(&traffic_.mutex(), hints_.Threads(), movers);
}

void DeviceLoop::OnReuse(Allocation* allocation, uint64_t bytes) {
  Lock lock(traffic_.mutex());
  allocation->bytes = bytes;
}

void DeviceLoop::OnFree(Allocation* allocation) {
  Lock lock(traffic_.mutex());
  EmptyInbox(lock);  // it names allocations
  ++happened_;
  // Paid before the free, unless the driver refuses; nobody can need it any more.
  if (debts_.any() && Pay(UINT32_MAX, lock) != CUDA_SUCCESS) debts_.Void();
  allocation->shown = false;
  ++frees_;
  managed_bytes_ -= std::min(managed_bytes_, allocation->mapped_bytes);
  memory_.Freeing(phases_, allocation);
  phases_.Forget(allocation);
  if (schedule_ != nullptr && (traffic_.Uses(allocation) || phase_->schedule == nullptr)) Break();
  demand_.Forget(allocation);
  AwaitQuiet(lock);  // a mover may be inside the driver with this very range
  if (allocation->read_mostly) EndReadMostly(allocation, lock);  // the addresses may be used again
  if (mode_ != Mode::kFits) residency_.Remove(allocation);
}

// Takes the lock, and sees first what others have left. False: the launch may go, without it. While
// a plan runs, that is one for which the plan has nothing to do. While none runs, and nothing that
// the launch needs has to be fetched, nothing has to be decided before it is submitted: then a
// thread that finds the lock taken, or more left than it should spend its time on, leaves its
// launch there too and goes on. Where there is no room for it any more it is not seen at all: what
// launches that fast from several threads has no period. The thread has to come in where it plays
// the movers (their clocks follow its own), and with launches of more touches than the inbox takes.
bool DeviceLoop::Enter(const LaunchView& launch, Lock& lock) {
  const bool planned = planned_.load(std::memory_order_relaxed);
  if (planned && !turns_ && !lock.try_lock() && Pass(launch)) return false;
  const bool decides = turns_ || planned || launch.touch_count > LaunchInbox::kTouches;
  if (!decides && lock.try_lock() && TakeInbox(lock)) return mode_ == Mode::kWatch;
  if (!decides && (!demand_.serving() || demand_.NeedsNothing(launch))) {
    inbox_.Put(launch);
    return false;
  }
  if (!lock.owns_lock()) lock.lock();
  EmptyInbox(lock);
  return mode_ == Mode::kWatch;
}

bool DeviceLoop::TakeInbox(Lock& lock) {
  return inbox_.Take([&](const LaunchView& launch) { LearnLate(launch, lock); });
}

void DeviceLoop::EmptyInbox(Lock& lock) {
  while (!TakeInbox(lock)) std::this_thread::yield();
}

// A launch that has gone on may be learned from, but no plan can begin with it. One that has begun
// meanwhile did not expect it: threads that launch at the same time have no order to rely on.
void DeviceLoop::LearnLate(const LaunchView& launch, Lock& lock) {
  if (mode_ != Mode::kWatch) return;
  ++happened_;
  if (schedule_ != nullptr) Break();
  if (!streams_.Remember(launch.stream, launch.per_thread)) return TurnOff(kTooManyStreams, lock);
  detector_.Feed(launch.signature);
  Shift(launch.signature);
  plain_.Miss();
  if (demand_.Late(launch)) executor_->Changed();
  Keep(launch, lock);
}

// What a plan may be made of, and what the launch itself changes.
void DeviceLoop::Keep(const LaunchView& launch, Lock& lock) {
  if (schedule_ == nullptr && believed_ &&
      !demand_.serving()) {  // the driver moves pages by itself
    residency_.ForgetAll();
    believed_ = false;
  }
  recorder_.Record(launch);
  memory_.Launched(launch.identity);
  ForEachUse(launch, [&](Allocation* a, bool writes) {
    if (!writes || !a->read_mostly) [[likely]]
      return;
    if (a->read_mostly_broken < UINT8_MAX) ++a->read_mostly_broken;
    record_.EndedReadMostly(*a);
    EndReadMostly(a, lock);
  });
}

void DeviceLoop::BeforeLaunch(const LaunchView& launch) {
  launched_.generation = launched_.demand = 0;
  launched_.expected = false;
  ShareTick(device_);
  if (ShareVersion() != share_seen_.load(std::memory_order_relaxed)) FollowShare();
  if (mode_.load(std::memory_order_acquire) != Mode::kWatch || launch.capturing) return;
  Lock lock(traffic_.mutex(), std::defer_lock);
  Traffic::FetchEvents arriving;
  if (Enter(launch, lock)) Decide(launch, &arriving, lock);
  if (lock.owns_lock()) lock.unlock();
  AwaitOnStream(launch, &arriving);
}

void DeviceLoop::Decide(const LaunchView& launch, Traffic::FetchEvents* arriving, Lock& lock) {
  demand_.Expect(launch.signature);
  const uint64_t happened = ++happened_;
  executor_->CatchUp(lock);
  if (schedule_ != nullptr && !traffic_.active()) return TurnOff("the driver refuses them", lock);
  if (!streams_.Remember(launch.stream, launch.per_thread)) return TurnOff(kTooManyStreams, lock);

  if (schedule_ == nullptr) PlanRemembered(lock);
  const bool stepped = Step(launch.signature);
  const policy::PeriodState state = detector_.Feed(launch.signature);
  Follow(launch.signature, stepped, lock);
  if (schedule_ == nullptr) PlanKnownShape(launch.signature, lock);
  if (schedule_ == nullptr) plain_.Launch(launch);
  // Where others have passed already, it is too late for another plan to begin with this launch.
  uint32_t position = position_;
  if (state.locked && state.position == 0 && place_.CloseAt(position)) {
    AtPeriodStart(state, lock);
    position = position_;
  }
  if (mode_ == Mode::kOff) return;
  Keep(launch, lock);
  if (happened != happened_) return;
  if (schedule_ == nullptr) return ServeOnDemand(launch, arriving, lock);
  if (!traffic_.active()) return;
  if (position == 0) {
    record_.Iteration({hints_.NowNs(), static_cast<uint32_t>(statistics_.plans), phase_->phase,
                       managed_bytes_, NativeBytes(device_)});
  }

  // Others may launch while this thread waits.
  const uint64_t generation = generation_, period = period_;
  HoldForFetches(period, position, arriving, lock);
  if (generation != generation_ || !traffic_.active()) return;
  launched_.generation = generation;
  launched_.position = position;
  launched_.flagged = schedule_->flag_index[position] != Schedule::kNotFlagged;
  if (launched_.flagged) {
    launched_.flag_sequence = period * schedule_->flagged + schedule_->flag_index[position];
    const auto free = [&] { return traffic_.MarkFree(launched_.flag_sequence); };
    if (!AwaitInPlan(free, lock)) LetGo("movers are a period behind", lock);
    if (generation != generation_ || !traffic_.active()) return;
  }
  FollowDrops(launch, period, position, arriving, lock);
  if (generation != generation_ || !traffic_.active()) return;
  if (timer_.measuring()) {
    AwaitOnStream(launch, arriving);  // what is measured begins behind it
    record_.Launch(position, launch, traffic_.resident());
  }
  timer_.Begin(position, launch.stream, launch.per_thread);
  const bool last = position + 1 == schedule_->length;
  if (!launched_.flagged && !timer_.measuring() && !last && !WantsShadow(launch, position))
    launched_.generation = 0;  // nothing follows
  OpenPlace(generation, position);
}

// The program is followed by the plan's own launches: what the detector calls the phase may change
// while they go on (a longer period is found around it). A planned phase that has just ended and
// begins again is taken up without waiting for the detector.
void DeviceLoop::Follow(uint64_t signature, bool stepped, Lock& lock) {
  if (schedule_ != nullptr && !stepped) {
    position_ = position_ + 1 == schedule_->length ? 0 : position_ + 1;
    if (schedule_->signatures[position_] != signature) {
      Break();
    } else if (position_ == 0) {
      AtPlannedPeriod(lock);
    }
  }
  if (schedule_ == nullptr && mode_ == Mode::kWatch) {
    if (PhaseState* phase = phases_.BeginsWith(signature, last_)) Adopt(phase, 0, lock);
  }
  Shift(signature);
}

void DeviceLoop::Shift(uint64_t signature) {
  std::rotate(last_.begin(), last_.begin() + 1, last_.end());
  last_.back() = signature;
}

void DeviceLoop::AtPlannedPeriod(Lock& lock) {
  ++period_;
  ++statistics_.planned_periods;
  ++phase_->planned_periods;
  if (memory_.IsTimeToTell(statistics_.planned_periods)) TellMemory(/*at_once=*/false);
  const double took = Judge(lock);
  if (schedule_ == nullptr) return;
  FollowShadow();
  TakePlan(phase_, 0, lock);
  if (schedule_ == nullptr) return;
  if (schedule_ != phase_->schedule) Adopt(phase_, 0, lock);  // it was ready in the middle of one
  if (schedule_ == nullptr) return;
  std::vector<double> seconds;
  const bool measured = timer_.Collect(&seconds) && seconds.size() == phase_->length;
  if (measured) {
    record_.Measured({&seconds, &timer_.offsets(), hints_.DoneAtNs(timer_.first())},
                     traffic_.meter().Link(), traffic_.meter().EndLog());
  }
  std::vector<double>& known = phase_->seconds;
  const bool drifted =
      measured && (known.empty() || std::abs(Sum(seconds) - Sum(known)) > kDrift * Sum(known));
  if (drifted) known = std::move(seconds);
  const bool may_plan = !phase_->settled && !job_.busy();
  if (may_plan && WantsDrops()) {
    phase_->asked_for_drops = true;
    RequestPlan(phase_, period_, lock, {nullptr, phase_->best_seconds});
  } else if (may_plan && drops_off_ && !schedule_->drops.empty()) {
    RequestPlan(phase_, period_, lock);
  } else if (may_plan && (drifted || phase_->Missed(took))) {
    RequestPlan(phase_, period_, lock, {nullptr, PhaseState::kWorthAPlan * took});
  } else if (may_plan && (measured || period_ == kLinkIsKnown) && phase_->best_seconds > 0 &&
             LinkIsAnother()) {
    RequestPlan(phase_, period_, lock, {nullptr, PhaseState::kWorthAPlan * phase_->best_seconds});
  } else if (schedule_->grows && period_ % kLookAgain == 0 && !job_.busy()) {
    RequestPlan(phase_, period_, lock, {schedule_});
  } else if (period_ % kMeasureEvery == kMeasuredFirst) {
    timer_.Start(schedule_->length);
    record_.StartMeasuring(schedule_, Capacity());
    traffic_.meter().StartLog(LoopRecord::kMostMoves);
  }
}

// The detector sees a period begin. One that is followed already has been looked after; a longer
// one takes its place.
void DeviceLoop::AtPeriodStart(const policy::PeriodState& state, Lock& lock) {
  ++statistics_.periods;
  PhaseState* phase = phases_.Enter(state.phase, state.length, phase_);
  if (schedule_ != nullptr && phase_->length >= phase->length) return;
  const uint64_t happened = happened_;
  TakePlan(phase, state.period, lock);
  if (mode_ == Mode::kOff || happened != happened_) return;
  if (phase_ == phase && schedule_ != nullptr) return;
  if (phase->schedule != nullptr) {
    Adopt(phase, state.period, lock);
  } else if (!phase->fits && !phase->given_up && state.period > 0 && !job_.busy()) {
    // Only after a whole period do the last launches belong together.
    RequestPlan(phase, state.period, lock);
  }
}

// Runs the phase's plan from this launch on, the first one of a period. `plain_periods` of them
// have just run without a plan.
void DeviceLoop::Adopt(PhaseState* phase, uint64_t plain_periods, Lock& lock) {
  const bool replaces = schedule_ != nullptr;
  ClosePlace();
  if (replaces && phase == phase_) {
    KeepLastOfBefore();
  } else {
    before_.schedule.reset();
  }
  traffic_.Deactivate();
  demand_.Stop();
  if (!Quiet()) {
    // Others may launch meanwhile: they must find no plan rather than half of one.
    schedule_.reset();
    planned_ = false;
    phase_ = nullptr;
    const uint64_t happened = happened_;
    const bool quiet = executor_->Await(lock, [&] { return Quiet(); });
    if (!quiet || happened != happened_ || mode_ != Mode::kWatch) {
      if (replaces && schedule_ == nullptr) Break();
      return;
    }
  }
  if (!replaces) {
    const uint32_t plain = plain_.Planned(phase->length, plain_periods);
    record_.PlainIterations(plain, phase->phase);
  }
  phase_ = phase;
  if (phase->remembered > 0) --phase->remembered;
  schedule_ = phase->schedule;
  planned_ = true;
  ++generation_;
  period_ = 0;
  position_ = 0;

  // What this period writes and an earlier one only read.
  for (const Placed& t : schedule_->tensors) {
    if (t.written && t.allocation->read_mostly) EndReadMostly(t.allocation, lock);
  }
  // A plan has each range leave at once; in truth that takes the driver a moment. Half of the
  // head-room lends the next fetch the room until then.
  traffic_.SetRoom(Capacity() + memory_.tuning().HeadRoom() / 2);
  Residency::Approach approach = residency_.ToStartOf(*schedule_, PieceBytes(budget_));
  streams_.Mark(streams_.Prepare(&traffic_.StartMark()), &traffic_.StartMark());
  debts_.Follow(schedule_);
  traffic_.Activate(schedule_, std::move(approach.evict), std::move(approach.fetch),
                    approach.resident);
  believed_ = true;
  boundaries_ = 0;
  phase->slower = 0;
  FollowShadow();
  executor_->Changed();
}

void DeviceLoop::OnMoved(const Action& action, bool to_device) {
  if (action.drop == 0)
    record_.Moved(action, to_device, /*copied=*/!action.clean || !IsDuplicated(action));
  if (to_device) {
    residency_.MovedToDevice(action.allocation, action.offset, action.bytes);
  } else {
    residency_.MovedToHost(action.allocation, action.offset, action.bytes, action.clean);
  }
}

bool DeviceLoop::IsDuplicated(const Action& action) {
  return residency_.IsDuplicated(action.allocation, action.offset, action.bytes);
}

// A write to advised memory costs a fault for each page: the advice goes first.
void DeviceLoop::EndReadMostly(Allocation* allocation, Lock& lock) {
  // A mover that is inside the driver may be about to advise it again.
  AwaitQuiet(lock);
  SetReadMostly(allocation, false);
  hints_.EndReadMostly(allocation->address, allocation->mapped_bytes);
  residency_.Collapse(allocation);
}

// The phase has ended, or what it uses is gone. Its state is kept.
void DeviceLoop::Break() {
  ++statistics_.breaks;
  ClosePlace();
  traffic_.Deactivate();
  timer_.Drop();
  schedule_.reset();
  planned_ = false;
  phase_ = nullptr;
  plain_.Forget();
  record_.Broken();
}

}  // namespace atp::shim
