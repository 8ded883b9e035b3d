// SPDX-License-Identifier: Apache-2.0
#include "sim/machine/link.h"

#include <algorithm>

namespace atp::sim {
namespace {

constexpr int64_t kUnitsPerByte = 1'000'000'000'000;
constexpr int kDeviceShift = 56;
constexpr int kEngineBits = 2;

Ticket MakeTicket(int device, int engine, uint64_t sequence) {
  return (static_cast<Ticket>(device) << kDeviceShift) | (sequence << kEngineBits) |
         static_cast<unsigned>(engine);
}
int DeviceOf(Ticket ticket) { return static_cast<int>(ticket >> kDeviceShift); }
int EngineOf(Ticket ticket) { return static_cast<int>(ticket % kEngines); }
uint64_t SequenceOf(Ticket ticket) {
  return (ticket & ((Ticket{1} << kDeviceShift) - 1)) >> kEngineBits;
}
int DirectionOf(int engine) { return engine % 2; }

}  // namespace

Ticket Link::Push(Time now, Channel channel, Direction direction, uint64_t bytes, Time setup,
                  const Ready& after) {
  Settle(now);
  int index = 2 * static_cast<int>(channel) + static_cast<int>(direction);
  Engine& engine = engines_[index];
  // 2 MiB of units fit in 63 bits; larger requests are pushed as several pieces.
  constexpr uint64_t kLargest = kBlockBytes;
  do {
    uint64_t part = std::min(bytes, kLargest);
    Piece piece;
    piece.after = after;
    piece.setup = setup;
    piece.units = static_cast<int64_t>(part) * kUnitsPerByte;
    engine.pieces.push_back(piece);
    bytes -= part;
    setup = 0;
  } while (bytes > 0);
  dirty_ = true;
  return MakeTicket(device_, index, engine.first + engine.pieces.size() - 1);
}

Time Link::End(Ticket ticket) {
  const Engine& engine = engines_[EngineOf(ticket)];
  if (SequenceOf(ticket) < engine.first) return 0;  // long over
  if (dirty_) Estimate();
  return engine.pieces[SequenceOf(ticket) - engine.first].end;
}

Time Link::Busy(Direction direction, Time now) {
  Settle(now);
  return busy_[static_cast<int>(direction)];
}

Link::Progress Link::Saved(int index) const {
  const Engine& engine = engines_[index];
  return {engine.current, engine.started, engine.setup_left, engine.units_left};
}

void Link::Restore(int index, const Progress& progress) {
  Engine& engine = engines_[index];
  engine.current = progress.current;
  engine.started = progress.started;
  engine.setup_left = progress.setup_left;
  engine.units_left = progress.units_left;
}

void Link::Settle(Time now) {
  if (now <= settled_) return;
  if (dirty_) ForgetEstimates();
  Progress progress[kEngines] = {Saved(0), Saved(1), Saved(2), Saved(3)};
  Run(progress, settled_, now, busy_);
  for (int index = 0; index < kEngines; ++index) {
    Restore(index, progress[index]);
    Engine& engine = engines_[index];
    while (!engine.pieces.empty() && engine.first < engine.current) {
      const Piece& over = engine.pieces.front();
      timeline_->Transfer(device_, DirectionOf(index) == 1, index >= 2, over.begin, over.end);
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
  Progress progress[kEngines] = {Saved(0), Saved(1), Saved(2), Saved(3)};
  Time not_yet[2] = {0, 0};
  Run(progress, settled_, kNever, not_yet);
  dirty_ = false;
}

Time Link::KnownEnd(Ticket ticket) const {
  if (ticket == 0) return 0;
  const Engine& engine = engines_[EngineOf(ticket)];
  if (SequenceOf(ticket) < engine.first) return 0;
  return engine.pieces[SequenceOf(ticket) - engine.first].end;
}

// Starts the next piece when it may start at `now`; otherwise tells since when it will be
// `available` (kNever: a piece that it waits for has not ended yet, which the caller notices at
// that piece's end).
bool Link::TryStart(int index, Progress* progress, Time now, Time* available) {
  Engine& engine = engines_[index];
  uint64_t position = progress->current - engine.first;
  if (position >= engine.pieces.size()) {
    *available = kNever;
    return false;
  }
  Piece& piece = engine.pieces[position];
  *available = piece.after.at;
  for (Ticket ticket : piece.after.tickets) *available = std::max(*available, KnownEnd(ticket));
  if (*available > now) return false;
  progress->started = true;
  piece.begin = now;
  progress->setup_left = piece.setup;
  progress->units_left = piece.units;
  return true;
}

// Runs the engines from one moment to another, notes the end of every piece that ends, and adds to
// the directions' busy times.
void Link::Run(Progress progress[kEngines], Time from, Time limit, Time busy[2]) {
  Time now = from;
  while (now < limit) {
    Time available[kEngines] = {kNever, kNever, kNever, kNever};
    int moving[2] = {0, 0};  // engines of a direction that move bytes
    for (int i = 0; i < kEngines; ++i) {
      if (!progress[i].started) TryStart(i, &progress[i], now, &available[i]);
      moving[DirectionOf(i)] += progress[i].started && progress[i].setup_left == 0;
    }
    const int64_t* rates = moving[0] > 0 && moving[1] > 0 ? rates_.duplex : rates_.alone;
    int64_t rate[2] = {rates[0] / std::max(1, moving[0]), rates[1] / std::max(1, moving[1])};
    Time next = limit;
    for (int i = 0; i < kEngines; ++i) {
      int64_t r = rate[DirectionOf(i)];
      if (!progress[i].started) {
        next = std::min(next, available[i]);
      } else if (progress[i].setup_left > 0) {
        next = std::min(next, now + progress[i].setup_left);
      } else {
        next = std::min(next, now + (progress[i].units_left + r - 1) / r);
      }
    }
    if (next == kNever) return;  // nothing left to do
    Time step = next - now;
    for (int d = 0; d < 2; ++d) busy[d] += moving[d] > 0 ? step : 0;
    for (int i = 0; i < kEngines; ++i) {
      if (!progress[i].started) continue;
      if (progress[i].setup_left > 0) {
        progress[i].setup_left -= step;
      } else {
        progress[i].units_left -= std::min(progress[i].units_left, rate[DirectionOf(i)] * step);
      }
      if (progress[i].setup_left == 0 && progress[i].units_left == 0) {
        engines_[i].pieces[progress[i].current - engines_[i].first].end = next;
        ++progress[i].current;
        progress[i].started = false;
      }
    }
    now = next;
  }
}

Interconnect::Interconnect(int devices, const LinkRates& rates, Timeline* timeline) {
  for (int device = 0; device < devices; ++device) links_.emplace_back(device, rates, timeline);
}

Ticket Interconnect::Push(int device, Time now, Channel channel, Direction direction,
                          uint64_t bytes, Time setup, const Ready& after) {
  Ready start = After(after.at);
  for (Ticket ticket : after.tickets) {
    if (ticket == 0) continue;
    if (DeviceOf(ticket) == device) {
      start.tickets[EngineOf(ticket)] = ticket;
    } else {
      start.at = std::max(start.at, End(ticket));
    }
  }
  return links_[static_cast<size_t>(device)].Push(now, channel, direction, bytes, setup, start);
}

Time Interconnect::End(Ticket ticket) {
  return ticket == 0 ? 0 : links_[static_cast<size_t>(DeviceOf(ticket))].End(ticket);
}

Time Interconnect::Resolve(const Ready& ready) {
  Time latest = ready.at;
  for (Ticket ticket : ready.tickets) latest = std::max(latest, End(ticket));
  return latest;
}

void Interconnect::Join(Ready* into, const Ready& other) {
  into->at = std::max(into->at, other.at);
  for (int i = 0; i < kEngines; ++i) {
    Ticket ticket = other.tickets[i];
    if (ticket == 0) continue;
    Ticket mine = into->tickets[i];
    if (mine != 0 && DeviceOf(mine) != DeviceOf(ticket)) {
      into->at = std::max(into->at, End(mine));
      mine = 0;
    }
    into->tickets[i] = std::max(mine, ticket);  // the engine is first in, first out
  }
}

Ready Interconnect::After(Time at) {
  Ready ready;
  ready.at = at;
  return ready;
}

Ready Interconnect::Of(Ticket ticket) {
  Ready ready;
  ready.tickets[EngineOf(ticket)] = ticket;
  return ready;
}

}  // namespace atp::sim
