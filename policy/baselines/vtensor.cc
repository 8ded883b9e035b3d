// SPDX-License-Identifier: Apache-2.0
// vTensor-like (JCST 40(6), 2025; after its abstract, the full text was not available): the layered
// graph of one training step is known; where an allocation does not fit, victims by next use, the
// last one split so that just the deficit leaves; parts are no smaller than a floor (its memory
// reservation).
#include "policy/baselines/baseline.h"
#include "policy/baselines/deficit_walk.h"
#include "policy/baselines/whole_plan.h"

namespace atp::policy {

Policy MakeVTensor(const Trace& trace, const PlanOptions& options) {
  constexpr uint32_t kLaunchesAhead = 8;  // parts come back from so many launches before their use
  const Bytes memory = options.memory != 0 ? options.memory : trace.device_bytes;
  std::vector<Outing> outings = WalkDeficits(trace, memory, options.granule);
  for (Outing& out : outings) out.lead = kLaunchesAhead;
  return {.how = PlanFromOutings(trace, outings)};
}

}  // namespace atp::policy
