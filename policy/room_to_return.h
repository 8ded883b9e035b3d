// SPDX-License-Identifier: Apache-2.0
// What else should leave so that data can come back in time. Where launches wait for the way in
// although it was idle before, what they wait for had no room to come to any earlier; more has to
// be away by then. Called by MakePlan only. Pure; any thread.
#pragma once

#include <cstdint>
#include <vector>

#include "policy/layout.h"
#include "policy/lifetimes.h"
#include "policy/trace.h"

namespace atp::policy {

// `amounts` (bytes of each interval, which the layout was played with) and, for each launch that
// waits for the way in alone, as much more as crosses the link in that time, of what waits over the
// launch and over the idle time before it and is needed latest (Belady). Empty when no launch waits
// so. O(moves log moves + launches + waiting launches * intervals).
std::vector<int64_t> WithRoomToReturn(const Lifetimes& life, const LinkRates& rates,
                                      const Layout& layout, std::vector<int64_t> amounts);

}  // namespace atp::policy
