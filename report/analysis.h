// SPDX-License-Identifier: Apache-2.0
// What the record of one device means: where the time of the measured iteration went, how far from
// the bounds that is, and which allocations and kernels cost most. Pure; any thread.
//
// A wait is a time in which the device ran no launch. Its cause is what the link did meanwhile: a
// copy to the device under way = waiting for H2D; else one to the host under way = waiting for D2H
// (room); neither = the host (the program, the driver, the shim). Times are measured by the
// device's events; moves by the shim's clock, tied to the events at the iteration's start.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "policy/trace.h"
#include "protocol/run_record_reader.h"

namespace atp::report {

enum Cause { kToDevice, kToHost, kHost };
inline constexpr int kCauses = 3;
using Waits = std::array<double, kCauses>;  // seconds by cause
double Sum(const Waits& waits);

struct LaunchTime {
  std::string name;
  double begin = 0, end = 0;  // seconds from the start of the iteration
  double best = 0;            // its shortest in any measured iteration
  Waits waits{};              // in front of it
  uint64_t resident_bytes = 0;
};

struct KernelTime {  // all launches of one name
  std::string name;
  uint32_t launches = 0;
  double seconds = 0, slower = 0;  // slower: than their best
  Waits waits{};
};

struct AllocationTraffic {  // of a part of an allocation, in a planned iteration
  uint64_t id = 0, offset = 0, bytes = 0, in_bytes = 0, out_bytes = 0, dropped_bytes = 0;
  bool written = false;
  std::string first_used_by;
};

struct Footprint {  // of what an iteration touches, by what becomes of it
  uint64_t stays = 0, dropped = 0, copied = 0;
  uint64_t total() const { return stays + dropped + copied; }
};

struct IterationTime {
  uint64_t number = 0;   // from 0, since memory first had to move
  double seconds = 0;    // 0 = not known
  bool by_host = false;  // by the host's clock, for want of the device's
  protocol::RunRecordRow row{};
};

struct Bounds {
  double compute = 0, any = 0, safe = 0;  // seconds; policy/bounds.h on the launches' best times
};

struct Analysis {
  std::vector<IterationTime> iterations;
  uint32_t phase = 0;          // that the rest is about: of the measured iteration
  double typical_seconds = 0;  // median of its latest planned iterations; 0 = not known
  double plain_seconds = 0;    // of its last one on plain managed memory; 0 = not known
  // All below: of the measured iteration.
  bool measured = false;
  uint64_t number = 0;
  double seconds = 0;  // to the start of the next one where that is known
  std::vector<LaunchTime> launches;
  double after_last = 0;  // waiting behind the last launch, for the host
  Waits waits{};
  double slower = 0;
  Bounds bounds;
  // What more memory would let everything overlap, by bound_safe; 0 = it does already.
  uint64_t missing_bytes = 0;
  policy::Trace trace;
  Footprint footprint;
  std::vector<KernelTime> kernels;             // by what they cost, worst first
  std::vector<AllocationTraffic> allocations;  // by what they move, worst first
};

Analysis Analyse(const protocol::DeviceRun& run);
// Only the parts that --progress and `atp top` show.
double TypicalSeconds(const protocol::DeviceRun& run);
double PlainSeconds(const protocol::DeviceRun& run);
Bounds BoundsOf(const protocol::MeasuredIteration& measured);

// The shortest run of launches, first and last, in front of which most of the waiting happens.
struct LaunchSpan {
  size_t first = 0, last = 0;
};
LaunchSpan WhereWaiting(const Analysis& analysis);

}  // namespace atp::report
