// SPDX-License-Identifier: Apache-2.0
// Runs all blocks of a launch, over threads where the kernel allows it, and puts the results
// together in block order.
#pragma once

#include <string>
#include <vector>

#include "sim/exec/worker.h"

namespace atp::sim::exec {

// `regions` receives the pieces of memory that were accessed, each once.
ExecResult RunLaunch(Launch* launch, std::string* log, std::vector<Region>* regions);

}  // namespace atp::sim::exec
