// SPDX-License-Identifier: Apache-2.0
// How much of each inactive interval is away so that every launch fits in memory, with about the
// least traffic that a period needs. Called by MakePlan only. Pure; one thread.
//
// Method: furthest next use (Belady) period after period moves the fewest bytes, but does not
// repeat itself; the mean of its periods does. For a sweep over more than memory this gives every
// tensor the same share on the host, instead of a few tensors that are away as a whole.
#pragma once

#include <cstdint>
#include <vector>

#include "policy/lifetimes.h"

namespace atp::policy {

struct CoverOptions {
  int64_t memory = 0;   // bytes that may be used
  int64_t granule = 1;  // amounts are multiples of it, or whole tensors
  // Launches at the begin and at the end of an interval in which its bytes are on the link rather
  // than away. Where that leaves too little, the whole of the interval counts.
  int64_t leaving = 0, returning = 0;
  int64_t periods = 8;  // that the mean is of
  bool whole = false;   // whole tensors leave
};

// Bytes of each of life.intervals from their sums over `periods`: rounded to granules, with what
// rounding has lost added again; empty when some launch cannot be covered.
std::vector<int64_t> FitAmounts(const Lifetimes& life, const std::vector<int64_t>& sums,
                                int64_t periods, const CoverOptions& options);

// Bytes of each of life.intervals; empty when some launch cannot be covered. O(n log n).
std::vector<int64_t> CoverAmounts(const Lifetimes& life, const CoverOptions& options);

}  // namespace atp::policy
