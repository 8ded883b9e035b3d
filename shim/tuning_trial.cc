// SPDX-License-Identifier: Apache-2.0
#include "shim/tuning_trial.h"

#include <algorithm>
#include <cmath>

#include "shim/schedule.h"

namespace atp::shim {
namespace {

constexpr size_t kSamples = 3;  // periods on each side
// A new choice has to be faster by this much, and by more than periods differ among themselves.
constexpr double kFaster = 0.002;

// Kept free so that the driver never has to evict by itself: plain memory takes whole granules, and
// the driver has needs of its own (page tables, loaded code). Moves in flight are counted apart.
uint64_t OwnHeadRoom(uint64_t budget) {
  constexpr uint64_t kMost = 128u << 20;
  return std::clamp(budget / 256 / kGranule * kGranule, 2 * kGranule, kMost);
}

double Middle(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

double Spread(const std::vector<double>& values) {
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  return (*most - *least) / 2;
}

protocol::Tuning Sensible(protocol::Tuning tuning, uint64_t budget) {
  constexpr double kMostSpread = 1, kMostCall = 1e-3;
  constexpr double kLeastScale = 0.5, kMostScale = 4;
  if (tuning.head_room_bytes != 0) {
    tuning.head_room_bytes = std::min(tuning.head_room_bytes, 4 * OwnHeadRoom(budget));
  }
  if (tuning.link_scale != 0) {
    tuning.link_scale = std::clamp(tuning.link_scale, kLeastScale, kMostScale);
  }
  tuning.duration_spread = std::clamp(tuning.duration_spread, 0.0, kMostSpread);
  tuning.call_seconds = std::clamp(tuning.call_seconds, 0.0, kMostCall);
  return tuning;
}

}  // namespace

void TuningTrial::Take(const protocol::Learned& learned) {
  if (state_ != State::kNone) return;
  tuning_ = Sensible(learned.tuning, budget_);
  candidate_ = Sensible(learned.candidate, budget_);
  if (learned.trial == protocol::TrialState::kOffered && candidate_ != tuning_) {
    state_ = State::kOffered;
  }
}

void TuningTrial::Follow(uint64_t budget) {
  budget_ = budget;
  if (state_ == State::kOffered || state_ == State::kTrying) state_ = State::kNone;
}

uint64_t TuningTrial::HeadRoom() const {
  const uint64_t chosen = now().head_room_bytes;
  if (chosen == protocol::kNoHeadRoom) return 0;
  return std::min(budget_, chosen != 0 ? chosen : OwnHeadRoom(budget_));
}

TuningTrial::Do TuningTrial::Took(uint64_t phase, const Schedule* schedule, double seconds) {
  if (state_ != State::kOffered && state_ != State::kTrying) return Do::kNothing;
  if (state_ == State::kTrying && (phase != phase_ || !schedule->trial)) return Do::kNothing;
  std::vector<double>& samples = state_ == State::kTrying ? during_ : before_;
  if (phase != phase_ || schedule != schedule_) samples.clear();  // another plan is another matter
  phase_ = phase;
  schedule_ = schedule;
  samples.push_back(seconds);
  if (samples.size() < kSamples) return Do::kNothing;
  if (state_ == State::kTrying) return Judge();
  state_ = State::kTrying;
  return Do::kStart;
}

TuningTrial::Do TuningTrial::Judge() {
  before_seconds_ = Middle(before_);
  during_seconds_ = Middle(during_);
  const double differ = std::max(kFaster * before_seconds_, Spread(before_) + Spread(during_));
  const bool faster = during_seconds_ < before_seconds_ - differ;
  state_ = faster ? State::kWon : State::kLost;
  return faster ? Do::kKeep : Do::kRollBack;
}

void TuningTrial::GivenUp(double seconds) {
  if (state_ != State::kTrying) return;
  before_seconds_ = Middle(before_);
  during_seconds_ = seconds;
  state_ = State::kLost;
}

void TuningTrial::Tell(protocol::Learned* learned) const {
  using protocol::TrialState;
  learned->budget_bytes = budget_;
  learned->tuning = state_ == State::kWon ? candidate_ : tuning_;
  // Whoever searches for better ones starts from what really runs.
  if (learned->tuning.head_room_bytes == 0) {
    learned->tuning.head_room_bytes = OwnHeadRoom(budget_);
  }
  learned->candidate = candidate_;
  learned->trial = state_ == State::kWon    ? TrialState::kWon
                   : state_ == State::kLost ? TrialState::kLost
                   : state_ == State::kNone ? TrialState::kNone
                                            : TrialState::kOffered;
  learned->before_seconds = before_seconds_;
  learned->trial_seconds = during_seconds_;
}

}  // namespace atp::shim
