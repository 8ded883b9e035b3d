// SPDX-License-Identifier: Apache-2.0
// The lower bound for links whose directions share bandwidth: what must cross the link, in both
// directions, between two launches. Pure; any thread.
// Windows (p, q) from the end of launch p to the start of launch q, H bytes in and D out that must
// cross in it (docs/policy.md, "Bounds"), a1 b1 a2 b2 of link_region.h:
//   sum over disjoint windows of  max(a1 H + b1 D, a2 D + b2 H, a1 H, a2 D) - time of the launches
//   between
// Source: the window arguments of Cao, Felten, Karlin and Li (SIGMETRICS'95) and Albers, Garg and
// Leonardi (JACM 47(6), 2000), with write-back and two coupled directions added by us.
#pragma once

#include "policy/lifetimes.h"
#include "policy/trace.h"

namespace atp::policy {

// Seconds by which a period must exceed the sum of its launches: disjoint windows added up.
// `clean_leaves_free`: what no launch writes leaves without a copy. O((launches + touches) log n).
double WindowStall(const Trace& trace, const Lifetimes& life, Bytes memory, bool clean_leaves_free);

// The tightest bound that is counted in closed form for policies that bring to the device whatever
// a launch touches: BoundSafe (`clean_leaves_free`) or BoundClosed, or the launches and
// WindowStall, whichever is more. Valid for independent directions too; the published figures do
// not know it.
double BoundWithWindows(const Trace& trace, Bytes memory, bool clean_leaves_free);

}  // namespace atp::policy
