// SPDX-License-Identifier: Apache-2.0
// The choices by which plans are made: the shim's own, or those that atpd has found better for this
// workload. A new choice is tried on the running program: some periods by the plan in force, as
// many by a plan of the new choice, and the faster one stays. Whatever a store says is brought into
// sensible bounds, and none of it changes a result. The lock of the loop is held.
#pragma once

#include <cstdint>
#include <vector>

#include "protocol/learned.h"

namespace atp::shim {

struct Schedule;

class TuningTrial {
 public:
  explicit TuningTrial(uint64_t budget) : budget_(budget) {}

  // What is known of this very workload.
  void Take(const protocol::Learned& learned);

  // Another budget from now on: periods before and after it are not compared.
  void Follow(uint64_t budget);

  uint64_t HeadRoom() const;
  double duration_spread() const { return now().duration_spread; }
  double call_seconds() const { return now().call_seconds; }
  double link_scale() const { return now().link_scale > 0 ? now().link_scale : 1; }
  bool trying() const { return state_ == State::kTrying; }

  enum class Do { kNothing, kStart, kKeep, kRollBack };
  // A period of the phase `phase` took so long by this plan. kStart: a plan of the new choice is to
  // be made for it. kRollBack: the plan in force before is to run again.
  Do Took(uint64_t phase, const Schedule* schedule, double seconds);
  // The loop has gone back to another plan by itself, since a period took so long.
  void GivenUp(double seconds);

  // What there is to tell: the choices in force, and how the trial went.
  void Tell(protocol::Learned* learned) const;

 private:
  enum class State : uint8_t { kNone, kOffered, kTrying, kWon, kLost };
  const protocol::Tuning& now() const {
    return state_ == State::kTrying || state_ == State::kWon ? candidate_ : tuning_;
  }
  Do Judge();

  uint64_t budget_;
  State state_ = State::kNone;
  protocol::Tuning tuning_, candidate_;
  uint64_t phase_ = 0;
  const Schedule* schedule_ = nullptr;   // that the newest samples are of; only compared
  std::vector<double> before_, during_;  // seconds
  double before_seconds_ = 0, during_seconds_ = 0;
};

}  // namespace atp::shim
