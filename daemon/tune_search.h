// SPDX-License-Identifier: Apache-2.0
// Searches for choices by which plans of a remembered workload are faster: its trace is replayed in
// the model of the machine (policy/replay) with wrong predictions, and over the band of what faults
// and link may cost. Deterministic. Any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "policy/replay/options.h"
#include "protocol/learned.h"

namespace atp::daemon {

struct SearchOptions {
  policy::DriverCosts costs;
  unsigned evaluations = 80;  // at most; each replays every scenario
  size_t candidates = 8;      // at most
  // Called after each evaluation; false ends the search without a result.
  std::function<bool()> go_on = [] { return true; };
};

struct Found {
  // Those that win by more than scenarios differ, the best first. No two of them make the same
  // plan: the replay model is not the machine, so that its second best may be the best there.
  std::vector<protocol::Tuning> better;
  double before_seconds = 0, after_seconds = 0;  // a period, the mean over scenarios of their own
  unsigned evaluations = 0;
  std::string reason;  // in words
};

Found SearchTuning(const protocol::Learned& learned, const SearchOptions& options);

// What `tuning` makes of the workload in the scenarios of one search; empty: no plan, or it cannot
// be replayed. `seed` chooses the scenarios.
std::vector<double> ReplayTuning(const protocol::Learned& learned, const protocol::Tuning& tuning,
                                 const policy::DriverCosts& costs, uint64_t seed);

}  // namespace atp::daemon
