// SPDX-License-Identifier: Apache-2.0
// The link between host and one device: two copy engines per direction, one for the driver's own
// migrations and one for the program, each first in first out. Rates depend on whether both
// directions move data at the same moment (the duplex pair of costs.def); engines of the same
// direction share its rate evenly.
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
#include "sim/machine/timeline.h"

namespace atp::sim {

enum class Direction : uint8_t { kToDevice = 0, kToHost = 1 };

using Ticket = uint64_t;  // a pushed piece; 0 = nothing to wait for

// Whose work it is: migrations by the UVM driver, or copies and accesses in place by the program.
enum class Channel : uint8_t { kDriver = 0, kProgram = 1 };
inline constexpr int kEngines = 4;  // of one device: 2 * channel + direction

// A moment that is known only through the pieces it waits for: the latest of `at` and of the
// pieces' ends.
struct Ready {
  Time at = 0;
  Ticket tickets[kEngines] = {};  // the last piece of each engine
};

struct LinkRates {  // bytes per second
  int64_t alone[2];
  int64_t duplex[2];
};

class Link {
 public:
  Link(int device, const LinkRates& rates, Timeline* timeline)
      : device_(device), rates_(rates), timeline_(timeline) {}

  // `bytes` weighs what the piece takes of the link (at most 2 MiB, more when it goes at a lower
  // rate than a copy). `setup` passes on the engine before any byte moves. Starts no earlier than
  // `after` and than the piece before it.
  Ticket Push(Time now, Channel channel, Direction direction, uint64_t bytes, Time setup,
              const Ready& after);
  Time End(Ticket ticket);
  // Time during which bytes moved, up to `now`.
  Time Busy(Direction direction, Time now);

 private:
  struct Piece {
    Ready after;
    Time setup = 0;
    int64_t units = 0;  // bytes * 1e12: one picosecond at r bytes per second takes r units
    Time begin = 0, end = kNever;
  };
  struct Engine {
    std::deque<Piece> pieces;  // pieces[0] has sequence number `first`
    uint64_t first = 1;
    // The piece in progress.
    uint64_t current = 1;
    bool started = false;
    Time setup_left = 0;
    int64_t units_left = 0;
  };
  struct Progress {  // what Run changes of an engine
    uint64_t current;
    bool started;
    Time setup_left;
    int64_t units_left;
  };

  void Settle(Time now);
  void ForgetEstimates();
  void Estimate();
  void Run(Progress progress[kEngines], Time from, Time limit, Time busy[2]);
  bool TryStart(int index, Progress* progress, Time now, Time* available);
  Time KnownEnd(Ticket ticket) const;
  Progress Saved(int index) const;
  void Restore(int index, const Progress& progress);

  const int device_;
  const LinkRates rates_;
  Timeline* timeline_;
  Engine engines_[kEngines];
  Time busy_[2] = {0, 0};  // per direction, up to settled_
  Time settled_ = 0;
  bool dirty_ = false;
};

// All links of the machine: resolves tickets and combines moments.
class Interconnect {
 public:
  Interconnect(int devices, const LinkRates& rates, Timeline* timeline);

  Ticket Push(int device, Time now, Channel channel, Direction direction, uint64_t bytes,
              Time setup, const Ready& after);
  Time Resolve(const Ready& ready);
  void Join(Ready* into, const Ready& other);
  Link& At(int device) { return links_[device]; }

  static Ready After(Time at);
  static Ready Of(Ticket ticket);

 private:
  Time End(Ticket ticket);

  std::vector<Link> links_;
};

}  // namespace atp::sim
