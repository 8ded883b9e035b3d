// SPDX-License-Identifier: Apache-2.0
// The analysis of a device in plain words, most important first. What rests on a model and not on a
// measurement says so. Pure; any thread.
#pragma once

#include <string>
#include <vector>

#include "protocol/run_record_reader.h"
#include "report/analysis.h"

namespace atp::report {

std::vector<std::string> InPlainWords(const protocol::DeviceRun& run, const Analysis& analysis);
std::vector<std::string> WhatWasLearned(const protocol::DeviceRun& run, const Analysis& analysis);
std::vector<std::string> WhatWasSwitchedOff(const protocol::DeviceRun& run);

// "waiting for H2D" and the like.
const char* CauseName(int cause);

}  // namespace atp::report
