// SPDX-License-Identifier: Apache-2.0
// Divides a card's memory among the jobs on it. Pure functions: who holds the jobs' books asks anew
// whenever one comes, goes or has other needs (share_book.h).
//
// The least that a job can run with comes first: jobs that run keep theirs, jobs that wait are let
// in by priority and then in the order in which they came, while theirs fits. The rest goes to the
// highest priority first. Among equals each granule goes where it saves the most of a job's time,
// relative to what an iteration takes with everything on the card, times the job's weight. Jobs for
// which that is much the same (within a factor of 1.25) come to the same memory for their weight.
#pragma once

#include <cstdint>
#include <vector>

namespace atp::daemon {

using Bytes = uint64_t;

struct ShareJob {
  int priority = 0;  // higher is first
  double weight = 1;
  Bytes footprint = 0;  // all its memory: more is of no use
  Bytes least = 0;      // it cannot run with less
  Bytes most = 0;       // it must not have more; 0 = no limit
  bool runs = false;    // it has memory already, and cannot be made to wait
  // Seconds of an iteration by memory, ascending; what is between is taken as straight. Empty:
  // assumed (AssumedCurve).
  struct Point {
    Bytes memory = 0;
    double seconds = 0;
  };
  std::vector<Point> curve;
};

// Where nothing is known: the whole footprint is used once an iteration, which takes as long with
// everything on the card as moving half of the footprint there and back would.
std::vector<ShareJob::Point> AssumedCurve(Bytes footprint);

// Budgets in the order of the jobs; 0 = it has to wait. Their sum is never above `memory`, but for
// jobs that run: each has its least even where that does not fit. Jobs are in the order in which
// they came.
std::vector<Bytes> ShareMemory(Bytes memory, const std::vector<ShareJob>& jobs);

// What nobody uses as yet is for those who may use it soon: given to all that do not wait, by
// weight, up to what each may have. For a sum that fits.
std::vector<Bytes> WithTheRest(Bytes memory, const std::vector<ShareJob>& jobs,
                               std::vector<Bytes> budgets);

// `now` where that serves as well: nobody comes or goes, nothing exceeds its limits, and no budget
// would change by a thirty-second part of `memory`. Otherwise `wanted`.
std::vector<Bytes> Settled(Bytes memory, const std::vector<ShareJob>& jobs,
                           const std::vector<Bytes>& now, const std::vector<Bytes>& wanted);

}  // namespace atp::daemon
