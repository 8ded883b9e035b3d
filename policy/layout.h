// SPDX-License-Identifier: Apache-2.0
// When everything in one steady period happens: what the planner's ways of planning produce, before
// it becomes a Plan. Values only.
#pragma once

#include <cstdint>
#include <vector>

#include "policy/trace.h"

namespace atp::policy {

struct Layout {
  // A contiguous part of one interval's bytes on the link; times count from the start of the period
  // in which the interval begins, so an interval that wraps has times beyond the period.
  struct Piece {
    uint32_t interval;
    Bytes offset, bytes;
    double start, end;
  };
  double period = 0;
  std::vector<double> launch_start, launch_end;
  std::vector<Piece> out, in;
};

}  // namespace atp::policy
