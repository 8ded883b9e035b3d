// SPDX-License-Identifier: Apache-2.0
// The lower bound for links whose directions share bandwidth: what must cross the link, in both
// directions, between two launches. Formula: docs/policy.md, "Bounds". Called by bounds.cc only.
// Pure; any thread.
#pragma once

#include "policy/lifetimes.h"
#include "policy/trace.h"

namespace atp::policy {

// Seconds by which a period must exceed the sum of its launches: disjoint windows added up.
// `clean_leaves_free`: what no launch writes leaves without a copy. O((launches + touches) log n).
double WindowStall(const Trace& trace, const Lifetimes& life, Bytes memory, bool clean_leaves_free);

}  // namespace atp::policy
