// SPDX-License-Identifier: Apache-2.0
#include "shim/phase_states.h"

#include <algorithm>
#include <iterator>

namespace atp::shim {
namespace {

bool Names(const std::shared_ptr<const Schedule>& schedule, const Allocation* allocation) {
  return schedule != nullptr &&
         std::any_of(schedule->tensors.begin(), schedule->tensors.end(),
                     [&](const Placed& t) { return t.allocation == allocation; });
}

// Of a beginning that was seen only in part the rest may be anything.
bool ComesBehind(const Recorder::Beginning& beginning, const LastLaunches& last) {
  for (size_t i = last.size(); i-- > 0 && beginning.before[i] != 0 && last[i] != 0;) {
    if (beginning.before[i] != last[i]) return false;
  }
  return true;
}

}  // namespace

bool PhaseState::Missed(double took) {
  constexpr unsigned kLimit = 2;
  const bool longer = refused_seconds > 0 && refused_seconds < kWorthAPlan * took;
  missed = longer ? missed + 1 : 0;
  if (missed < kLimit) return false;
  missed = 0;
  if (schedule == best) best_seconds = took;
  return true;
}

PhaseState* PhaseStates::Enter(uint32_t phase, uint32_t length, const PhaseState* keep) {
  const auto found = std::find_if(states_.begin(), states_.end(),
                                  [&](const PhaseState& s) { return s.Is(phase, length); });
  if (found != states_.end()) {
    states_.splice(states_.begin(), states_, found);
  } else {
    states_.emplace_front();
    states_.front().phase = phase;
    states_.front().length = length;
    if (states_.size() > kMost) {
      states_.erase(std::prev(states_.end(), &states_.back() == keep ? 2 : 1));
    }
  }
  return &states_.front();
}

PhaseState* PhaseStates::Find(uint32_t phase, uint32_t length) {
  for (PhaseState& state : states_) {
    if (state.Is(phase, length)) return &state;
  }
  return nullptr;
}

PhaseState* PhaseStates::BeginsWith(uint64_t signature, const LastLaunches& last) {
  PhaseState* longest = nullptr;
  for (PhaseState& state : states_) {
    if (state.schedule == nullptr) continue;
    const std::vector<uint64_t>& launches = state.schedule->signatures;
    if (launches.front() != signature) continue;
    if (longest != nullptr && longest->length >= state.length) continue;
    size_t equal = 0;
    while (equal < last.size() &&
           last[last.size() - 1 - equal] == launches[launches.size() - 1 - equal % launches.size()])
      ++equal;
    if (equal == last.size() || (state.remembered > 0 && ComesBehind(state.beginning, last))) {
      longest = &state;
    }
  }
  return longest;
}

void PhaseStates::Forget(const Allocation* allocation) {
  for (PhaseState& state : states_) {
    if (!Names(state.schedule, allocation) && !Names(state.best, allocation)) continue;
    const uint32_t phase = state.phase, length = state.length;
    state = {};
    state.phase = phase;
    state.length = length;
  }
}

void PhaseStates::ForgetWhatFits() {
  for (PhaseState& state : states_) state.fits = false;
}

void PhaseStates::ForgetPlans() {
  for (PhaseState& state : states_) {
    state.schedule = state.best = nullptr;
    state.best_seconds = state.refused_seconds = 0;
    state.settled = state.fits = state.given_up = false;
    state.slower = 0;
  }
}

}  // namespace atp::shim
