// SPDX-License-Identifier: Apache-2.0
// Learns the link's rates from the moves that the movers make: each direction alone, and each while
// the other one is busy too. No driver calls, no locks: the loop's lock is held.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace atp::shim {

class LinkMeter {
 public:
  // A move that was asked for at `begin_ns` and had arrived at `end_ns`, on one clock for both
  // directions. Moves of a direction come in the order of their ends.
  void Moved(bool to_device, uint64_t begin_ns, uint64_t end_ns, uint64_t bytes);

  struct Rates {  // bytes per second, 0 = not known
    double alone = 0;
    double duplex = 0;  // while the other direction moves too
  };
  // Least squares over the time that each queued move took on the link, split into the part during
  // which the other direction was busy and the rest. A part that is too short tells nothing. A move
  // that found its direction idle tells nothing either: its time contains the call's.
  Rates ToDevice() const { return Estimate(1); }
  Rates ToHost() const { return Estimate(0); }

 private:
  static constexpr size_t kRing = 512;  // moves remembered a direction
  struct Span {
    uint64_t begin, end, bytes;
    bool queued;  // asked for before its predecessor had arrived: the link did not wait for it
  };
  struct Direction {
    std::array<Span, kRing> ring;
    uint64_t count = 0;
    uint64_t last_end = 0;
  };

  std::vector<Span> Spans(int direction) const;
  Rates Estimate(int direction) const;

  std::array<Direction, 2> directions_{};
};

}  // namespace atp::shim
