// SPDX-License-Identifier: Apache-2.0
// The link between host and one device: one copy engine per direction, first in first out, with
// rates that depend on whether both directions move data at the same moment (the duplex pair of
// costs.def).
//
// The unified-memory model and the copies of streams push pieces of at most 2 MiB and keep tickets.
// When a piece ends can move to a later time after it has been pushed, because a piece in the other
// direction slows it down; so nobody stores an end, they store the ticket and ask. Ends never move
// to an earlier time. All arithmetic is in integers.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "sim/machine/machine.h"

namespace atp::sim {

enum class Direction : uint8_t { kToDevice = 0, kToHost = 1 };

using Ticket = uint64_t;  // a pushed piece; 0 = nothing to wait for

// A moment that is known only through the pieces it waits for: the latest of `at` and of the two
// pieces' ends.
struct Ready {
  Time at = 0;
  Ticket tickets[2] = {0, 0};  // one per direction, of one and the same device
};

struct LinkRates {  // bytes per second
  int64_t alone[2];
  int64_t duplex[2];
};

class Link {
 public:
  Link(int device, const LinkRates& rates) : device_(device), rates_(rates) {}

  // `bytes` weighs what the piece takes of the link (at most 2 MiB, more when it goes at a lower
  // rate than a copy). `setup` passes on the engine before any byte moves. Starts no earlier than
  // `after` and than the piece before it.
  Ticket Push(Time now, Direction direction, uint64_t bytes, Time setup, const Ready& after);
  Time End(Ticket ticket);
  // Time during which bytes moved, up to `now`.
  Time Busy(Direction direction, Time now);

 private:
  struct Piece {
    Ready after;
    Time setup = 0;
    int64_t units = 0;  // bytes * 1e12: one picosecond at r bytes per second takes r units
    Time end = kNever;
  };
  struct Engine {
    std::deque<Piece> pieces;  // pieces[0] has sequence number `first`
    uint64_t first = 1;
    // The piece in progress.
    uint64_t current = 1;
    bool started = false;
    Time setup_left = 0;
    int64_t units_left = 0;
    Time busy = 0;
  };
  struct Progress {  // what Run changes of an engine
    uint64_t current;
    bool started;
    Time setup_left;
    int64_t units_left;
    Time busy;
  };

  void Settle(Time now);
  void ForgetEstimates();
  void Estimate();
  void Run(Progress progress[2], Time from, Time limit);
  bool TryStart(int direction, Progress* progress, Time now, Time* available);
  Time KnownEnd(Ticket ticket) const;
  Progress Saved(int direction) const;
  void Restore(int direction, const Progress& progress);

  const int device_;
  const LinkRates rates_;
  Engine engines_[2];
  Time settled_ = 0;
  bool dirty_ = false;
};

// All links of the machine: resolves tickets and combines moments.
class Interconnect {
 public:
  Interconnect(int devices, const LinkRates& rates);

  Ticket Push(int device, Time now, Direction direction, uint64_t bytes, Time setup,
              const Ready& after);
  Time Resolve(const Ready& ready);
  void Join(Ready* into, const Ready& other);
  Link& At(int device) { return links_[device]; }

  static Ready After(Time at) { return Ready{at, {0, 0}}; }
  static Ready Of(Ticket ticket, Direction direction);

 private:
  Time End(Ticket ticket);

  std::vector<Link> links_;
};

}  // namespace atp::sim
