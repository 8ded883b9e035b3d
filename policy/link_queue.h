// SPDX-License-Identifier: Apache-2.0
// Runs jobs over one direction of the link, period after period, in whole granules and never idle
// while a job is ready. Used by the planner for both directions (the way back runs in reversed
// time). Pure; one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "policy/trace.h"

namespace atp::policy {

// Rate of the link over one period; repeats. Pieces are in order, the first starts at 0.
struct RateProfile {
  std::vector<double> from;
  std::vector<double> rate;  // bytes per second
  double period = 0;
};

struct LinkJob {
  double release = 0;  // seconds from the start of the period
  int64_t order = 0;   // smaller goes first among those that are ready
  uint32_t id = 0;
  Bytes bytes = 0;
};

struct LinkPiece {
  uint32_t id;
  Bytes offset, bytes;  // in the job
  double start, end;    // may lie beyond the period
};

struct LinkQueueOptions {
  Bytes granule = 1;
  Bytes largest = 1;         // piece, at least a granule
  bool tail_first = false;   // the part that is no whole granule goes first instead of last
  int64_t order_period = 0;  // added to `order` with each period
};

// The pieces of one period in the steady state, in order of start; none if the link never runs.
// `cuts` are times in the period, sorted: no piece crosses one unless it is a single granule.
std::vector<LinkPiece> RunLinkQueue(const std::vector<LinkJob>& jobs, const RateProfile& profile,
                                    const std::vector<double>& cuts,
                                    const LinkQueueOptions& options);

}  // namespace atp::policy
