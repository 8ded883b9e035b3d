// SPDX-License-Identifier: Apache-2.0
#include "shim/plan_job.h"

#include <utility>

#include "policy/bounds.h"
#include "policy/planner.h"
#include "shim/own_thread.h"

namespace atp::shim {

PlanOutput MakeSchedule(PlanInput input) {
  PlanOutput output;
  output.frees = input.frees;
  output.phase = input.phase;
  output.length = static_cast<uint32_t>(input.period.trace.launches.size());
  policy::PlanOptions options;
  options.memory = input.capacity;
  options.granule = kGranule;
  options.clean_leaves_free = input.read_mostly;
  const policy::Plan plan = policy::MakePlan(input.period.trace, options);
  if (!plan.feasible) {
    output.why = plan.why;
    return output;
  }
  auto schedule = std::make_shared<Schedule>(BuildSchedule(
      plan, input.period.placed, static_cast<uint32_t>(input.period.trace.launches.size()),
      input.piece_bytes, input.touches));
  schedule->bound_seconds = policy::BoundSafe(input.period.trace, input.capacity);
  schedule->trace = std::make_shared<const policy::Trace>(std::move(input.period.trace));
  schedule->signatures = std::move(input.period.signatures);
  schedule->identities = std::move(input.period.identities);
  output.schedule = std::move(schedule);
  return output;
}

void PlanJob::Request(PlanInput input, bool inline_planning) {
  state_ = std::make_shared<State>();
  if (inline_planning) {
    state_->output = MakeSchedule(std::move(input));
    state_->ready = true;
    return;
  }
  StartOwnThread("atp-plan", [state = state_, in = std::move(input)]() mutable {
    PlanOutput output = MakeSchedule(std::move(in));
    std::lock_guard lock(state->mutex);
    state->output = std::move(output);
    state->ready = true;
  });
}

bool PlanJob::Take(PlanOutput* output) {
  if (state_ == nullptr) return false;
  {
    std::lock_guard lock(state_->mutex);
    if (!state_->ready) return false;
    *output = std::move(state_->output);
  }
  state_.reset();
  return true;
}

}  // namespace atp::shim
