// SPDX-License-Identifier: Apache-2.0
// Launches that came while another thread had the lock of the loop: left here without waiting, and
// looked at by whoever has the lock next. A ring in which each cell says whose turn it is (the
// bounded queue by Dmitry Vyukov, 1024cores.net), so that neither side waits for the other. Put:
// any thread. Take: with the lock of the loop held.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>

#include "shim/loop.h"

namespace atp::shim {

class LaunchInbox {
 public:
  static constexpr uint64_t kCells = 128;
  static constexpr size_t kTouches = 64;  // of a launch

  void Open();  // memory for the cells, before the first Put
  // False: no cell is free, or it touches more than a cell holds.
  bool Put(const LaunchView& launch);
  // Calls look(view) for the launches that are there, in the order of Put, but for no more than
  // kAtOnce, so that no thread is kept busy by the others. True: none is left. (One that is half
  // written counts as there, and hides those behind it: a matter of nanoseconds, unless its thread
  // has been put to sleep.)
  static constexpr unsigned kAtOnce = 8;
  template <typename Look>
  bool Take(Look look) {
    for (unsigned n = 0; cells_ != nullptr && n < kAtOnce; ++n) {
      Cell& cell = cells_[taken_ % kCells];
      if (cell.turn.load(std::memory_order_acquire) != taken_ + 1) break;
      const uint64_t number = taken_++;  // first: `look` may give up the lock for a while
      look(cell.launch);
      cell.turn.store(number + kCells, std::memory_order_release);
    }
    return claimed_.load(std::memory_order_acquire) == taken_;
  }

 private:
  struct Cell {
    std::atomic<uint64_t> turn{0};  // = n: free for launch number n; = n + 1: holds it
    LaunchView launch;
    std::array<Touch, kTouches> touches;
  };
  std::unique_ptr<Cell[]> cells_;
  std::atomic<uint64_t> claimed_{0};
  uint64_t taken_ = 0;
};

}  // namespace atp::shim
