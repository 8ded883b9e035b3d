// SPDX-License-Identifier: Apache-2.0
// Which launches of a period may run again, because their kernels' PTX proves (ptx/purity.h) that
// they would write the same bytes again, and why the others may not. For ATP_RECOMPUTE: launches
// whose output could be made again instead of being moved.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "shim/recorder.h"

namespace atp::shim {

struct Repeatable {
  std::vector<bool> launches;  // may run again
  uint64_t count = 0;          // of those
  uint64_t written_bytes = 0;  // by them, in a period
  // Of the others: how many, by "kernel: reason".
  std::map<std::string, uint64_t> refused;
};

// `period` as recorded, before FindReaches. Any thread, without the lock of the loop; up to some
// ten milliseconds for each kernel of a program's first period, less later.
Repeatable FindRepeatable(const Recorder::Period& period);

// For ATP_LOG=info: one line, and one for each reason.
void LogRepeatable(const Repeatable& repeatable);

}  // namespace atp::shim
