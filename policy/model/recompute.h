// SPDX-License-Identifier: Apache-2.0
// Recomputation as an option of the model: instead of moving data out and back, it is dropped after
// a use and the launch that produced it runs again before the next. Modelled, not executed: the
// shim does not do it. A trace in which something is recomputed is again a trace, with launches
// added, so that bounds, planners and replay need to know nothing about it. Pure; any thread.
#pragma once

#include <vector>

#include "policy/planner.h"
#include "policy/trace.h"

namespace atp::policy {

// A local tensor dropped after `last_use` and produced again just before `next_use` (same period).
struct Recomputation {
  uint32_t tensor = 0;
  uint32_t last_use = 0, next_use = 0;
  uint32_t producer = 0;  // the launch that is run again; its measured time is the cost
  double seconds = 0;
  Bytes bytes = 0;
  // Bytes saved for each second of running again (ATP's rule, TACO 22(1), 2024).
  double Efficiency() const { return seconds > 0 ? double(bytes) / seconds : 1e300; }
};

// All that is legal by itself: one producer that overwrites it, whose inputs still hold the same
// data, and are alive, at the next use. The most efficient first.
std::vector<Recomputation> Recomputable(const Trace& trace);

// Adds recomputations from the list while they do not disturb each other: what one drops, no other
// may need at that time.
class RecomputeSet {
 public:
  explicit RecomputeSet(const Trace& trace) : trace_(trace) {}
  bool Add(const Recomputation& candidate);
  const std::vector<Recomputation>& chosen() const { return chosen_; }

 private:
  bool Conflicts(const Recomputation& a, const Recomputation& b) const;
  const Trace& trace_;
  std::vector<Recomputation> chosen_;
};

// `new_position`, if given: per launch of the old trace, where it is now.
Trace ApplyRecompute(const Trace& trace, const std::vector<Recomputation>& chosen,
                     std::vector<uint32_t>* new_position = nullptr);

struct RecomputePlan {
  Trace trace{};        // with the launches that run again
  Plan plan{};          // for that trace
  Bytes bytes = 0;      // dropped instead of moved
  double seconds = 0;   // of running again
  size_t launches = 0;  // that run again
};
// The best amount to recompute beside the best plan: prefixes of the list, by efficiency, among
// what lies across a launch whose live bytes exceed memory and costs less than its move out.
RecomputePlan BestRecompute(const Trace& trace, const PlanOptions& options);

}  // namespace atp::policy
