// SPDX-License-Identifier: Apache-2.0
#include "policy/model/throughput.h"

#include <algorithm>

#include "policy/bounds.h"
#include "policy/model/atp_aggregate.h"
#include "policy/recompute_plan.h"
#include "policy/replay/uses.h"

namespace atp::policy {
namespace {

Bytes Knee(const ThroughputCurve& curve) {
  const auto& points = curve.points;
  auto speed = [&](const ThroughputPoint& p) {
    return p.feasible ? curve.compute_s / p.plan_s : 0;
  };
  const double low = speed(points.front()), high = speed(points.back());
  const double span = double(points.back().memory - points.front().memory);
  if (span <= 0 || high <= low) return points.front().memory;
  const ThroughputPoint* knee = &points.front();
  double furthest = 0;
  for (const ThroughputPoint& p : points) {
    const double across = double(p.memory - points.front().memory) / span;
    const double above = (speed(p) - low) / (high - low) - across;
    if (above > furthest) furthest = above, knee = &p;
  }
  return knee->memory;
}

Bytes Lossless(const Trace& trace, const ThroughputCurve& curve, const ThroughputOptions& options) {
  auto loses_nothing = [&](Bytes memory) {
    PlanOptions plan_options = options.plan;
    plan_options.memory = memory;
    const Plan plan = MakePlan(trace, plan_options);
    return plan.feasible && plan.period_seconds <= curve.compute_s * (1 + options.loss);
  };
  Bytes low = curve.largest_launch, high = curve.footprint;
  if (loses_nothing(low)) return low;
  const Bytes step = std::max<Bytes>(options.plan.granule, curve.footprint / 1000);
  while (high - low > step) {
    const Bytes middle = low + (high - low) / 2;
    (loses_nothing(middle) ? high : low) = middle;
  }
  return high;
}

}  // namespace

ThroughputPoint ModelAt(const Trace& trace, Bytes memory, const ThroughputOptions& options) {
  ThroughputPoint point;
  point.memory = memory;
  PlanOptions plan_options = options.plan;
  plan_options.memory = memory;
  const Plan plan = MakePlan(trace, plan_options);
  point.feasible = plan.feasible;
  point.bound_safe_s = BoundSafe(trace, memory);
  point.bound_any_s = BoundAny(trace, memory);
  if (plan.feasible) {
    point.plan_s = point.best_s = plan.period_seconds;
    point.swap = point.best_swap = plan.moved_d2h;
  }
  const AtpPrediction atp = PredictAtp(trace, memory);
  if (atp.feasible) {
    point.atp_s = atp.seconds;
    point.atp_swap = atp.swap;
    point.atp_recompute = atp.recompute;
  }
  if (!options.recompute) return point;
  const RecomputePlan best = BestRecompute(trace, plan_options);
  if (!best.made.reruns.empty()) {
    point.best_s = best.plan.period_seconds;
    point.best_swap = best.plan.moved_d2h;
    point.best_recompute = best.made.bytes;
    point.best_recompute_s = best.made.seconds;
  }
  return point;
}

ThroughputCurve ModelThroughput(const Trace& trace, const ThroughputOptions& options) {
  ThroughputCurve curve;
  curve.compute_s = ComputeSeconds(trace);
  curve.largest_launch = LargestLaunchBytes(trace);
  curve.footprint = std::max(PeakLiveBytes(trace), curve.largest_launch);
  const int points = std::max(2, options.points);
  for (int i = 0; i < points; ++i) {
    const double part = double(i) / (points - 1);
    const double span = double(curve.footprint - curve.largest_launch);
    const Bytes memory =
        i + 1 == points ? curve.footprint : curve.largest_launch + Bytes(part * span);
    curve.points.push_back(ModelAt(trace, memory, options));
  }
  curve.knee = Knee(curve);
  curve.lossless = Lossless(trace, curve, options);
  return curve;
}

}  // namespace atp::policy
