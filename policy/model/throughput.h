// SPDX-License-Identifier: Apache-2.0
// What a program would reach with any amount of device memory: for each size the plan's time, the
// bounds, ATP's aggregate prediction, and what is best swapped and recomputed. Recompute: modelled,
// not executed.
//   speed(M)   = compute / time(M)
//   knee       = the size whose speed lies furthest above the straight line from the smallest size
//   to the
//                footprint, both axes scaled to [0, 1] (Satopaa et al., "Finding a kneedle in a
//                haystack", 2011)
//   lossless   = the least memory whose plan loses no more than `loss`, by bisection
// Pure; any thread; as many plans as points.
#pragma once

#include <vector>

#include "policy/planner.h"
#include "policy/trace.h"

namespace atp::policy {

struct ThroughputOptions {
  int points = 24;
  double loss = 1e-3;     // that counts as none, relative
  bool recompute = true;  // also search what to recompute (several plans a point)
  PlanOptions plan;       // `memory` is ignored
};

struct ThroughputPoint {
  Bytes memory = 0;
  bool feasible = false;
  double plan_s = 0, bound_safe_s = 0, bound_any_s = 0;
  Bytes swap = 0;    // bytes moved out in a period by the plan without recomputation
  double atp_s = 0;  // ATP's aggregate model; 0 = it finds no way
  Bytes atp_swap = 0, atp_recompute = 0;
  // The best of both: what is moved, what is computed again, at which cost.
  double best_s = 0;
  Bytes best_swap = 0, best_recompute = 0;
  double best_recompute_s = 0;
};

struct ThroughputCurve {
  double compute_s = 0;
  Bytes largest_launch = 0, footprint = 0;
  Bytes knee = 0, lossless = 0;
  std::vector<ThroughputPoint> points;  // by memory, from the largest launch to the footprint
};

ThroughputCurve ModelThroughput(const Trace& trace, const ThroughputOptions& options);
ThroughputPoint ModelAt(const Trace& trace, Bytes memory, const ThroughputOptions& options);

}  // namespace atp::policy
