// SPDX-License-Identifier: Apache-2.0
// The stock driver with uvm_perf_prefetch_enable=0: every 4 KiB page faults by itself.
#include "policy/baselines/baseline.h"

namespace atp::policy {

Policy MakeStockNoPrefetch(const Trace&, const PlanOptions&) {
  Rules rules;
  rules.density_prefetch = false;
  return {.how = rules};
}

}  // namespace atp::policy
