// SPDX-License-Identifier: Apache-2.0
// Which launches of a trace are element-wise, by the kind of kernel that their names begin with:
// what a trace from elsewhere says of purity, where there is no code to prove it from. Pure; any
// thread.
#pragma once

#include <vector>

#include "policy/trace.h"

namespace atp::policy {

// Per launch. The kind is what stands before the first ':'. Only forward arithmetic that reads and
// writes tensors of one shape counts, in the words of the G10 artifact's traces
// ("Add_Forward:op7"); names that are not known do not.
std::vector<bool> Elementwise(const Trace& trace);

}  // namespace atp::policy
