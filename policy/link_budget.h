// SPDX-License-Identifier: Apache-2.0
// How many bytes each direction of the link can still carry in each window of a period. Window 2k
// is launch k, window 2k+1 the pause after it; window numbers may run past either end of the
// period. Both directions share a window as link_region.h says. Used by the planner only; one
// thread.
#pragma once

#include <cstdint>
#include <vector>

#include "policy/fenwick.h"
#include "policy/link_region.h"
#include "policy/trace.h"

namespace atp::policy {

enum class Direction { kIn, kOut };  // host to device, device to host

class LinkBudget {
 public:
  struct Share {
    int64_t window;  // as asked for, not folded into the period
    int64_t bytes;
  };

  LinkBudget(const LinkRates& rates, std::vector<double> window_seconds);

  // Free bytes of the windows [from, to]; to - from < number of windows.
  int64_t Free(Direction direction, int64_t from, int64_t to) const;
  // Takes `bytes` (which must be free) from the earliest or from the latest windows of [from, to].
  std::vector<Share> TakeEarliest(Direction direction, int64_t from, int64_t to, int64_t bytes);
  std::vector<Share> TakeLatest(Direction direction, int64_t from, int64_t to, int64_t bytes);
  void GiveBack(Direction direction, const Share& share);
  // The last window w of [from, to] such that [w, to] has `bytes` free; from - 1 if there is none.
  int64_t LastStart(Direction direction, int64_t from, int64_t to, int64_t bytes) const;
  // Makes a window longer, so that `bytes` more fit in.
  void LengthenFor(int64_t window, Direction direction, int64_t bytes);
  void Lengthen(int64_t window, double seconds);

  const std::vector<double>& seconds() const { return seconds_; }
  int64_t Used(Direction direction, size_t window) const {
    return used_[static_cast<int>(direction)][window];
  }
  double Rate(Direction direction) const { return direction == Direction::kIn ? in_ : out_; }
  bool coupled() const { return region_.coupled; }
  // Rate at which one direction may run in a window, leaving the other its planned share.
  double PlannedRate(Direction direction, size_t window) const;
  // Greatest rate of one direction while the other runs at `other` bytes per second.
  double RateBeside(Direction direction, double other) const;

 private:
  size_t Fold(int64_t window) const;
  int64_t Capacity(Direction direction, size_t window) const;
  void Refresh(size_t window);
  void Take(Direction direction, int64_t window, int64_t bytes, std::vector<Share>& shares);

  std::vector<double> seconds_;
  std::vector<int64_t> used_[2], free_[2];
  std::vector<Fenwick> sums_;
  double in_, out_;
  LinkRegion region_;
};

}  // namespace atp::policy
