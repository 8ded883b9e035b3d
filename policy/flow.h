// SPDX-License-Identifier: Apache-2.0
// Lays out a period in which the amounts that move are given: a simulation of the link in which
// nothing waits that could move. It plays the period until it repeats itself. Called by MakePlan
// only. Pure; one thread.
//
// Rules: an eviction starts when its last user has ended, in that order. A fetch starts, the one
// needed soonest first, when it has left, there is room, no launch before its own would lack room
// because it came early, and the launch that is next finds room for what is born in it. A launch
// starts when all it touches is there and memory holds it. Both directions at once run at the rates
// of the duplex pair.
#pragma once

#include <cstdint>
#include <vector>

#include "policy/layout.h"
#include "policy/lifetimes.h"
#include "policy/trace.h"

namespace atp::policy {

struct FlowOptions {
  int64_t memory = 0;
  int64_t largest_move = 1;  // bytes; whole granules
  double turnaround = 0;     // PlanOptions::turnaround_seconds
  // While a launch waits for copies in that have room, no eviction starts, because it would slow
  // them.
  bool put_off = false;
};

// `amounts`: bytes of each interval, which cover every launch; `copied`: false leaves without the
// link. False when the period does not come to repeat itself.
bool FlowLayout(const Trace& trace, const Lifetimes& life, const LinkRates& rates,
                const std::vector<int64_t>& amounts, const std::vector<bool>& copied,
                const FlowOptions& options, Layout* layout);

}  // namespace atp::policy
