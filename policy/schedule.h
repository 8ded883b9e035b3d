// SPDX-License-Identifier: Apache-2.0
// A plan in its exchange form: what moves when in one steady period, in seconds from its start.
// Values only. Written and read as JSON by trace_json.h; checked by validate.h.
#pragma once

#include <cstdint>
#include <vector>

#include "policy/planner.h"
#include "policy/trace.h"

namespace atp::policy {

struct Schedule {
  enum class Kind { kD2h, kH2d, kDiscard };
  struct LaunchTime {
    uint32_t launch;
    double start, end;
  };
  struct Move {
    uint32_t tensor;
    Bytes offset, bytes;
    Kind kind;
    double start, end;  // an end beyond the period belongs to a move that wraps
  };
  struct Piece {
    uint32_t tensor;
    Bytes offset, bytes;
  };
  double period_seconds = 0;
  std::vector<LaunchTime> launches;
  std::vector<Move> moves;  // by start
  // On the device at time 0: also what is being copied out then, not what is being copied in.
  std::vector<Piece> initial;
};

Schedule ToSchedule(const Plan& plan);

}  // namespace atp::policy
