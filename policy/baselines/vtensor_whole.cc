// SPDX-License-Identifier: Apache-2.0
// As vtensor.cc, with whole tensors only: what moving parts of tensors brings, all else being
// equal.
#include "policy/baselines/baseline.h"
#include "policy/baselines/deficit_walk.h"
#include "policy/baselines/whole_plan.h"

namespace atp::policy {

Policy MakeVTensorWhole(const Trace& trace, const PlanOptions& options) {
  constexpr uint32_t kLaunchesAhead = 8;
  const Bytes memory = options.memory != 0 ? options.memory : trace.device_bytes;
  std::vector<Outing> outings = WalkDeficits(trace, memory, 0);
  for (Outing& out : outings) out.lead = kLaunchesAhead;
  return {.how = PlanFromOutings(trace, outings)};
}

}  // namespace atp::policy
