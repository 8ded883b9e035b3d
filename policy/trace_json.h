// SPDX-License-Identifier: Apache-2.0
// Traces and schedules as JSON lines, from and to text (docs/trace.md). For the command line and
// tests; not linked into the shim. Pure but for memory; any thread.
//
// Reading never trusts its input: a malformed, truncated or hostile text gives false and an error
// that names line and field. Keys that mean nothing here are kept and written back.
#pragma once

#include <string>
#include <string_view>

#include "policy/raw_trace.h"
#include "policy/schedule.h"
#include "policy/trace.h"

namespace atp::policy {

enum class TraceBody { kNone, kTensor, kRaw };
// By the first line after the header; kNone when the text is no trace or has no body.
TraceBody DetectTraceBody(std::string_view text);

bool ReadTrace(std::string_view text, Trace* trace, std::string* error);
bool ReadRawTrace(std::string_view text, RawTrace* trace, std::string* error);
// Tensors are named by their ids, so the trace must be at hand.
bool ReadSchedule(std::string_view text, const Trace& trace, Schedule* schedule,
                  std::string* error);

std::string WriteTrace(const Trace& trace);
std::string WriteRawTrace(const RawTrace& trace);
// One object: {"period_s", "actions": [{"do", "tensor", ...}]}.
std::string WriteActions(const Trace& trace, const Plan& plan);
std::string WriteSchedule(const Trace& trace, const Schedule& schedule);

}  // namespace atp::policy
