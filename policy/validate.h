// SPDX-License-Identifier: Apache-2.0
// Checks a schedule from the trace and the schedule alone. Shares no code with the planner, so that
// each checks the other. Pure; any thread; any input gives an answer.
//
// What must hold: launches run in order, each for its whole duration; memory is never exceeded,
// where room counts from the start of an h2d to the end of a d2h; a launch finds all it touches on
// the device and nothing it touches is in motion meanwhile; each direction obeys its rate (the
// moves of a direction can be run one after the other within their times, earliest end first, at
// full rate); what is discarded is dead or was never written in the period; and the period closes
// on itself.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "policy/schedule.h"
#include "policy/trace.h"

namespace atp::policy {

struct ValidateOptions {
  Bytes memory = 0;                 // 0 = trace.device_bytes
  double tolerance_seconds = 4e-9;  // rounding of times
  size_t most_problems = 20;
};

// Empty when the schedule holds; else the first problems in words.
std::vector<std::string> Validate(const Trace& trace, const Schedule& schedule,
                                  const ValidateOptions& options = {});

}  // namespace atp::policy
