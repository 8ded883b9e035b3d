// SPDX-License-Identifier: Apache-2.0
// The last step of planning: a layout as moves with positions, and what is on the device when the
// period starts. Called by MakePlan only. Pure; any thread.
#pragma once

#include <vector>

#include "policy/layout.h"
#include "policy/lifetimes.h"
#include "policy/planner.h"
#include "policy/trace.h"

namespace atp::policy {

// The most host memory at once: of every tensor, what has left since it was born; global ones keep
// it from period to period.
Bytes HostBytes(const Trace& trace, const Lifetimes& life, const Layout& layout);

// The same layout in pieces of at most so many bytes; 0 = as they are. Each takes its share of the
// time, so that room is given up no later and taken no earlier.
Layout CutPieces(Layout layout, Bytes largest);

// `copied`: per interval, false where it leaves without a copy.
Plan ToPlan(const Trace& trace, const Lifetimes& life, const std::vector<bool>& copied,
            const Layout& layout);

}  // namespace atp::policy
