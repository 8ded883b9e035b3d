// SPDX-License-Identifier: Apache-2.0
#include "shim/recompute_gain.h"

#include <algorithm>
#include <unordered_map>

#include "policy/recompute_plan.h"

namespace atp::shim {
namespace {

using Sizes = std::unordered_map<const Allocation*, uint64_t>;

// The launch overwrites all of the tensor that the program can use: not the rest of its last block.
bool OverwritesAll(const Again& again, const Placed& tensor, const Sizes& sizes) {
  const uint64_t size = sizes.at(tensor.allocation);
  const uint64_t end = std::min(tensor.offset + tensor.bytes, size);
  uint64_t covered = 0;
  for (const Again::Output& output : again.outputs) {
    if (output.allocation != tensor.allocation) continue;
    const uint64_t begin = output.address - tensor.allocation->address;
    const uint64_t from = std::max(begin, tensor.offset);
    const uint64_t to = std::min(begin + output.bytes, end);
    if (to > from) covered += to - from;  // outputs lie apart
  }
  return tensor.offset < end && covered == end - tensor.offset;
}

}  // namespace

std::vector<bool> Droppable(const policy::Trace& trace, const Recorder::Period& period,
                            const std::vector<Placed>& placed, const Repeatable& repeatable) {
  Sizes sizes;
  for (size_t a = 0; a < period.allocations.size(); ++a) {
    sizes[period.allocations[a]] = period.seen.allocations[a];
  }
  std::vector<bool> droppable(trace.launches.size());
  for (const Again& again : repeatable.again) {
    const std::vector<uint32_t>& writes = trace.launches[again.position].writes;
    droppable[again.position] = !again.unwatched && !writes.empty() &&
                                std::all_of(writes.begin(), writes.end(), [&](uint32_t tensor) {
                                  return OverwritesAll(again, placed[tensor], sizes);
                                });
  }
  return droppable;
}

RecomputeGain GainOf(const policy::Trace& trace, const policy::PlanOptions& options,
                     const policy::Plan& plain, const Recorder::Period& period,
                     const std::vector<Placed>& placed, const Repeatable& repeatable) {
  RecomputeGain gain;
  policy::RecomputeOptions recompute;
  recompute.may_run_again = Droppable(trace, period, placed, repeatable);
  gain.droppable = static_cast<uint64_t>(
      std::count(recompute.may_run_again.begin(), recompute.may_run_again.end(), true));
  gain.plain_seconds = gain.seconds = plain.period_seconds;
  if (gain.droppable == 0) return gain;
  const policy::RecomputePlan best = policy::BestRecompute(trace, options, recompute);
  if (!best.plan.feasible || best.plan.period_seconds >= plain.period_seconds) return gain;
  gain.seconds = best.plan.period_seconds;
  gain.rerun_seconds = best.made.seconds;
  gain.dropped_bytes = best.made.bytes;
  for (const policy::Rerun& rerun : best.made.reruns) gain.producers.push_back(rerun.producer);
  std::sort(gain.producers.begin(), gain.producers.end());
  return gain;
}

}  // namespace atp::shim
