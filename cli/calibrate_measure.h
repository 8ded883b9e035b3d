// SPDX-License-Identifier: Apache-2.0
// Measures a machine by a driver (docs/machine.md says how each figure comes about). One thread.
#pragma once

#include "cli/calibrate_driver.h"
#include "policy/machine_json.h"

namespace atp::cli {

struct CalibrationLimits {
  int repeats = 7;  // of each measurement: the middle one counts
};

// Uses at most an eighth of the memory that is free, of device and host each. Throws CommandError:
// too little is free, or a call fails.
policy::MeasuredMachine Measure(CalibrationDriver* driver, const CalibrationLimits& limits);

}  // namespace atp::cli
