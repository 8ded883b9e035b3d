// SPDX-License-Identifier: Apache-2.0
// When the data of one period is in use, when it only waits, and how much of it is alive at each
// launch. Bounds, planner and graph share this view. Pure; any thread; never fails.
//
// An inactive interval is the time between two consecutive uses of a tensor (cyclic for tensors
// that live across periods): the only time in which it may be away from the device. A gap is dead,
// and needs neither room nor copy, when the tensor does not exist in it, when it is local and the
// next use overwrites it without reading (G10, MICRO'23: dead intermediates leave for free), or
// when the next use restores what has been dropped (recompute.h).
#pragma once

#include <cstdint>
#include <vector>

#include "policy/trace.h"

namespace atp::policy {

struct InactiveInterval {
  uint32_t tensor = 0;
  uint32_t last_use = 0;  // launch after which it waits, in [0, n)
  uint32_t next_use = 0;  // launch that needs it again; n + i = launch i of the next period
  Bytes bytes = 0;
};

struct Lifetimes {
  std::vector<InactiveInterval> intervals;  // by last_use; at least one launch lies inside each
  std::vector<Bytes> touched;               // per launch: what it touches, with its workspace
  std::vector<Bytes> live;                  // per launch: touched and waiting, nothing away
  std::vector<Bytes> live_after;            // the same in the pause after each launch
  std::vector<bool> written;                // per tensor: some launch of the period writes it
};

// The tensors keep their room: their intervals go, and their bytes count as touched meanwhile.
void Hold(const std::vector<bool>& tensors, Lifetimes* life);

// O(launches + touches). Tensor indices outside the trace are ignored.
Lifetimes FindLifetimes(const Trace& trace);

}  // namespace atp::policy
