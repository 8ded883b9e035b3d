// SPDX-License-Identifier: Apache-2.0
#include "policy/service_trial.h"

#include <algorithm>

namespace atp::policy {
namespace {

// The first two times are left alone: the first one brings fresh memory, and a periodic program
// locks at the end of the second. Serving begins when known launches outweigh new ones by so many;
// a new one counts twice, because setting up repeats itself too, on small memory, between fresh
// data.
constexpr uint32_t kAlone = 2;
constexpr int kOutweigh = 48, kNewWeight = 2;
constexpr uint64_t kLeastWindow = 64;
// Slower than this in two windows in a row, and serving rests.
constexpr double kSlow = 1.005;
constexpr unsigned kSlowWindows = 2;
// Where it gains less than a tenth, every sixteenth window is left alone; less than a half, every
// sixty-fourth. What that costs stays below one per cent.
constexpr double kEven = 0.9, kGains = 0.5;
constexpr unsigned kEvenWindows = 16, kGainsWindows = 64;
constexpr uint64_t kFirstRest = 8;  // windows; four times as long after each relapse

}  // namespace

uint64_t ServiceTrial::Window() const { return std::max<uint64_t>(kLeastWindow, kinds_.size()); }

bool ServiceTrial::Decide(uint64_t kind) {
  ++launches_;
  if (kinds_.size() < kMostKinds || kinds_.count(kind) > 0) {
    familiar_ = std::max(0, familiar_ + (++kinds_[kind].seen > kAlone ? 1 : -kNewWeight));
  }
  if (state_ == State::kLearning && familiar_ >= kOutweigh) {
    state_ = State::kServing;
  } else if (state_ == State::kResting && launches_ >= rest_until_) {
    state_ = State::kServing;
    in_window_ = 0;
    took_ = expected_ = 0;
  }
  return state_ == State::kServing;
}

void ServiceTrial::Took(uint64_t kind, double seconds, bool served) {
  const auto found = kinds_.find(kind);
  if (found == kinds_.end()) return;
  Kind& known = found->second;
  if (!served) {
    constexpr double kNew = 0.25;
    ++known.timed;
    known.alone = known.timed <= 2 ? seconds : known.alone + kNew * (seconds - known.alone);
    return;
  }
  if (state_ != State::kServing || known.timed < 2) return;
  took_ += seconds;
  expected_ += known.alone;
  if (++in_window_ >= Window()) EndWindow();
}

void ServiceTrial::EndWindow() {
  const double ratio = expected_ > 0 ? took_ / expected_ : 1;
  ++verdict_.windows;
  verdict_.ratio = ratio;
  in_window_ = 0;
  took_ = expected_ = 0;
  slow_ = ratio > kSlow ? slow_ + 1 : 0;
  if (slow_ >= kSlowWindows) {
    slow_ = close_ = 0;
    ++verdict_.given_up;
    next_rest_ = next_rest_ == 0 ? kFirstRest : 4 * next_rest_;
    return Rest(next_rest_ * Window());
  }
  close_ = ratio > kGains ? close_ + 1 : 0;
  if (close_ >= (ratio > kEven ? kEvenWindows : kGainsWindows)) {
    close_ = 0;
    Rest(Window());
  }
}

void ServiceTrial::Rest(uint64_t launches) {
  state_ = State::kResting;
  rest_until_ = launches_ + launches;
}

}  // namespace atp::policy
