// SPDX-License-Identifier: Apache-2.0
#include "shim/plan_job.h"

#include <time.h>

#include <algorithm>
#include <unordered_map>
#include <utility>
#include <vector>

#include "policy/bounds.h"
#include "policy/planner.h"
#include "policy/sight.h"
#include "protocol/learned.h"
#include "shim/kernel_reach.h"
#include "shim/own_thread.h"
#include "shim/plan_drops.h"

namespace atp::shim {

namespace {

// The period's ranges as tensors of a trace, where they lie, and how sure it is that each is used.
policy::Trace Look(const Recorder::Period& period, bool whole, std::vector<Placed>* placed,
                   std::vector<double>* confidence) {
  policy::SeenPeriod seen = period.seen;
  for (policy::SeenTouch& touch : seen.touches) {
    if (!whole || touch.bytes > 0) continue;
    touch.offset = 0;
    touch.bytes = seen.allocations[touch.allocation];
  }
  std::vector<double> sure;
  const std::vector<policy::Bytes> reaches = policy::PredictReaches(seen, &sure);
  policy::Sight sight = policy::SplitAtTouches(seen, reaches, kGranule, sure);
  // Advice is taken back for a whole allocation, so it is given to those only that no launch of the
  // period writes to.
  std::vector<bool> written = period.written_anyway;
  for (const policy::SeenTouch& touch : period.seen.touches) {
    if (touch.writes) written[touch.allocation] = true;
  }
  for (const policy::Atom& atom : sight.atoms) {
    const uint64_t end = std::min(atom.offset + atom.bytes, period.mapped[atom.allocation]);
    placed->push_back({period.allocations[atom.allocation], atom.offset, end - atom.offset,
                       /*first_touch=*/UINT32_MAX, written[atom.allocation]});
    confidence->push_back(atom.confidence);
  }
  for (uint32_t i = 0; i < sight.trace.launches.size(); ++i) {
    policy::Launch& launch = sight.trace.launches[i];
    for (const auto* list : {&launch.reads, &launch.writes}) {
      for (const uint32_t t : *list)
        (*placed)[t].first_touch = std::min((*placed)[t].first_touch, i);
    }
  }
  return std::move(sight.trace);
}

// Some launch's reach is not known, but for what its pointers show.
bool Guesses(const policy::SeenPeriod& seen) {
  return std::any_of(seen.touches.begin(), seen.touches.end(),
                     [](const policy::SeenTouch& t) { return t.bytes == 0; });
}

// Some allocation is not planned as a whole.
bool Cuts(const Recorder::Period& period, const std::vector<Placed>& placed) {
  std::unordered_map<const Allocation*, uint64_t> sizes;
  for (size_t a = 0; a < period.allocations.size(); ++a) {
    sizes[period.allocations[a]] = period.mapped[a];
  }
  return std::any_of(placed.begin(), placed.end(),
                     [&](const Placed& p) { return p.bytes < sizes.at(p.allocation); });
}

bool SameRanges(const Schedule& plan, const std::vector<Placed>& placed,
                const policy::Trace& trace) {
  const auto range = [](const Placed& a, const Placed& b) {
    return a.allocation == b.allocation && a.offset == b.offset && a.bytes == b.bytes;
  };
  const auto lists = [](const policy::Launch& a, const policy::Launch& b) {
    return a.reads == b.reads && a.writes == b.writes;
  };
  return std::equal(plan.tensors.begin(), plan.tensors.end(), placed.begin(), placed.end(),
                    range) &&
         std::equal(plan.trace->launches.begin(), plan.trace->launches.end(),
                    trace.launches.begin(), trace.launches.end(), lists);
}

PlanOutput MakeScheduleOf(PlanInput input) {
  PlanOutput output;
  output.frees = input.frees;
  output.phase = input.phase;
  output.length = static_cast<uint32_t>(input.period.seen.launches.size());
  std::vector<Placed> placed;
  policy::PlanOptions options;
  policy::Trace trace = Look(input.period, input.whole, &placed, &options.confidence);
  if (input.grown_from != nullptr) {
    output.same = SameRanges(*input.grown_from, placed, trace);
    if (output.same) return output;
    output.grown = true;
  }
  trace.link = input.link;
  trace.device_bytes = input.capacity;
  uint64_t footprint = 0;
  for (const Placed& p : placed) footprint += p.bytes;
  output.fits = footprint <= input.capacity;
  if (output.fits) return output;
  if (!input.durations_known) {
    AssumeDurations(static_cast<double>(footprint - input.capacity) / trace.link.h2d, &trace);
  }
  options.memory = input.capacity;
  options.granule = kGranule;
  options.clean_leaves_free = input.read_mostly;
  options.duration_spread = input.duration_spread;
  options.cpu_seconds_per_granule = input.call_seconds;
  options.turnaround_seconds = protocol::kTurnaroundSeconds;
  for (uint32_t t = 0; t < placed.size(); ++t) {
    if (placed[t].written) options.never_advised.push_back(t);
  }
  for (double* rate :
       {&trace.link.h2d, &trace.link.d2h, &trace.link.duplex_h2d, &trace.link.duplex_d2h}) {
    *rate *= input.link_scale;
  }
  policy::Plan plan = policy::MakePlan(trace, options);
  // Where so much is unsure that it cannot all keep its room, guesses are all there is.
  const bool unsure =
      std::any_of(options.confidence.begin(), options.confidence.end(),
                  [&](double confidence) { return confidence < options.least_confidence; });
  if (!plan.feasible && unsure) {
    options.confidence.clear();
    plan = policy::MakePlan(trace, options);
  }
  if (!plan.feasible) {
    output.why = plan.why;
    return output;
  }
  if (input.repeatable != nullptr && input.durations_known) {
    output.gain = GainOf(trace, options, plan, input.period, placed, *input.repeatable);
  }
  std::vector<PlannedDrop> drops;
  double rerun_seconds = 0;
  if (input.drop && input.repeatable != nullptr && input.durations_known) {
    DropPlan dropping =
        PlanDrops(trace, options, plan, input.period, placed, *input.repeatable, input.passed);
    for (const auto& d : dropping.folded.drops) {
      drops.push_back({d.tensor, d.producer, d.after, d.before});
    }
    if (!drops.empty()) plan = std::move(dropping.plan);
    rerun_seconds = dropping.rerun_seconds;
  }
  trace.link = input.link;
  auto schedule = std::make_shared<Schedule>(
      BuildSchedule(plan, placed, output.length, input.piece_bytes, input.touches, drops));
  schedule->rerun_seconds = rerun_seconds;
  output.same = input.below_seconds > 0 && schedule->promise_seconds >= input.below_seconds;
  if (output.same) {
    output.promise_seconds = schedule->promise_seconds;
    return output;
  }
  schedule->bound_seconds = policy::BoundSafe(trace, input.capacity);
  schedule->trace = std::make_shared<const policy::Trace>(std::move(trace));
  schedule->by_parts = !input.whole && Guesses(input.period.seen) && Cuts(input.period, placed);
  schedule->signatures = std::move(input.period.signatures);
  for (const policy::SeenLaunch& launch : input.period.seen.launches) {
    schedule->identities.push_back(launch.kernel);
  }
  schedule->grows = input.period.grows;
  schedule->trial = input.trial;
  schedule->repeatable = input.repeatable;
  output.schedule = std::move(schedule);
  return output;
}

double ThreadCpuSeconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

PlanOutput MakeBest(PlanInput input) {
  constexpr double kWorthAGuess = 0.95;
  if (input.reach) FindReaches(kPeriodsAhead, &input.period);
  // What pointers alone show of a launch's reach is a guess, and faults of a wrong one would pass
  // for durations. So the first plan is for whole allocations then; what is measured under it
  // serves the second one, by parts.
  const bool guessed = Guesses(input.period.seen);
  input.whole |= !input.sight || (input.first && guessed);
  if (!guessed) input.whole_seconds = 0;
  PlanOutput output = MakeScheduleOf(input);
  if (output.fits || output.same || !input.sight) return output;
  const bool made = output.schedule != nullptr;
  const bool other =
      input.whole ? !made
                  : made && input.whole_seconds > 0 &&
                        output.schedule->promise_seconds > kWorthAGuess * input.whole_seconds;
  if (!other) return output;
  input.whole = !input.whole;
  PlanOutput second = MakeScheduleOf(std::move(input));
  // There may be less room now than when the whole could be planned.
  return made && second.schedule == nullptr ? output : second;
}

}  // namespace

PlanOutput MakeSchedule(PlanInput input) {
  const double begin = ThreadCpuSeconds();
  if (input.find_repeatable) {
    input.repeatable = std::make_shared<const Repeatable>(FindRepeatable(input.period));
  }
  std::shared_ptr<const Repeatable> repeatable = input.first ? input.repeatable : nullptr;
  PlanOutput output = MakeBest(std::move(input));
  output.repeatable = std::move(repeatable);
  output.cpu_seconds = ThreadCpuSeconds() - begin;
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
