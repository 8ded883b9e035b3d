// SPDX-License-Identifier: Apache-2.0
// Belady's order without time, as MSched (arXiv 2512.24637) applies it: what is needed soonest
// comes, what is needed furthest leaves, both directions pipelined, and nothing leaves for what is
// needed later. Neither the time that a launch leaves for copies nor the time until the next use
// enters.
#include <limits>

#include "policy/baselines/baseline.h"

namespace atp::policy {

Policy MakeBelady(const Trace&, const PlanOptions&) {
  constexpr uint32_t kPlacesAhead = 8;  // launches; what is born later has no data to bring
  Rules rules;
  rules.prefetch_ahead = std::numeric_limits<uint32_t>::max();
  rules.populate_ahead = kPlacesAhead;
  rules.victim = Rules::Victim::kFurthestUse;
  return {.how = rules};
}

}  // namespace atp::policy
