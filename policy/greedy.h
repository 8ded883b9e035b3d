// SPDX-License-Identifier: Apache-2.0
// First half of the planner: how many bytes of each inactive interval leave, in which windows of
// the link, and where pauses cannot be avoided. Called by MakePlan only. Pure; one thread.
//
// Method (G10's interval view, MICRO'23; Belady's furthest next use; parts of tensors as
// vTensor's): launches in time order; at an overflow the victim is what is needed again latest
// among what can still leave before the launch; it leaves in the earliest free link time and
// returns in the latest; room counts for the whole of every window in which a byte moves, and no
// byte returns before the last launch that still overflows. Link time that is missing becomes a
// pause before the launch (leaving) or before the next use (returning). When everything that waits
// over a launch is already a victim but not away at that launch, its stay is stretched.
#pragma once

#include <cstdint>
#include <vector>

#include "policy/latest_use.h"
#include "policy/lifetimes.h"
#include "policy/link_budget.h"
#include "policy/overflow_row.h"
#include "policy/trace.h"

namespace atp::policy {

struct GreedyOptions {
  int64_t memory = 0;  // bytes that may be used
  int64_t slack = 0;   // kept free in addition where that is possible, for rounding to granules
  int64_t granule = 1;
  bool clean_leaves_free = false;
  // Brief absences: a victim may return before the next launch that still overflows, and leave the
  // room there to others. They spare pauses where little is away for long, or where memory is very
  // tight, and waste the link elsewhere.
  enum class Brief { kNever, kWithoutPause, kAlways };
  Brief brief = Brief::kNever;
};

class Greedy {
 public:
  // Bytes of one interval in one window, counted from the period in which the interval begins.
  using Shares = std::vector<LinkBudget::Share>;
  struct Amounts {
    int64_t bytes = 0;   // that leave and return
    bool copies = true;  // false: leaves at once and without the link
    Shares out, in;
  };

  Greedy(const Trace& trace, const Lifetimes& life, const LinkRates& rates,
         const GreedyOptions& options);
  void Run();

  const std::vector<Amounts>& amounts() const { return amounts_; }
  LinkBudget& budget() { return budget_; }
  const LinkBudget& budget() const { return budget_; }

 private:
  // A cyclic interval as launch k of [0, n) sees it: possibly begun in the period before.
  struct View {
    uint32_t interval;
    int64_t last_use, next_use;
  };
  struct Side {                // intervals that leave by the link, or for free
    std::vector<View> views;   // by last_use
    std::vector<size_t> upto;  // views with last_use < k - n, for k in [0, 2n]
    std::vector<std::vector<uint32_t>> views_of;
  };

  static LatestUse MakeTree(const Side& side);
  void AddViews(Side& side, bool copies);
  int64_t Overflow(int64_t k) const { return overflow_[k]; }
  void Occupy(int64_t first_launch, int64_t next_use, int64_t bytes);
  void ApplyShare(const LinkBudget::Share& share, Direction direction, int64_t next_use, int sign);
  enum class Way { kFree, kFreeBrief, kPause, kPauseBrief };
  bool Relieve(int64_t k, Way way);
  bool Best(int64_t k, Way way, View& view) const;
  int64_t ReturnFrom(const View& view, int64_t k, Way way) const;
  int64_t Size(const View& view, int64_t need) const;
  void Move(const View& view, int64_t k, int64_t return_from, int64_t bytes);
  void Pause(const View& view, int64_t k, int64_t return_from, int64_t bytes);
  void Stretch(int64_t k);
  int64_t StretchOne(const View& view, int64_t k, int64_t need, bool may_pause,
                     Direction direction);
  int64_t Remaining(const View& view) const;

  const Lifetimes& life_;
  GreedyOptions options_;
  int64_t n_;
  LinkBudget budget_;
  OverflowRow overflow_;  // per launch, with the slack where something must move at all
  std::vector<Amounts> amounts_;
  Side copied_, free_;
  LatestUse copied_tree_, free_tree_;
};

}  // namespace atp::policy
