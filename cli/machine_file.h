// SPDX-License-Identifier: Apache-2.0
// Reads a machine file (policy/machine_json.h). Throws CommandError: no file, or not one.
#pragma once

#include <string>

#include "policy/machine_json.h"

namespace atp::cli {

policy::MeasuredMachine ReadMachineFile(const std::string& path);

}  // namespace atp::cli
