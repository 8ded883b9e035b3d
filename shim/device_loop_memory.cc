// SPDX-License-Identifier: Apache-2.0
// The part of the loop that has to do with earlier and later runs of the program.
#include <algorithm>

#include "shim/device_loop.h"
#include "shim/shimlog.h"

namespace atp::shim {

// Plans what is remembered, as soon as all that it touches is there. It runs when the program's
// launches begin to be its own (PhaseStates::BeginsWith).
void DeviceLoop::PlanRemembered(Lock& lock) {
  // What runs by itself is taken where its period begins; this has to be there before.
  if (recalling_ && job_.busy()) TakePlan(nullptr, 0, lock);
  while (memory_.Waiting() && !job_.busy()) {
    auto recalled = memory_.Next(residency_.live());
    if (!recalled) return;
    const auto length = static_cast<uint32_t>(recalled->period.signatures.size());
    PhaseState* phase = phases_.Enter(recalled->phase, length, phase_);
    if (phase->schedule != nullptr || phase->given_up) continue;
    ATP_LOG_INFO("device %d: a phase of %u launches is remembered from an earlier run", device_,
                 length);
    // Launches before it may look like its first one.
    constexpr uint8_t kTries = 3;
    phase->remembered = kTries;
    phase->beginning = {};
    std::copy_backward(recalled->before.begin(),
                       recalled->before.begin() +
                           std::min(recalled->before.size(), phase->beginning.before.size()),
                       phase->beginning.before.end());
    phase->seconds = std::move(recalled->seconds);
    phase->plain_seconds = recalled->plain_seconds;
    traffic_.meter().Assume(memory_.link());
    recalling_ = true;
    Plan(phase, std::move(recalled->period), Wanted());
    if (turns_) TakePlan(nullptr, 0, lock);
  }
}

// The program has just launched what a remembered phase launches, on memory of its own (another
// batch size): one lap of it is enough, where the detector waits for a second.
void DeviceLoop::PlanKnownShape(uint64_t signature, Lock& lock) {
  uint32_t number = 0;
  const protocol::LearnedPhase* known = memory_.LapJustEnded(&number);
  if (known == nullptr || job_.busy()) return;
  const auto length = static_cast<uint32_t>(known->launches.size());
  const Recorder::Period lap = recorder_.Last(length, {}, residency_.live());
  if (!lap.usable || lap.signatures.front() != signature) return;  // the next one does not begin
  PhaseState* phase = phases_.Enter(LoopMemory::kFirstShape + number, length, phase_);
  if (phase->schedule != nullptr || phase->fits || phase->given_up) return;
  ATP_LOG_INFO("device %d: a phase of %u launches is like one of an earlier run", device_, length);
  phase->seconds = memory_.SecondsOf(number, lap);
  traffic_.meter().Assume(memory_.link());
  RequestPlan(phase, /*periods=*/1, lock);
}

// What atpd thinks better than the choices in force is tried on the program as it runs.
void DeviceLoop::TryTuning(double seconds, Lock& lock) {
  TuningTrial& tuning = memory_.tuning();
  if (job_.busy()) return;
  const uint64_t phase = uint64_t{phase_->phase} << 32 | phase_->length;
  switch (tuning.Took(phase, schedule_.get(), seconds)) {
    case TuningTrial::Do::kNothing:
      return;
    case TuningTrial::Do::kStart:
      before_trial_ = schedule_;
      return RequestPlan(phase_, period_, lock);
    case TuningTrial::Do::kKeep:
      record_.Note(false, "a plan by other choices was faster in a trial, and stays");
      before_trial_.reset();
      return;
    case TuningTrial::Do::kRollBack:
      record_.Note(false, "a plan by other choices was no faster in a trial");
      phase_->schedule = phase_->best = std::move(before_trial_);
      Adopt(phase_, 0, lock);
      return;
  }
}

void DeviceLoop::TellMemory(bool at_once) {
  memory_.Tell(phases_, traffic_.meter().Known(), at_once);
}

}  // namespace atp::shim
