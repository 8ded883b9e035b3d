// SPDX-License-Identifier: Apache-2.0
// ATP_ACCESS_STATS: for each kernel, the bytes that plans take its launches to touch against those
// that they have touched. Only the simulated machine knows the truth (atpSimTouched, in pieces of
// 64 KiB); on a real driver the table says so. Any thread, re-entry guard held. One lock, and a
// question to the machine after each launch: not for runs whose speed matters.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "shim/loop.h"

namespace atp::shim {

struct Schedule;
struct SimTouch;

// Bytes, summed over launches.
struct AccessCount {
  uint64_t launches = 0;         // compared: under a plan, and the truth is known
  uint64_t without_plan = 0;     // launches that no plan knew
  uint64_t predicted = 0;        // what the plan would move for them: whole blocks of 2 MiB
  uint64_t touched = 0;          // of managed memory
  uint64_t wrong = 0;            // predicted and not touched
  uint64_t wrong_in_blocks = 0;  // of these, in blocks of which nothing was touched
  uint64_t missed = 0;           // touched and not predicted
  void Add(const AccessCount& other);
};

struct AccessRange {
  uint64_t begin = 0, end = 0;
  bool operator==(const AccessRange&) const = default;
};

// One launch. `predicted`: whole blocks, sorted, without overlaps; `touched`: by address.
AccessCount CompareRanges(std::span<const AccessRange> predicted,
                          std::span<const SimTouch> touched);
// What a plan has a position touch, as CompareRanges takes it.
std::vector<AccessRange> PredictedRanges(const Schedule& schedule, uint32_t position);

// After each launch. `schedule` null: it ran under no plan.
void CompareAccess(const LaunchView& launch, const Schedule* schedule, uint32_t position);
AccessCount AccessSum();  // over all kernels so far
// At exit: a table in the log, or JSON in the file that ATP_ACCESS_STATS names.
void WriteAccessStats();

}  // namespace atp::shim
