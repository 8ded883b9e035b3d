// SPDX-License-Identifier: Apache-2.0
// A plan in the form that movers execute: ordered lists of ranges, tied to launch positions of the
// period. Immutable once built. No CUDA calls here.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "policy/planner.h"
#include "shim/loop.h"

namespace atp::shim {

struct Repeatable;

// One tensor of the period's trace and where it lies.
struct Placed {
  Allocation* allocation = nullptr;
  uint64_t offset = 0;
  uint64_t bytes = 0;        // whole granules
  uint32_t first_touch = 0;  // position
  bool written = true;       // by some launch of the period
};

struct Action {
  Allocation* allocation = nullptr;
  uint64_t offset = 0, bytes = 0;
  uint32_t position = 0;  // evict: after this launch; fetch: before this launch
  static constexpr uint32_t kNoPartner = UINT32_MAX;
  uint32_t partner = kNoPartner;  // fetch: index of the eviction that took the range out
  bool partner_in_previous_period = false;
  // A fetch of what should be resident anyway: copies nothing then, but moves the range to the tail
  // of the driver's eviction list, and brings it back should the driver have evicted it. No
  // partner.
  bool touch = false;
  // A fetch before the first period of what may be on the device already: counted as resident.
  bool in_place = false;
  // evict: the period only reads the range. With a copy on the host it leaves without being copied
  // (ReadMostly); fetch: brings back such a range.
  bool clean = false;
  // evict: index + 1 in Schedule::drops: what it holds is given up, if that may be (debts.h);
  // fetch: gives such a range room again, for the launch that makes it again.
  uint32_t drop = 0;
};

// A range that is dropped behind a launch and made again before another one, by the launch that
// made it first.
struct Drop {
  Allocation* allocation = nullptr;
  uint64_t bytes = 0;
  uint32_t producer = 0, after = 0, before = 0;  // positions
};

struct Schedule {
  uint32_t length = 0;                // launches in a period
  std::vector<Action> evicts;         // in the order in which movers take them
  std::vector<Action> fetches;        // ordered by position; touches among them
  std::vector<uint32_t> fetch_cut;    // per position: fetches needed by it or by an earlier one
  std::vector<uint32_t> flag_index;   // per position: its index among flagged ones, or kNotFlagged
  std::vector<uint32_t> oldest_flag;  // per eviction: the smallest flag index that it or a later
                                      // one of the period waits for
  // Per eviction: fetches that the plan has begun before it, of those in front of the first one
  // that it has not; those of the next period too, for one that is put off into it. Where copies
  // out slow the copies in, it puts some off (policy/flow.h).
  std::vector<uint32_t> behind;
  uint32_t flagged = 0;  // positions after which an event is recorded, because an eviction follows
  std::vector<uint64_t> signatures;            // of the launches: by them the program is followed
  std::vector<uint64_t> identities;            // LaunchView::identity of each, for later runs
  std::vector<Placed> tensors;                 // what the period touches
  std::shared_ptr<const policy::Trace> trace;  // what was planned; its tensor i is tensors[i]
  std::vector<Action> out_at_start;            // ranges that are on the host when a period starts
  // Which of its launches may run again; null where nobody has asked (ATP_RECOMPUTE).
  std::shared_ptr<const Repeatable> repeatable;
  std::vector<Drop> drops;  // by `before`, and there in the order in which they are made again
  // Per position: from a producer of `drops` to the launch that needs it again, so that the launch
  // has to be the one that was planned, to the byte. Empty: nothing is dropped.
  std::vector<bool> checked;
  double rerun_seconds = 0;  // of a period: running again, as planned
  // Some of it was cut by guesses of what launches reach.
  bool by_parts = false;
  bool grows = false;  // what launches reach changes from period to period
  bool trial = false;  // made by choices that are on trial (tuning_trial.h)
  uint64_t moved_in_bytes = 0, moved_out_bytes = 0;  // copied in a period
  double promise_seconds = 0;
  double bound_seconds = 0;  // bound_safe of the trace as the shim sees it

  static constexpr uint32_t kNotFlagged = UINT32_MAX;

  // The launch at this position has nothing to wait for, nothing waits for it, and it neither
  // begins the period nor ends it. False beyond the end.
  bool IsIdle(uint64_t position) const {
    return position > 0 && position + 1 < length && flag_index[position] == kNotFlagged &&
           fetch_cut[position] == fetch_cut[position - 1] &&
           (checked.empty() || !checked[position]);
  }
};

// As the plan has it, by tensor.
struct PlannedDrop {
  uint32_t tensor = 0, producer = 0, after = 0, before = 0;
};

// Pieces larger than `piece_bytes` are cut, so that a device-wide synchronisation of the program
// waits little for one call.
Schedule BuildSchedule(const policy::Plan& plan, const std::vector<Placed>& tensors,
                       uint32_t length, uint64_t piece_bytes, bool touches = true,
                       const std::vector<PlannedDrop>& drops = {});

}  // namespace atp::shim
