// SPDX-License-Identifier: Apache-2.0
// G10's greedy (MICRO'23), host memory only: inactive stretches of whole tensors, the one that
// takes away the largest area above the memory line first; out at once, back as late as is safe, on
// link time reserved launch by launch. It plans no stall: what it cannot place is left to faults.
#include <algorithm>
#include <queue>

#include "policy/baselines/baseline.h"
#include "policy/baselines/whole_plan.h"
#include "policy/lifetimes.h"

namespace atp::policy {
namespace {

// A stretch must be so many times longer than its two moves take together (the artifact's margin).
constexpr double kMargin = 2.5;

class G10Greedy {
 public:
  G10Greedy(const Trace& trace, Bytes memory)
      : trace_(trace), lifetimes_(FindLifetimes(trace)), plan_(LaunchesOnly(trace)) {
    for (uint32_t k = 0; k < Launches(); ++k) {
      over_.push_back(std::max(0.0, double(lifetimes_.live[k]) - double(memory)));
      free_in_.push_back(trace.launches[k].seconds);
    }
    free_out_ = free_in_;
  }

  Plan Run() {
    const std::vector<InactiveInterval>& intervals = lifetimes_.intervals;
    std::priority_queue<std::pair<double, size_t>> best;
    for (size_t i = 0; i < intervals.size(); ++i) {
      if (const double area = Place(intervals[i]).area; area > 0) best.push({area, i});
    }
    // Areas only shrink as others are taken: a candidate whose area still tops the queue is the
    // largest.
    while (!best.empty()) {
      const size_t i = best.top().second;
      best.pop();
      const Placement placement = Place(intervals[i]);
      if (placement.area <= 0) continue;
      if (!best.empty() && placement.area < best.top().first) {
        best.push({placement.area, i});
        continue;
      }
      Take(intervals[i], placement);
    }
    FinishPlan(&plan_);
    return std::move(plan_);
  }

 private:
  struct Placement {
    double area = 0;        // byte seconds above the line that it takes away
    uint32_t out_end = 0;   // launch in which the move out ends; counted on past the period's end
    uint32_t in_start = 0;  // launch in which the move back starts
  };

  uint32_t Launches() const { return static_cast<uint32_t>(trace_.launches.size()); }
  uint32_t At(uint32_t k) const { return k % Launches(); }

  Placement Place(const InactiveInterval& interval) const {
    const double out = double(interval.bytes) / trace_.link.d2h;
    const double in = double(interval.bytes) / trace_.link.h2d;
    Placement placement;
    double left = out, length = 0;
    for (uint32_t k = interval.last_use + 1; k < interval.next_use; ++k)
      length += trace_.launches[At(k)].seconds;
    if (length < kMargin * std::max(in, out)) return placement;
    uint32_t k = interval.last_use + 1;
    for (; k < interval.next_use && left > 0; ++k) left -= free_out_[At(k)];
    placement.out_end = k - 1;
    if (left > 0) return placement;
    left = in;
    uint32_t j = interval.next_use;
    while (j > k && left > 0) left -= free_in_[At(--j)];
    placement.in_start = j;
    if (left > 0) return placement;
    for (uint32_t i = placement.out_end + 1; i < placement.in_start; ++i) {
      placement.area +=
          std::min(double(interval.bytes), over_[At(i)]) * trace_.launches[At(i)].seconds;
    }
    return placement;
  }

  void Take(const InactiveInterval& interval, const Placement& placement) {
    const uint32_t after = interval.last_use, before = At(interval.next_use);
    double left = double(interval.bytes) / trace_.link.d2h, start = -1;
    for (uint32_t k = interval.last_use + 1; left > 0 && k <= placement.out_end; ++k) {
      const double taken = std::min(left, free_out_[At(k)]);
      // Within a launch, what is reserved first goes first.
      if (start < 0 && taken > 0) start = plan_.launch_end[At(k)] - free_out_[At(k)];
      free_out_[At(k)] -= taken;
      left -= taken;
    }
    plan_.evictions.push_back({Move::Kind::kEvict, interval.tensor, 0, interval.bytes, after,
                               before, start, plan_.launch_end[At(placement.out_end)]});
    left = double(interval.bytes) / trace_.link.h2d;
    for (uint32_t k = interval.next_use; left > 0 && k > placement.in_start;) {
      --k;
      const double taken = std::min(left, free_in_[At(k)]);
      free_in_[At(k)] -= taken;
      left -= taken;
      // What is reserved first goes last.
      if (taken > 0) start = plan_.launch_start[At(k)] + free_in_[At(k)];
    }
    const bool wraps = start > plan_.launch_start[before];
    plan_.fetches.push_back({Move::Kind::kFetch, interval.tensor, 0, interval.bytes, after, before,
                             start,
                             plan_.launch_start[before] + (wraps ? plan_.period_seconds : 0)});
    for (uint32_t i = placement.out_end + 1; i < placement.in_start; ++i) {
      over_[At(i)] = std::max(0.0, over_[At(i)] - double(interval.bytes));
    }
  }

  const Trace& trace_;
  const Lifetimes lifetimes_;
  Plan plan_;
  std::vector<double> over_;                // bytes above the memory line, per launch
  std::vector<double> free_in_, free_out_;  // link seconds left, per launch
};

}  // namespace

Policy MakeG10(const Trace& trace, const PlanOptions& options) {
  const Bytes memory = options.memory != 0 ? options.memory : trace.device_bytes;
  return {.how = G10Greedy(trace, memory).Run()};
}

}  // namespace atp::policy
