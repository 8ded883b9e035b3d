// SPDX-License-Identifier: Apache-2.0
// From a period that has been seen to the plan of its phase.
#include "shim/device_loop.h"
#include "shim/settings.h"

namespace atp::shim {

// A plan that is ready goes to its phase, and runs at once when that is `now`, which begins here.
void DeviceLoop::TakePlan(PhaseState* now, uint64_t plain_periods, Lock& lock) {
  PlanOutput made;
  if (!job_.Take(&made) || made.frees != frees_) return;
  PhaseState* phase = phases_.Find(made.phase, made.length);
  if (phase != nullptr) phase->fits = made.fits;
  if (made.fits || made.same) return;
  if (made.schedule == nullptr && made.phase >= LoopMemory::kFirstPhase) return;  // a wrong guess
  if (phase == nullptr) return;
  if (made.grown) {  // what earlier plans took is another thing
    phase->settled = false;
    phase->best = nullptr;
    phase->best_seconds = 0;
  }
  if (phase->settled) return;
  if (made.schedule == nullptr) return GiveUp(phase, made.why.c_str());
  phase->schedule = std::move(made.schedule);
  ++statistics_.plans;
  LogPlan(*phase->schedule);
  if (phase == now) Adopt(phase, plain_periods, lock);
}

// The last launches were whole periods of this phase. `grown_from`: another plan is wanted only
// where they touch other ranges than this one is for.
void DeviceLoop::RequestPlan(PhaseState* phase, uint64_t periods, Lock& lock,
                             std::shared_ptr<const Schedule> grown_from) {
  Recorder::Period period = recorder_.Last(phase->length, phase->seconds, residency_.live());
  if (!period.usable) return;
  recalling_ = phase->phase >= LoopMemory::kFirstPhase && phase->schedule == nullptr;
  if (phase->schedule == nullptr) phase->beginning = recorder_.BeginningOf(period.signatures);
  Plan(phase, std::move(period), std::move(grown_from));
  // Where planning takes no time of its own, the plan starts with this very period.
  if (turns_) TakePlan(phase, periods, lock);
}

void DeviceLoop::Plan(PhaseState* phase, Recorder::Period period,
                      std::shared_ptr<const Schedule> grown_from) {
  PlanInput input;
  input.period = std::move(period);
  input.link = traffic_.meter().Link();
  input.durations_known = !phase->seconds.empty();
  if (phase->best != nullptr && !phase->best->by_parts) input.whole_seconds = phase->best_seconds;
  input.whole = phase->whole;
  input.first = phase->schedule == nullptr;
  input.grown_from = std::move(grown_from);
  input.capacity = Capacity();
  input.piece_bytes = PieceBytes(budget_);
  input.duration_spread = memory_.tuning().duration_spread();
  input.call_seconds = memory_.tuning().call_seconds();
  input.trial = memory_.tuning().trying();
  input.frees = frees_;
  input.phase = phase->phase;
  input.read_mostly = hints_.ReadMostlyWorks() && !Settings().Disabled(kDisableReadMostly);
  input.touches = !Settings().Disabled(kDisableTouch);
  job_.Request(std::move(input), turns_);
}

}  // namespace atp::shim
