// SPDX-License-Identifier: Apache-2.0
// Unified memory as the stock driver does it: data comes when a launch faults on it, whole 2 MiB
// blocks after a few faults (density prefetch), and the block that arrived longest ago leaves,
// inside the fault (nvidia-uvm, uvm_va_block.c and uvm_perf_prefetch.c in
// NVIDIA/open-gpu-kernel-modules).
#include "policy/baselines/baseline.h"

namespace atp::policy {

Policy MakeStock(const Trace&, const PlanOptions&) { return {.how = Rules{}}; }

}  // namespace atp::policy
