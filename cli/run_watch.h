// SPDX-License-Identifier: Apache-2.0
// atp run as the parent of the program: shows progress, and makes the page of a program that was
// killed. Signals, exit code and terminal are as without it; the program has a pid of its own.
#pragma once

#include <functional>
#include <string>

#include "protocol/run_record_reader.h"

namespace atp::cli {

// Starts `program` (which execs) in a child whose processes keep their records in a folder of their
// own, waits for it, and gives its exit code; a signal that ended it ends this process too.
int RunWatched(bool progress, const std::function<void()>& program);

// "12 iterations, 38.4 /s, each 170 MiB in and 186 MiB out, 1.04 x bound_safe", of one device.
// `bound_safe` in seconds, 0 = not known.
std::string ProgressOf(const protocol::DeviceRun& run, double bound_safe);

}  // namespace atp::cli
