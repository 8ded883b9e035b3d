// SPDX-License-Identifier: Apache-2.0
// Remembers the last launches and what they touched, and turns the last period into a trace for the
// planner. Fixed memory, allocated once when the program first exceeds the budget; the lock of the
// loop is held.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "policy/trace.h"
#include "shim/loop.h"
#include "shim/schedule.h"

namespace atp::shim {

class Recorder {
 public:
  static constexpr uint32_t kLaunches =
      1u << 16;  // the longest period that can be planned is half of it
  static constexpr uint32_t kTouches = 1u << 19;

  void Record(const LaunchView& launch);

  struct Period {
    policy::Trace trace;  // tensors[i] lies at placed[i]
    std::vector<Placed> placed;
    std::vector<uint64_t> signatures, identities;  // of the launches
    bool usable =
        false;  // false: a touched allocation is gone, or the period is longer than the memory
  };
  // The last `length` launches. `seconds` = measured duration of each, or empty when none is known
  // yet: all are 0 then (AssumeDurations).
  Period Last(uint32_t length, const std::vector<double>& seconds,
              const std::unordered_map<uint64_t, Allocation*>& live) const;

  // Where the program first began to launch as in this period, as far back as is remembered.
  struct Beginning {
    uint32_t rotation = 0;             // the position with which it began
    std::array<uint64_t, 4> before{};  // signatures before it, the last one at the end; 0 = none
  };
  Beginning BeginningOf(const std::vector<uint64_t>& signatures) const;

 private:
  struct Entry {
    uint64_t signature = 0, identity = 0;
    uint32_t touch_count = 0;
    uint64_t first_touch = 0;  // counted from the start; taken modulo kTouches
  };
  struct TouchEntry {
    uint64_t allocation_id;
    bool reads, writes;
  };

  std::vector<Entry> entries_;
  std::vector<TouchEntry> touches_;
  uint64_t launches_ = 0, touched_ = 0;
};

// Before a planned period has run no duration is known, faults hide them. A plan for launches that
// take no time would leave moves to the launches that need them. So `total` seconds are given to
// the launches by the bytes that they touch, which spreads moves over the period.
void AssumeDurations(double total, policy::Trace* trace);

}  // namespace atp::shim
