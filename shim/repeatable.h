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

// A launch that may run again as it was recorded, and what it writes then, whole.
struct Again {
  uint32_t position = 0;
  const FunctionInfo* info = nullptr;
  LaunchShape shape;
  std::vector<char> arguments;  // the parameter buffer
  struct Output {
    uint32_t pointer_at = 0;  // in `arguments`; nothing is read through it
    uint64_t address = 0, bytes = 0;
    int64_t begin = 0;                 // `address` less what the pointer says
    Allocation* allocation = nullptr;  // null: not watched
  };
  std::vector<Output> outputs;
  // It also uses small plain memory, of which nobody would notice a write: only at once it is
  // certain to write the same again.
  bool unwatched = false;
  // Equal for what was launched in the same way; and for what differs in its pointers only.
  uint64_t key = 0, kind = 0;
  uint64_t WrittenBytes() const;
};

struct Repeatable {
  std::vector<bool> launches;  // may run again
  std::vector<Again> again;    // those, by position
  uint64_t count = 0;          // of those
  uint64_t at_once = 0;        // of them, those that use what is not watched
  uint64_t written_bytes = 0;  // by them, in a period
  // Of the others: how many, by "kernel: reason".
  std::map<std::string, uint64_t> refused;
};

// `period` as recorded, before FindReaches. Any thread, without the lock of the loop; up to some
// ten milliseconds for each kernel of a program's first period, less later.
Repeatable FindRepeatable(const Recorder::Period& period);
const Again* AgainAt(const Repeatable& repeatable, uint32_t position);  // null: it may not

// It is this launch, to the last byte of what it was given.
bool IsLaunchOf(const Again& again, const LaunchView& launch);

// For ATP_LOG=info: one line, and one for each reason.
void LogRepeatable(const Repeatable& repeatable);

}  // namespace atp::shim
