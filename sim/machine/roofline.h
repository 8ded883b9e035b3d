// SPDX-License-Identifier: Apache-2.0
// How long a kernel lasts when everything it touches is resident: launch overhead plus the slowest
// of issuing its instructions, moving its sectors through the second-level cache, and moving its
// distinct bytes through device memory.
//
// Pure. Rates come from costs.def; formula: the roofline model (Williams, Waterman, Patterson, CACM
// 2009).
#pragma once

#include "sim/machine/costs.h"
#include "sim/machine/machine.h"

namespace atp::sim {

Time RooflineTime(const Costs& costs, const DeviceShape& shape, const LaunchConfig& config,
                  const ExecResult& result);

}  // namespace atp::sim
