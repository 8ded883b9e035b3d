// SPDX-License-Identifier: Apache-2.0
#include "shim/launch_inbox.h"

#include <algorithm>

namespace atp::shim {

void LaunchInbox::Open() {
  if (cells_ != nullptr) return;
  cells_ = std::make_unique<Cell[]>(kCells);
  for (uint64_t i = 0; i < kCells; ++i) cells_[i].turn.store(i, std::memory_order_relaxed);
}

bool LaunchInbox::Put(const LaunchView& launch) {
  if (launch.touch_count > kTouches) return false;
  uint64_t number = claimed_.load(std::memory_order_relaxed);
  for (;;) {
    Cell& cell = cells_[number % kCells];
    const uint64_t turn = cell.turn.load(std::memory_order_acquire);
    if (turn == number) {
      if (!claimed_.compare_exchange_weak(number, number + 1, std::memory_order_acq_rel)) continue;
      cell.launch = launch;
      cell.launch.arguments = {};  // the program's; gone when the launch is looked at
      cell.launch.uses = nullptr;
      cell.launch.use_count = 0;
      std::copy_n(launch.touches, launch.touch_count, cell.touches.begin());
      cell.launch.touches = cell.touches.data();
      cell.turn.store(number + 1, std::memory_order_release);
      return true;
    }
    if (turn < number) return false;  // a round ago, and not yet taken
    number = claimed_.load(std::memory_order_relaxed);
  }
}

}  // namespace atp::shim
