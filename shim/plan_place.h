// SPDX-License-Identifier: Apache-2.0
// Where the program is in the plan that runs, for launches that find the lock of the loop taken.
// One for which the plan has nothing to do moves on by itself: the place is a word that names plan
// and position, changed only by compare-and-swap while it is open, and all else that decides is in
// the plan, which never changes. Whoever loses, or finds it closed, goes by way of the lock.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "shim/schedule.h"

namespace atp::shim {

class PlanPlace {
 public:
  static constexpr uint32_t kNowhere = UINT32_MAX;

  // Any thread, without the lock. The position that a launch of this signature has taken, the next
  // one; kNowhere: the place is closed, or that position is another launch's, or it has something
  // to do.
  uint32_t Pass(uint64_t signature);

  // The lock is held.
  // The launch at `position` was the last one, and all that it and those before it need is on its
  // way. `generation` is the plan's; the place is closed.
  void Open(const std::shared_ptr<const Schedule>& schedule, uint64_t generation,
            uint32_t position);
  bool open() const { return word_.load(std::memory_order_relaxed) != 0; }
  // As Pass, while the lock keeps the plan where it is.
  uint32_t PassLocked(uint64_t signature);
  // Nobody passes from now on. The position of the last launch that has; `position` when it was
  // closed already.
  uint32_t Close(uint32_t position);
  // Closes only if nobody has passed since `position`. False: somebody has.
  bool CloseAt(uint32_t position);

 private:
  // Generation, and position + 1; 0 is closed.
  static uint64_t Word(uint64_t generation, uint32_t position) {
    return generation << 32 | (position + 1);
  }
  static uint32_t PositionIn(uint64_t word) { return static_cast<uint32_t>(word) - 1; }
  static uint64_t Generation(uint64_t word) { return word >> 32; }
  uint32_t Advance(uint64_t word, const Schedule& schedule, uint64_t signature);

  // A reader counts itself in, reads the word, and then the plan. Who replaces a plan has closed
  // the place before, and looks at the count after: a reader that is not among those counted comes
  // later, and finds the new plan or a closed place. All of these are sequentially consistent.
  std::atomic<uint64_t> word_{0};
  std::atomic<const Schedule*> shown_{nullptr};
  std::atomic<uint32_t> readers_{0};
  std::shared_ptr<const Schedule> schedule_;
  std::vector<std::shared_ptr<const Schedule>> retired_;  // a reader may be in the middle of one
};

}  // namespace atp::shim
