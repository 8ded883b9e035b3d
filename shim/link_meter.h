// SPDX-License-Identifier: Apache-2.0
// Learns the link's rates from the moves that the movers make: each direction alone, and each while
// the other one is busy too. No driver calls, no locks: the loop's lock is held.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "policy/trace.h"

namespace atp::shim {

class LinkMeter {
 public:
  // A move that was asked for at `begin_ns` and had arrived at `end_ns`, on one clock for both
  // directions. Moves of a direction come in the order of their ends.
  void Moved(bool to_device, uint64_t begin_ns, uint64_t end_ns, uint64_t bytes);

  // Keeps each move from now on, at most so many (one that is left out sets `cut`).
  struct Logged {
    uint64_t begin_ns, end_ns, bytes;  // on the link
    bool to_device;
  };
  struct Log {
    std::vector<Logged> moves;
    size_t most = 0;
    bool cut = false;
  };
  void StartLog(size_t most);
  Log EndLog();

  struct Rates {  // bytes per second, 0 = not known
    double alone = 0;
    double duplex = 0;  // while the other direction moves too
    // Bytes that each byte of the other direction keeps from moving; < 0: not known.
    double cost = -1;
  };
  // From the moves that were queued behind another one: a move that found its direction idle tells
  // of the call more than of the link. Even a queued one may have waited for the driver (its locks,
  // its processor time), so the rate alone is what the faster quarter reaches; the rate of both is
  // the median of the moves beside which the other direction was busy, because there some of the
  // fastest had the link to themselves while the driver was busy with the other; where no move has
  // it busy all along, of what moves took beyond the part by themselves. A plan that moves in one
  // direction only shows nothing of both: then what was last seen of them holds.
  Rates ToDevice();
  Rates ToHost();
  // Both for the planner; what has not been measured is guessed from what has.
  policy::LinkRates Link();
  // What an earlier run has measured holds until this one knows better.
  void Assume(const policy::LinkRates& link) { assumed_ = link; }
  policy::LinkRates Known();  // measured or assumed; 0 = neither

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
    double duplex = 0;  // when it was last estimated; 0 = never
  };

  std::vector<Span> Spans(int direction) const;
  Rates Estimate(int direction) const;

  std::array<Direction, 2> directions_{};
  Log log_;
  policy::LinkRates assumed_;
};

}  // namespace atp::shim
