// SPDX-License-Identifier: Apache-2.0
// Traces for chrome://tracing and Perfetto: a slice for each launch, on a track for each device and
// stream, one after another (a trace holds durations, no start times), and a counter of the bytes
// each touches. One-way. Format: "Trace Event Format", Google. Pure; any thread.
#pragma once

#include <string>

#include "policy/raw_trace.h"
#include "policy/trace.h"

namespace atp::cli {

std::string ChromeTrace(const policy::Trace& trace);
std::string ChromeTrace(const policy::RawTrace& trace);

}  // namespace atp::cli
