// SPDX-License-Identifier: Apache-2.0
// The linear program of lp_bound.h without a solver: its columns, and rows as they are asked for.
// Bytes are in GB (1e9), so that all coefficients are near 1. Used by lp_bound.cc only; one thread.
#pragma once

#include <cstdint>
#include <vector>

#include "policy/recompute.h"
#include "policy/trace.h"

namespace atp::policy {

// sum of value[i] * column[i] >= at_least
struct LpRow {
  std::vector<int> columns;
  std::vector<double> values;
  double at_least = 0;
};

class LpModel {
 public:
  // Intervals between the same two launches, of one class, are one column.
  struct Column {
    uint32_t first = 0,
             last = 0;  // the launches inside, `last` counts on past the end of the period
    double gb = 0;
    bool copied_out = true;
  };

  // Part of an interval may be dropped, and come back by running for so long.
  struct Rerun {
    int first = 0, last = 0;  // the launches inside; it does not reach into the next period
    double gb = 0, seconds = 0;
    size_t interval = 0;  // the column that it is a part of
  };

  // `recompute`: candidates of RecomputeSet.
  LpModel(const Trace& trace, Bytes memory, bool clean_leaves_free,
          const std::vector<Recomputation>& recompute = {});

  int launches() const { return n_; }
  const std::vector<Column>& intervals() const { return intervals_; }
  const std::vector<Rerun>& reruns() const { return reruns_; }
  double compute(int k) const { return compute_[Fold(k)]; }
  double excess(int k) const { return excess_[Fold(k)]; }  // GB of live bytes above memory
  double rate_in() const { return in_; }                   // GB/s
  double rate_out() const { return out_; }
  // Seconds of link time for a GB in and a GB out, in row 0 or 1 of the link.
  double in_share(int row) const { return row == 0 ? a1_ : b2_; }
  double out_share(int row) const { return row == 0 ? b1_ : a2_; }

  // Columns: the pauses s_k, then y, then the bytes away during each launch, then r.
  int PauseColumn(int k) const { return int(Fold(k)); }
  int IntervalColumn(size_t i) const { return n_ + int(i); }
  int AwayColumn(int k) const { return n_ + int(intervals_.size()) + int(Fold(k)); }
  int RerunColumn(size_t i) const { return 2 * n_ + int(intervals_.size() + i); }
  int columns() const { return 2 * n_ + int(intervals_.size() + reruns_.size()); }

  // Equalities (written as rows, at_least = the right side): away_k from away_{k-1}, and away_0.
  std::vector<LpRow> AwayRows() const;
  // Nothing is both moved and dropped: one row for each interval that may be dropped.
  std::vector<LpRow> ShareRows() const;
  // The link row for the cyclic window [a, e], a <= e < a + n.
  LpRow LinkRow(int row, int a, int e) const;
  // The row "by launch" with a = k - back and b = k + ahead - 1; back = -1: nothing left lately, so
  // that only the way back counts; ahead = 0: only the way out.
  LpRow ByLaunchRow(int k, int back, int ahead) const;
  // The intervals around launch k, each with the launches since it began and until it ends.
  struct Around {
    size_t interval;
    int since, until;
  };
  std::vector<Around> AroundLaunch(int k) const;

 private:
  // Adds `value` for each second of the pauses after launches from..to, and of what may run again
  // in them: anywhere between the uses around the drop.
  void AddPauses(int from, int to, double value, std::vector<double>* row) const;
  LpRow Sparse(const std::vector<double>& row, double at_least) const;
  size_t Fold(int k) const { return size_t(((k % n_) + n_) % n_); }

  int n_ = 0;
  std::vector<double> compute_, excess_;
  std::vector<Column> intervals_;
  std::vector<Rerun> reruns_;
  double in_ = 0, out_ = 0, a1_ = 0, b1_ = 0, a2_ = 0, b2_ = 0;
};

}  // namespace atp::policy
