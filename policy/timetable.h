// SPDX-License-Identifier: Apache-2.0
// Second half of the planner: turns bytes per window into moves with exact times, checks memory at
// every instant, and lengthens pauses where rounding to granules asks for it. Called by MakePlan
// only. Pure; one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "policy/greedy.h"
#include "policy/layout.h"
#include "policy/lifetimes.h"
#include "policy/planner.h"
#include "policy/trace.h"

namespace atp::policy {

struct TimetableOptions {
  int64_t memory = 0;
  Bytes granule = 1;
  Bytes largest_move = 1;
};

class Timetable {
 public:
  struct Piece : Layout::Piece {
    int64_t window = 0;  // of the link in which it was meant to end (leaving) or start (returning)
  };

  // `greedy` has run; its pauses may grow.
  Timetable(const Trace& trace, const Lifetimes& life, Greedy& greedy,
            const TimetableOptions& options);

  // Lays out all moves; false when memory or order could not be kept within `rounds` repairs, or
  // `go_on`, called with the number of moves after each, said no.
  bool Build(int rounds, const std::function<bool(size_t)>& go_on);

  double period() const { return period_; }
  Layout layout() const;

 private:
  void SetLaunchTimes();
  void RunOut();
  void RunIn();
  bool Complete() const;
  bool RepairRoom();
  std::vector<Bytes> ReturnedEarly() const;
  bool RepairOrder();
  bool RepairOverlap(const std::vector<Piece>& pieces);
  size_t PauseAfter(double time) const;
  void Lengthen(size_t pause, double seconds);
  double WrapInto(double time) const;

  const Trace& trace_;
  const Lifetimes& life_;
  Greedy& greedy_;
  TimetableOptions options_;
  size_t n_;
  double period_ = 0;
  std::vector<double> start_, end_, cuts_;
  std::vector<double> added_;  // by this round of repairs, per pause
  std::vector<Piece> out_, in_;
};

}  // namespace atp::policy
