// SPDX-License-Identifier: Apache-2.0
// Plans one steady period: what leaves the device after which launch, and what comes back before
// which. Pure: no I/O, no threads, no globals; the same input gives the same plan.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "policy/trace.h"

namespace atp::policy {

// A part of a tensor leaves the device or comes back. Positions are launch indices of the period; a
// move may wrap around its end.
struct Move {
  enum class Kind { kEvict, kFetch };
  Kind kind = Kind::kEvict;
  uint32_t tensor = 0;
  Bytes offset = 0, bytes = 0;
  // kEvict: may start once launch `after` has finished (its last user). kFetch: must be complete
  // before launch `before` starts. Both kinds carry both positions: `after` < `before` is a stay on
  // the host inside the period, else one that wraps around.
  uint32_t after = 0, before = 0;
  // When the plan runs it, in seconds from the start of the period; `end` may exceed the period for
  // a move that wraps.
  double start = 0, end = 0;
  bool copies = true;  // false: leaves without a copy (clean with a valid host copy)
};

struct PlanOptions {
  Bytes memory = 0;          // 0 = trace.device_bytes
  Bytes host_memory = 0;     // 0 = no limit; Plan::host_bytes never exceeds it
  Bytes head_room = 0;       // kept free so that the driver never evicts by itself
  Bytes granule = 2u << 20;  // moves are multiples of it, except a tensor's tail
  // Tensors that the period never writes leave without a copy: once advised ReadMostly, their host
  // copy stays valid. Except those in `never_advised` (indices into Trace::tensors), where the
  // caller cannot or will not advise.
  bool clean_leaves_free = false;
  std::vector<uint32_t> never_advised;
  // Data may stay in host memory for good and be accessed over the link (Plan::mapped), where that
  // is faster than any plan that moves (mapped.h). Such a plan has no moves. Except those in
  // `never_advised`.
  bool may_map = false;
  // Per tensor, how sure its uses are (extents.h, durations.h); empty = all are certain. What is
  // less sure than `least_confidence` is neither moved nor counted on to leave: it is left to
  // faults and keeps its room.
  std::vector<double> confidence;
  double least_confidence = 0.5;
  // How far the durations may be off, relative (Durations: the spread of its measurements). Of
  // plans that are as fast to a thousandth, the one is made that would hold if every launch took so
  // much less, or as much of it as costs nothing. Costs up to five plans' time where it has a
  // choice.
  double duration_spread = 0;
  // From when data has left (its last user's end, or its copy's) to when a copy into its room can
  // begin: a waiting thread wakes and calls the driver twice. Plans that need each other's room at
  // once lose it with every move; where it counts, another way of moving as much is as fast.
  double turnaround_seconds = 0;
  double cpu_seconds_per_granule = 0;  // driver CPU time for each moved granule, each direction
  Bytes largest_move = 16u << 20;  // a move is never larger, so that memory frees up step by step
};

struct Plan {
  double period_seconds = 0;  // compute + stalls
  double compute_seconds = 0;
  double stall_seconds = 0;
  std::vector<double> launch_start, launch_end;  // seconds
  std::vector<Move> evictions;                   // in order of start
  std::vector<Move> fetches;                     // in order of start
  struct Piece {
    uint32_t tensor;
    Bytes offset, bytes;
  };
  std::vector<Piece> initially_resident;  // at time 0 of the steady period
  // Tensors that the plan counts on as ReadMostly, ascending: all their evictions have copies ==
  // false. To be advised before the first period that runs by this plan; a first eviction before a
  // host copy exists still costs its copy.
  std::vector<uint32_t> advised;
  // Tensors that never come to the device, ascending: to be advised to stay on the host and be
  // mapped by the device. Launches take as much longer as launch_end says.
  std::vector<uint32_t> mapped;
  Bytes mapped_h2d = 0, mapped_d2h = 0;  // accessed over the link in a period
  Bytes moved_h2d = 0, moved_d2h = 0;
  // Host memory that the period needs at once: unified memory keeps the host's pages of what has
  // left until the tensor dies.
  Bytes host_bytes = 0;
  bool feasible = true;  // false: `why` names the launch that cannot fit
  std::string why;
};

// Greedy in two steps (docs/policy.md, "Planner"): launches in time order, victims by furthest next
// use in parts of tensors (G10, MICRO'23; vTensor, JCST 40(6) 2025), D2H in the earliest free link
// time, H2D in the latest safe one, room reserved from the start of a fetch to the end of an
// eviction, stalls only where unavoidable. O((n + moves) log n); a re-plan costs the same.
Plan MakePlan(const Trace& trace, const PlanOptions& options);

}  // namespace atp::policy
