// SPDX-License-Identifier: Apache-2.0
// From a period that has been seen to the plan of its phase.
#include <algorithm>
#include <cmath>

#include "shim/device.h"
#include "shim/device_loop.h"
#include "shim/settings.h"
#include "shim/tracker.h"

namespace atp::shim {
namespace {

// What the launch that touches the most has to have on the device.
uint64_t LargestLaunch(const policy::SeenPeriod& seen) {
  uint64_t largest = 0;
  std::vector<std::pair<uint32_t, uint64_t>> ranges;  // allocation, bytes of it
  for (const policy::SeenLaunch& launch : seen.launches) {
    ranges.clear();
    for (uint32_t t = launch.first_touch; t < launch.first_touch + launch.touch_count; ++t) {
      const policy::SeenTouch& touch = seen.touches[t];
      const uint64_t whole = seen.allocations[touch.allocation];
      ranges.emplace_back(touch.allocation, touch.bytes == 0 ? whole : touch.bytes);
    }
    std::sort(ranges.begin(), ranges.end());
    uint64_t bytes = 0;
    for (size_t i = 0; i < ranges.size(); ++i) {
      const bool last = i + 1 == ranges.size() || ranges[i + 1].first != ranges[i].first;
      if (last) bytes += RoundUpToGranule(ranges[i].second);
    }
    largest = std::max(largest, bytes);
  }
  return largest;
}

}  // namespace

uint64_t DeviceLoop::Capacity() const {
  const uint64_t room = budget_ - memory_.tuning().HeadRoom();
  return room - std::min(room, NativeBytes(device_) + shadow_bytes_);
}

// A plan that is ready goes to its phase, and runs at once when that is `now`, which begins here.
void DeviceLoop::TakePlan(PhaseState* now, uint64_t plain_periods, Lock& lock) {
  PlanOutput made;
  if (!job_.Take(&made)) return;
  statistics_.planning_seconds += made.cpu_seconds;
  if (made.frees != frees_) return;
  if (made.repeatable != nullptr) LogRepeatable(*made.repeatable);
  if (made.gain) LogGain(*made.gain);
  PhaseState* phase = phases_.Find(made.phase, made.length);
  if (phase != nullptr) {
    phase->fits = made.fits;
    phase->refused_seconds = made.promise_seconds;
  }
  if (made.fits || made.same) return;
  if (made.schedule == nullptr && made.phase >= LoopMemory::kFirstPhase) return;  // a wrong guess
  if (phase == nullptr) return;
  if (made.grown) {  // what earlier plans took is another thing
    phase->settled = false;
    phase->best = nullptr;
    phase->best_seconds = 0;
  }
  // What may still be better is other choices, on trial.
  const bool trial = made.schedule != nullptr && made.schedule->trial;
  if (phase->settled && !trial) return;
  if (made.schedule == nullptr) {
    if (phase->schedule == nullptr || made.grown) return GiveUp(phase, made.why.c_str());
    return record_.Note(false, "no other plan: %s; the one that runs goes on", made.why.c_str());
  }
  phase->schedule = std::move(made.schedule);
  ++statistics_.plans;
  LogPlan(*phase->schedule);
  if (phase == now) Adopt(phase, plain_periods, lock);
}

// The last launches were whole periods of this phase.
void DeviceLoop::RequestPlan(PhaseState* phase, uint64_t periods, Lock& lock, Wanted wanted) {
  Recorder::Period period = recorder_.Last(phase->length, phase->seconds, residency_.live());
  if (!period.usable) return;
  recalling_ = phase->phase >= LoopMemory::kFirstPhase && phase->schedule == nullptr;
  if (phase->schedule == nullptr) phase->beginning = recorder_.BeginningOf(period.signatures);
  Plan(phase, std::move(period), std::move(wanted));
  // Where planning takes no time of its own, the plan starts with this very period.
  if (turns_) TakePlan(phase, periods, lock);
}

void DeviceLoop::Plan(PhaseState* phase, Recorder::Period period, Wanted wanted) {
  StartShadow();
  if (Device* device = DeviceOf(device_)) {
    // With some of it for moves under way.
    const uint64_t largest = LargestLaunch(period.seen), native = NativeBytes(device_);
    const uint64_t least = largest + largest / 4 + native + (budget_ - traffic_.capacity());
    if (least > device->least.load()) device->least.store(least);
  }
  PlanInput input;
  input.period = std::move(period);
  input.link = traffic_.meter().Link();
  input.durations_known = !phase->seconds.empty();
  if (phase->best != nullptr && !phase->best->by_parts) input.whole_seconds = phase->best_seconds;
  input.whole = phase->whole;
  input.first = phase->schedule == nullptr;
  input.grown_from = std::move(wanted.grown_from);
  input.below_seconds = wanted.below_seconds;
  input.capacity = Capacity();
  input.piece_bytes = PieceBytes(budget_);
  input.duration_spread = memory_.tuning().duration_spread();
  input.call_seconds = memory_.tuning().call_seconds();
  input.link_scale = memory_.tuning().link_scale();
  input.trial = memory_.tuning().trying();
  input.frees = frees_;
  input.phase = phase->phase;
  input.read_mostly = hints_.ReadMostlyWorks() && !Settings().Disabled(kDisableReadMostly);
  input.find_repeatable = Settings().recompute != Recompute::kOff;
  input.drop = MayDrop() && shadow_ != nullptr;
  if (input.drop) input.passed = shadow_->Passed();
  input.touches = !Settings().Disabled(kDisableTouch);
  input.reach = !Settings().Disabled(kDisableReach);
  input.sight = !Settings().Disabled(kDisableSight);
  job_.Request(std::move(input), turns_);
}

// Than the one that the plan was made for.
bool DeviceLoop::LinkIsAnother() {
  constexpr double kMoved = 0.15;
  const policy::LinkRates &planned = schedule_->trace->link, now = traffic_.meter().Link();
  const auto moved = [](double a, double b) { return std::abs(a - b) > kMoved * b; };
  const auto both = [](double duplex, double alone) { return duplex > 0 ? duplex : alone; };
  return moved(planned.h2d, now.h2d) || moved(planned.d2h, now.d2h) ||
         moved(both(planned.duplex_h2d, planned.h2d), both(now.duplex_h2d, now.h2d)) ||
         moved(both(planned.duplex_d2h, planned.d2h), both(now.duplex_d2h, now.d2h));
}

}  // namespace atp::shim
