// SPDX-License-Identifier: Apache-2.0
// Can the dynamic linker load a preloaded library into this program? Reads the file's header only.
// For atp run --require.
#pragma once

#include <string>

namespace atp::cli {

// The file that execvp would start for `program` ("" when there is none), looked for in `path` (the
// value of PATH).
std::string FindProgram(const std::string& program, const std::string& path);
// Why the shim cannot be loaded into `file`, with the remedy; empty when it can. A script is judged
// by its interpreter.
std::string WhyNotServable(const std::string& file);

}  // namespace atp::cli
