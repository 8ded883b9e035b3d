// SPDX-License-Identifier: Apache-2.0
// Runs all blocks of a launch, over threads where the kernel allows it, and puts the results
// together in block order.
#pragma once

#include <string>

#include "sim/exec/worker.h"

namespace atp::sim::exec {

ExecResult RunLaunch(Launch* launch, std::string* log);

}  // namespace atp::sim::exec
