// SPDX-License-Identifier: Apache-2.0
#include "policy/service_trial.h"

#include <algorithm>
#include <utility>

namespace atp::policy {
namespace {

// The first two times are left alone: the first one brings fresh memory, and a periodic program
// locks at the end of the second. Serving begins when known launches outweigh new ones by so many;
// a new one counts twice, because setting up repeats itself too, on small memory, between fresh
// data.
constexpr unsigned kAlone = 2, kMostSeen = 3;
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

uint64_t HashOf(uint64_t kind) { return (kind ^ kind >> 32) * 0x9E3779B97F4A7C15u; }
uint16_t TagOf(uint64_t hash) { return hash >> 16 & 0x3FFF; }
size_t HomeOf(uint64_t hash) { return hash >> 32; }

}  // namespace

unsigned ServiceTrial::Kinds::See(uint64_t kind) {
  const uint64_t hash = HashOf(kind);
  size_t at = HomeOf(hash);
  while (At(at).index != 0 && At(at).tag != TagOf(hash)) ++at;
  if (At(at).index == 0) {
    static_assert(kMostKinds <= UINT16_MAX);
    if (kinds_.size() == kMostKinds) return 0;
    if (2 * (kinds_.size() + 1) > places_.size()) {
      Grow();
      for (at = HomeOf(hash); At(at).index != 0; ++at) {
      }
    }
    kinds_.push_back({kind});
    At(at) = {TagOf(hash), 0, static_cast<uint16_t>(kinds_.size())};
  }
  if (At(at).seen < kMostSeen) ++At(at).seen;
  return At(at).seen;
}

void ServiceTrial::Kinds::Expect(uint64_t kind) const {
  __builtin_prefetch(&places_[HomeOf(HashOf(kind)) & (places_.size() - 1)], 1);
}

void ServiceTrial::Kinds::Grow() {
  const std::vector<Place> before = std::exchange(places_, std::vector<Place>(2 * places_.size()));
  for (const Place& place : before) {
    if (place.index == 0) continue;
    size_t at = HomeOf(HashOf(kinds_[place.index - 1u].kind));
    while (At(at).index != 0) ++at;
    At(at) = place;
  }
}

ServiceTrial::Kind* ServiceTrial::Kinds::Find(uint64_t kind) {
  const uint64_t hash = HashOf(kind);
  for (size_t at = HomeOf(hash); At(at).index != 0; ++at) {
    if (At(at).tag != TagOf(hash)) continue;
    Kind& found = kinds_[At(at).index - 1u];
    if (found.kind == kind) return &found;
  }
  return nullptr;
}

uint64_t ServiceTrial::Window() const { return std::max<uint64_t>(kLeastWindow, kinds_.size()); }

bool ServiceTrial::Decide(uint64_t kind) {
  ++launches_;
  if (const unsigned seen = kinds_.See(kind)) {
    familiar_ = std::max(0, familiar_ + (seen > kAlone ? 1 : -kNewWeight));
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
  Kind* found = kinds_.Find(kind);
  if (found == nullptr) return;
  Kind& known = *found;
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
