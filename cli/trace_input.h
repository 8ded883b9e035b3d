// SPDX-License-Identifier: Apache-2.0
// Reads the trace files that commands are given, in any form: JSON lines or binary, one steady
// period (tensor body) or a whole run (raw body), whose last steady period is then taken. Throws
// CommandError. One thread.
#pragma once

#include <string>
#include <variant>

#include "policy/raw_trace.h"
#include "policy/trace.h"

namespace atp::cli {

// Exit codes of the commands that read traces (docs/cli.md).
inline constexpr int kExitUnreadable = 3;  // a file that cannot be read, or is no trace
inline constexpr int kExitInfeasible = 4;  // a launch that cannot fit into the memory
inline constexpr int kExitWrite = 5;       // an output file that cannot be written

using AnyTrace = std::variant<policy::Trace, policy::RawTrace>;

// `salvage`: a binary trace whose last chunk is cut off is taken without it.
AnyTrace ReadAnyTrace(const std::string& path, bool salvage = false);
// One steady period.
policy::Trace ReadPeriod(const std::string& path);

void WriteFile(const std::string& path, const std::string& text);

}  // namespace atp::cli
