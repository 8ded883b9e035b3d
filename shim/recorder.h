// SPDX-License-Identifier: Apache-2.0
// Remembers the last launches and what they touched, and turns the last period into a trace for the
// planner. What a kernel touched is found again in its arguments when somebody asks, which few do:
// a launch costs little more than the copy of its arguments. Fixed memory, allocated once when the
// program first exceeds the budget; the lock of the loop is held.
#pragma once

#include <array>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "policy/sight.h"
#include "shim/loop.h"

namespace atp::shim {

class Recorder {
 public:
  static constexpr uint32_t kLaunches =
      1u << 16;  // the longest period that can be planned is half of it
  static constexpr uint32_t kTouches = 1u << 19;
  static constexpr uint32_t kArgumentBytes = 1u << 24;  // of all launches remembered

  void Record(const LaunchView& launch);
  // One that nobody has looked at, like the one `length` launches ago, for all that is known.
  void Repeat(uint32_t length);

  struct Period {
    static constexpr uint32_t kNowhere = UINT32_MAX;
    policy::SeenPeriod seen;
    std::vector<Allocation*> allocations;  // those of `seen`
    // Their sizes as mapped, and whether ReadMostly is not to be advised again.
    std::vector<uint64_t> mapped;
    std::vector<bool> written_anyway;
    std::vector<uint64_t> signatures;  // of the launches
    // What the launches were given, and what the same ones were given a period earlier (with the
    // same number of bytes); both lie in `argument_bytes`.
    struct Launched {
      const FunctionInfo* info = nullptr;  // null: not known, or no kernel
      LaunchShape shape;
      uint32_t first_argument = 0, argument_bytes = 0;
      uint32_t first_earlier = kNowhere;  // kNowhere: not known
    };
    std::vector<Launched> launched;
    std::vector<char> argument_bytes;
    // For each touch of `seen` where in the arguments its pointer lies; kNowhere: not known.
    std::vector<uint32_t> pointer_at;
    bool grows = false;  // FindReaches: arguments count on from period to period
    void Add(Allocation* allocation);
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
    uint64_t signature, identity;
    const FunctionInfo* info;
    LaunchShape shape;
    uint32_t touch_count;
    uint32_t argument_bytes;  // 0: not known, or no kernel
    uint64_t first_touch;     // counted from the start; taken modulo kTouches
    uint64_t first_argument;  // likewise, modulo kArgumentBytes; never wraps inside a launch
    // 0: its touches are remembered one by one. Else they are what its arguments point to, in
    // allocations no newer than this one: ids grow, so what is live and no newer was there then.
    uint64_t newest;
    bool packed;  // how the arguments were given: pointers may be anywhere in them
  };
  struct TouchEntry {
    uint64_t allocation_id, offset, bytes;
    bool reads, writes;
  };

  struct Found {
    Allocation* allocation;
    uint64_t offset, bytes;
    bool reads, writes;
    uint32_t pointer_at;
  };
  class Places;
  void RecordArguments(const LaunchArguments& arguments, Entry* entry);
  // False: something that it touched is gone, or not known any more.
  bool TouchesOf(const Entry& entry, const Places& places, std::vector<Found>* found) const;
  void AddArguments(uint64_t launch, uint32_t length, Period* period) const;
  std::span<const char> ArgumentsOf(const Entry& entry) const;  // empty: not known any more

  // Fresh from the system: pages are taken as they fill.
  struct Free {
    void operator()(void* row) const { std::free(row); }
  };
  template <typename T>
  using Row = std::unique_ptr<T[], Free>;
  template <typename T>
  static Row<T> NewRow(size_t count);
  Row<Entry> entries_;
  Row<TouchEntry> touches_;
  Row<char> arguments_;
  uint64_t launches_ = 0, touched_ = 0, argument_bytes_ = 0;
};

// Before a planned period has run no duration is known, faults hide them. A plan for launches that
// take no time would leave moves to the launches that need them. So `total` seconds are given to
// the launches by the bytes that they touch, which spreads moves over the period.
void AssumeDurations(double total, policy::Trace* trace);

}  // namespace atp::shim
