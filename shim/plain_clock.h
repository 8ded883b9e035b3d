// SPDX-License-Identifier: Apache-2.0
// While nothing is planned, each launch leaves an event, so that what the periods before the first
// plan took on plain managed memory is known once they are found. The lock of the loop is held.
#pragma once

#include <cuda.h>

#include <array>
#include <cstdint>
#include <vector>

#include "shim/loop.h"
#include "shim/mover.h"

namespace atp::shim {

class PlainClock {
 public:
  static constexpr uint32_t kMostPeriods = 8;
  static constexpr uint64_t kRing = 4096;  // launches remembered

  explicit PlainClock(HintPort* port) : port_(port) {}
  void Launch(const LaunchView& launch);
  void Miss();  // a launch of which it is too late to say when it began
  // A plan begins with the launch just seen: the `periods` before it, of `length` launches, are to
  // be timed. Gives how many of them can be.
  uint32_t Planned(uint32_t length, uint64_t periods);
  // What they took, the newest first, once, when the device has come to their end; else 0 of them.
  using Seconds = std::array<double, kMostPeriods>;
  uint32_t Collect(Seconds* seconds);
  void Forget() { count_ = 0, length_ = 0; }
  uint64_t count() const { return count_; }
  // The event before launch `number`, counted from 0, of which kRing are remembered; null: it was
  // missed.
  CUevent EventOf(uint64_t number) const {
    const Begin& begin = ring_[number % kRing];
    return begin.known ? begin.event : nullptr;
  }

 private:
  struct Begin {
    CUevent event = nullptr;
    bool known = false;
  };
  const Begin& At(uint64_t back) const { return ring_[(count_ - 1 - back) % kRing]; }
  Begin& Next();

  HintPort* port_;
  std::vector<Begin> ring_;
  uint64_t count_ = 0;   // launches since the last Forget
  uint32_t length_ = 0;  // of the periods still to be read; 0 = none
  uint32_t periods_ = 0;
};

}  // namespace atp::shim
