// SPDX-License-Identifier: Apache-2.0
// The best periodic schedule of a tiny trace by trying everything, in steps of one second: each
// tensor is one block, each direction moves one block a second (with a duplex pair of half the
// rates, a second of the link moves one block in either direction), durations are whole seconds.
// With whole numbers throughout, no schedule of whole blocks that repeats every period is faster
// than this one.
#pragma once

#include <cstdint>
#include <optional>

#include "policy/trace.h"

namespace atp::policy {

// Seconds of the shortest period with room for `blocks`; none if a launch does not fit.
// clean_leaves_free: what no launch writes may vanish from the device at any time.
std::optional<int> ShortestPeriod(const Trace& trace, uint32_t blocks, bool clean_leaves_free);

}  // namespace atp::policy
