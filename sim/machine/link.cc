// SPDX-License-Identifier: Apache-2.0
#include "sim/machine/link.h"

#include <algorithm>

namespace atp::sim {
namespace {

constexpr int64_t kUnitsPerByte = 1'000'000'000'000;
constexpr int kDeviceShift = 56;

Ticket MakeTicket(int device, int direction, uint64_t sequence) {
  return (static_cast<Ticket>(device) << kDeviceShift) | (sequence << 1) |
         static_cast<unsigned>(direction);
}
int DeviceOf(Ticket ticket) { return static_cast<int>(ticket >> kDeviceShift); }
int DirectionOf(Ticket ticket) { return static_cast<int>(ticket & 1); }
uint64_t SequenceOf(Ticket ticket) { return (ticket & ((Ticket{1} << kDeviceShift) - 1)) >> 1; }

}  // namespace

Ticket Link::Push(Time now, Direction direction, uint64_t bytes, Time setup, const Ready& after) {
  Settle(now);
  Engine& engine = engines_[static_cast<int>(direction)];
  // 2 MiB of units fit in 63 bits; larger requests are pushed as several pieces.
  constexpr uint64_t kLargest = kBlockBytes;
  Ready start = after;
  do {
    uint64_t part = std::min(bytes, kLargest);
    Piece piece;
    piece.after = start;
    piece.setup = setup;
    piece.units = static_cast<int64_t>(part) * kUnitsPerByte;
    engine.pieces.push_back(piece);
    bytes -= part;
    setup = 0;
  } while (bytes > 0);
  dirty_ = true;
  return MakeTicket(device_, static_cast<int>(direction), engine.first + engine.pieces.size() - 1);
}

Time Link::End(Ticket ticket) {
  const Engine& engine = engines_[DirectionOf(ticket)];
  if (SequenceOf(ticket) < engine.first) return 0;  // long over
  if (dirty_) Estimate();
  return engine.pieces[SequenceOf(ticket) - engine.first].end;
}

Time Link::Busy(Direction direction, Time now) {
  Settle(now);
  return engines_[static_cast<int>(direction)].busy;
}

Link::Progress Link::Saved(int direction) const {
  const Engine& engine = engines_[direction];
  return {engine.current, engine.started, engine.setup_left, engine.units_left, engine.busy};
}

void Link::Restore(int direction, const Progress& progress) {
  Engine& engine = engines_[direction];
  engine.current = progress.current;
  engine.started = progress.started;
  engine.setup_left = progress.setup_left;
  engine.units_left = progress.units_left;
  engine.busy = progress.busy;
}

void Link::Settle(Time now) {
  if (now <= settled_) return;
  if (dirty_) ForgetEstimates();
  Progress progress[2] = {Saved(0), Saved(1)};
  Run(progress, settled_, now);
  for (int direction = 0; direction < 2; ++direction) {
    Restore(direction, progress[direction]);
    Engine& engine = engines_[direction];
    while (!engine.pieces.empty() && engine.first < engine.current) {
      engine.pieces.pop_front();
      ++engine.first;
    }
  }
  settled_ = now;
}

// Ends estimated before the latest push may be too early, and a piece that waits for another must
// not start by them.
void Link::ForgetEstimates() {
  for (Engine& engine : engines_) {
    for (uint64_t i = engine.current - engine.first; i < engine.pieces.size(); ++i) {
      engine.pieces[i].end = kNever;
    }
  }
}

void Link::Estimate() {
  ForgetEstimates();
  Progress progress[2] = {Saved(0), Saved(1)};
  Run(progress, settled_, kNever);
  dirty_ = false;
}

Time Link::KnownEnd(Ticket ticket) const {
  if (ticket == 0) return 0;
  const Engine& engine = engines_[DirectionOf(ticket)];
  if (SequenceOf(ticket) < engine.first) return 0;
  return engine.pieces[SequenceOf(ticket) - engine.first].end;
}

// Starts the next piece when it may start at `now`; otherwise tells since when it will be
// `available` (kNever: a piece that it waits for has not ended yet, which the caller notices at
// that piece's end).
bool Link::TryStart(int direction, Progress* progress, Time now, Time* available) {
  Engine& engine = engines_[direction];
  uint64_t index = progress->current - engine.first;
  if (index >= engine.pieces.size()) {
    *available = kNever;
    return false;
  }
  const Piece& piece = engine.pieces[index];
  *available = piece.after.at;
  for (int d = 0; d < 2; ++d) {
    Ticket ticket = piece.after.tickets[d];
    *available = std::max(*available, KnownEnd(ticket));
  }
  if (*available > now) return false;
  progress->started = true;
  progress->setup_left = piece.setup;
  progress->units_left = piece.units;
  return true;
}

// Runs both engines from one moment to another and notes the end of every piece that ends.
void Link::Run(Progress progress[2], Time from, Time limit) {
  Time now = from;
  while (true) {
    Time available[2] = {kNever, kNever};
    for (int d = 0; d < 2; ++d) {
      if (!progress[d].started) TryStart(d, &progress[d], now, &available[d]);
    }
    bool moving[2];
    for (int d = 0; d < 2; ++d) moving[d] = progress[d].started && progress[d].setup_left == 0;
    int64_t rate[2];
    Time next = limit;
    for (int d = 0; d < 2; ++d) {
      rate[d] = moving[0] && moving[1] ? rates_.duplex[d] : rates_.alone[d];
      if (!progress[d].started) {
        next = std::min(next, available[d]);
      } else if (progress[d].setup_left > 0) {
        next = std::min(next, now + progress[d].setup_left);
      } else {
        next = std::min(next, now + (progress[d].units_left + rate[d] - 1) / rate[d]);
      }
    }
    if (next == kNever) return;  // nothing left to do
    Time step = next - now;
    for (int d = 0; d < 2; ++d) {
      if (!progress[d].started) continue;
      if (!moving[d]) {
        progress[d].setup_left -= step;
      } else {
        progress[d].busy += step;
        progress[d].units_left -= std::min(progress[d].units_left, rate[d] * step);
      }
      if (progress[d].setup_left == 0 && progress[d].units_left == 0) {
        engines_[d].pieces[progress[d].current - engines_[d].first].end = next;
        ++progress[d].current;
        progress[d].started = false;
      }
    }
    now = next;
    if (now == limit) return;
  }
}

Interconnect::Interconnect(int devices, const LinkRates& rates) {
  for (int device = 0; device < devices; ++device) links_.emplace_back(device, rates);
}

Ticket Interconnect::Push(int device, Time now, Direction direction, uint64_t bytes, Time setup,
                          const Ready& after) {
  Ready start = Ready{after.at, {0, 0}};
  for (int d = 0; d < 2; ++d) {
    Ticket ticket = after.tickets[d];
    if (ticket == 0) continue;
    if (DeviceOf(ticket) == device) {
      start.tickets[d] = ticket;
    } else {
      start.at = std::max(start.at, End(ticket));
    }
  }
  return links_[device].Push(now, direction, bytes, setup, start);
}

Time Interconnect::End(Ticket ticket) {
  return ticket == 0 ? 0 : links_[DeviceOf(ticket)].End(ticket);
}

Time Interconnect::Resolve(const Ready& ready) {
  return std::max({ready.at, End(ready.tickets[0]), End(ready.tickets[1])});
}

void Interconnect::Join(Ready* into, const Ready& other) {
  into->at = std::max(into->at, other.at);
  for (int d = 0; d < 2; ++d) {
    Ticket ticket = other.tickets[d];
    if (ticket == 0) continue;
    Ticket mine = into->tickets[d];
    if (mine != 0 && DeviceOf(mine) != DeviceOf(ticket)) {
      into->at = std::max(into->at, End(mine));
      mine = 0;
    }
    into->tickets[d] = std::max(mine, ticket);  // the engine is first in, first out
  }
}

Ready Interconnect::Of(Ticket ticket, Direction direction) {
  Ready ready;
  ready.tickets[static_cast<int>(direction)] = ticket;
  return ready;
}

}  // namespace atp::sim
