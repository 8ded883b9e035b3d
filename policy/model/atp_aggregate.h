// SPDX-License-Identifier: Apache-2.0
// ATP's throughput model (Chen et al., ACM TACO 22(1), 2024; github.com/victorno2/ATP,
// ATPSearch.cpp): one period as two phases, forward of F and backward of B seconds, and two
// amounts, MS to swap and MR to recompute.
//   MS1 = bandwidth * F                     what forward alone can hide
//   excess <= MS1:  MS = excess, MR = 0
//   otherwise walk the data by bytes per second, the larger of swapping and recomputing, until both
//   have taken excess - MS1; what was taken by recomputation is MR, the rest is MS seconds = max(MS
//   / bandwidth, F) + max(MS / bandwidth, B + time to recompute MR)
// It is instant and ignores when the bytes are free; use it for what-if questions. Pure; any
// thread.
#pragma once

#include <vector>

#include "policy/lifetimes.h"
#include "policy/recompute.h"
#include "policy/trace.h"

namespace atp::policy {

struct AtpPrediction {
  bool feasible = false;             // all that can leave covers the excess
  double forward = 0, backward = 0;  // seconds; the turn is at the launch with most live bytes
  uint32_t turn = 0;
  Bytes excess = 0;                         // live bytes at the turn above memory
  Bytes swap = 0, recompute = 0;            // MS, MR
  double recompute_seconds = 0;             // TR
  double seconds = 0;                       // of one period
  std::vector<InactiveInterval> swappable;  // local data that waits across the turn, not recomputed
  std::vector<Recomputation> recomputed;
};

AtpPrediction PredictAtp(const Trace& trace, Bytes memory);

}  // namespace atp::policy
