// SPDX-License-Identifier: Apache-2.0
#include "policy/replay/machine.h"

#include <algorithm>

namespace atp::policy {

Machine::Machine(const Trace& trace, const Uses& uses, const ReplayOptions& options)
    : trace_(trace), options_(options) {
  capacity_ = options.memory != 0 ? options.memory : trace.device_bytes;
  const size_t tensors = trace.tensors.size();
  first_.reserve(tensors + 1);
  for (uint32_t t = 0; t < tensors; ++t) {
    first_.push_back(static_cast<Block>(tensor_of_.size()));
    const Bytes blocks = (trace.tensors[t].bytes + options.block - 1) / options.block;
    tensor_of_.insert(tensor_of_.end(), blocks, t);
    state_.insert(state_.end(), blocks, uses.global[t] ? State::kOut : State::kUnborn);
  }
  const Block end = static_cast<Block>(tensor_of_.size());
  first_.push_back(end);
  for (Block b = 0; b < end + 2; ++b)
    newer_.push_back(b);  // a sentinel points at the oldest and the newest
  older_ = newer_;
  protected_.assign(tensors, false);
  resident_.assign(tensors, 0);
  remote_.assign(tensors, false);
  highest_.assign(first_.begin(), first_.end() - 1);
  next_use_.assign(tensors, kNever);
}

Bytes Machine::BytesOf(Block block) const {
  const uint32_t tensor = tensor_of_[block];
  const Bytes offset = Bytes{block - first_[tensor]} * options_.block;
  return std::min(options_.block, trace_.tensors[tensor].bytes - offset);
}

void Machine::Charge(Bytes bytes) {
  used_ += bytes;
  peak_ = std::max(peak_, used_);
}

void Machine::Arrive(Block block) {
  const uint32_t tensor = tensor_of_[block];
  const Block end = Sentinel(protected_[tensor]);
  state_[block] = State::kIn;
  older_[block] = older_[end];
  newer_[block] = end;
  newer_[older_[end]] = block;
  older_[end] = block;
  if (resident_[tensor]++ == 0) by_use_.insert({next_use_[tensor], tensor});
  highest_[tensor] = std::max(highest_[tensor], block + 1);
}

void Machine::Leave(Block block, State to) {
  const uint32_t tensor = tensor_of_[block];
  state_[block] = to;
  newer_[older_[block]] = newer_[block];
  older_[newer_[block]] = older_[block];
  if (--resident_[tensor] == 0) by_use_.erase({next_use_[tensor], tensor});
}

void Machine::Populate(Block block) {
  Charge(BytesOf(block));
  Arrive(block);
  Sample();
}

void Machine::Kill(uint32_t tensor) {
  for (Block b = first_[tensor]; b < first_[tensor + 1]; ++b) {
    if (state_[b] == State::kIn) {
      Leave(b, State::kUnborn);
      used_ -= BytesOf(b);
    } else if (state_[b] == State::kOut) {
      state_[b] = State::kUnborn;
    }
  }
  for (Engine& engine : engines_) {
    if (engine.block != kNoBlock && tensor_of_[engine.block] == tensor) engine.doomed = true;
  }
  highest_[tensor] = first_[tensor];
  Sample();
}

void Machine::StartFetch(Block block, double setup) {
  state_[block] = State::kFetching;
  Charge(BytesOf(block));
  Start(CopyDirection::kH2d, block, setup);
  Sample();
}

void Machine::StartEvict(Block block, double setup) {
  Leave(block, State::kEvicting);
  Start(CopyDirection::kD2h, block, setup);
}

void Machine::DropClean(Block block) {
  Leave(block, State::kOut);
  used_ -= BytesOf(block);
  Sample();
}

void Machine::Start(CopyDirection direction, Block block, double setup) {
  Engine& engine = Of(direction);
  // Back to back, the driver prepares a block while the one before is on the link.
  const double prepared = engine.last_end == now_ ? engine.begin + setup : now_ + setup;
  engine.block = block;
  engine.begin = std::max(now_, prepared);
  engine.remaining = static_cast<double>(BytesOf(block));
}

double Machine::Rate(CopyDirection direction) const {
  const LinkRates& link = trace_.link;
  const Engine& other = engines_[1 - static_cast<int>(direction)];
  const bool both = other.block != kNoBlock && other.begin <= now_;
  if (direction == CopyDirection::kH2d)
    return both && link.duplex_h2d > 0 ? link.duplex_h2d : link.h2d;
  return both && link.duplex_d2h > 0 ? link.duplex_d2h : link.d2h;
}

bool Machine::Advance(double until) {
  for (;;) {
    double next = until;
    int ending = -1;
    double rates[2] = {0, 0};
    for (int d = 0; d < 2; ++d) {
      const Engine& engine = engines_[d];
      if (engine.block == kNoBlock) continue;
      if (engine.begin > now_) {
        if (engine.begin < next) next = engine.begin, ending = -1;
        continue;
      }
      rates[d] = Rate(static_cast<CopyDirection>(d));
      const double end = now_ + engine.remaining / rates[d];
      if (end <= next) next = end, ending = d;
    }
    const double step = std::max(0.0, next - now_);
    for (int d = 0; d < 2; ++d) engines_[d].remaining -= rates[d] * step;
    now_ = std::max(now_, next);
    if (ending >= 0) {
      Finish(static_cast<CopyDirection>(ending));
      return true;
    }
    if (now_ >= until) return false;
  }
}

void Machine::Finish(CopyDirection direction) {
  Engine& engine = Of(direction);
  const Block block = engine.block;
  const Bytes bytes = BytesOf(block);
  engine.block = kNoBlock;
  engine.remaining = 0;
  engine.moved += bytes;
  if (recording_) {
    const bool joins = engine.last_end >= engine.begin - 1e-9 && !transfers_.empty();
    auto last = std::find_if(transfers_.rbegin(), transfers_.rend(),
                             [&](const TransferRun& r) { return r.direction == direction; });
    if (joins && last != transfers_.rend()) {
      last->end = now_;
      last->bytes += bytes;
    } else {
      transfers_.push_back({direction, engine.begin, now_, bytes});
    }
  }
  engine.last_end = now_;
  if (engine.doomed) {
    engine.doomed = false;
    state_[block] = State::kUnborn;
    used_ -= bytes;
    Sample();
  } else if (direction == CopyDirection::kH2d) {
    Arrive(block);
  } else {
    state_[block] = State::kOut;
    used_ -= bytes;
    Sample();
  }
}

void Machine::Sample() {
  if (!recording_) return;
  if (!residency_.empty() && residency_.back().time == now_) {
    residency_.back().bytes = used_;
  } else {
    residency_.push_back({now_, used_});
  }
}

Machine::Block Machine::OldestArrival(const Keep& keep) const {
  for (bool last_resort : {false, true}) {
    const Block end = Sentinel(last_resort);
    for (Block b = newer_[end]; b != end; b = newer_[b]) {
      if (!keep(tensor_of_[b])) return b;
    }
  }
  return kNoBlock;
}

Machine::Block Machine::FurthestUse(Instance beyond, const Keep& keep) const {
  for (auto it = by_use_.rbegin(); it != by_use_.rend() && it->first > beyond; ++it) {
    const uint32_t tensor = it->second;
    if (keep(tensor)) continue;
    while (state_[highest_[tensor] - 1] != State::kIn) --highest_[tensor];
    return highest_[tensor] - 1;
  }
  return kNoBlock;
}

void Machine::SetNextUse(uint32_t tensor, Instance next) {
  if (resident_[tensor] > 0) {
    by_use_.erase({next_use_[tensor], tensor});
    by_use_.insert({next, tensor});
  }
  next_use_[tensor] = next;
}

}  // namespace atp::policy
