// SPDX-License-Identifier: Apache-2.0
// Walks the launches of a steady period and, where what a launch needs does not fit, sends out what
// is needed furthest in the future: Belady by deficits, knowing nothing of time. In parts, or whole
// tensors (after the abstract of vTensor, JCST 40(6), 2025). Pure; any thread; bytes, positions.
#pragma once

#include <vector>

#include "policy/baselines/whole_plan.h"
#include "policy/trace.h"

namespace atp::policy {

// The outings of one period. `granule`: parts are multiples of it; 0 = whole tensors only.
std::vector<Outing> WalkDeficits(const Trace& trace, Bytes memory, Bytes granule);

}  // namespace atp::policy
