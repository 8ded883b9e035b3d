// SPDX-License-Identifier: Apache-2.0
// The faulting wave of a KernelRun: which pages its threads are at, and which of them fault next.
//
// The wave's pages, in order of first touch, are cut into segments. The blocks of a segment run
// beside each other: their pages are asked for in turn. Every thread is at one page at a time, so
// that a loop over more memory than the card holds meets its own evictions.
#include <algorithm>

#include "sim/machine/kernel_run.h"

namespace atp::sim {

uint64_t KernelRun::NewStamp() {
  static uint64_t stamp = 0;  // under the driver's lock, like everything here
  return ++stamp;
}

void KernelRun::BeginWave() {
  blocks_.clear();
  order_.clear();
  credit_ = 0;
  remote_reads_ = remote_writes_ = remote_small_ = 0;
  const std::span<const PageTouch> pages = work_.waves[wave_].pages;
  const uint64_t stamp = NewStamp();
  std::vector<size_t> block_ends;
  size_t begin = 0;
  for (size_t end : work_.waves[wave_].block_ends) {
    Collect(pages.subspan(begin, end - begin), stamp, &blocks_, &order_);
    // A block may have touched plain device memory only.
    if (order_.size() > (block_ends.empty() ? 0 : block_ends.back()))
      block_ends.push_back(order_.size());
    begin = end;
  }
  Collect(pages.subspan(begin), stamp, &blocks_, &order_);
  LayOutSegments(block_ends);
}

// `block_ends`: where blocks end in order_; empty when it is as it should be.
void KernelRun::LayOutSegments(const std::vector<size_t>& block_ends) {
  layout_ = world_.unified.space().layout();
  active_.clear();
  segments_.clear();
  const DeviceShape& shape = world_.shape;
  uint64_t threads = static_cast<uint64_t>(shape.multiprocessors) *
                     static_cast<uint64_t>(shape.max_threads_per_multiprocessor);
  if (work_.threads != 0) threads = std::min(threads, work_.threads);
  size_t count = std::max<size_t>(1, static_cast<size_t>(shape.multiprocessors) / 2);
  count = std::min({count, order_.size(), static_cast<size_t>(threads)});
  window_ = count == 0 ? 0 : std::max<size_t>(1, threads / count);
  for (size_t i = 0; i < count; ++i) {
    size_t begin = order_.size() * i / count;
    segments_.push_back({begin, begin, order_.size() * (i + 1) / count});
    Interleave(begin, segments_.back().end, block_ends);
  }
}

// One page of each block in turn.
void KernelRun::Interleave(size_t begin, size_t end, const std::vector<size_t>& block_ends) {
  struct Piece {
    size_t at, end;
  };
  std::vector<Piece> pieces;
  size_t from = begin;
  for (auto it = std::upper_bound(block_ends.begin(), block_ends.end(), begin);
       from < end && it != block_ends.end(); ++it) {
    pieces.push_back({from, std::min(*it, end)});
    from = pieces.back().end;
  }
  if (from < end) pieces.push_back({from, end});
  if (pieces.size() < 2) return;
  std::vector<uint32_t> mixed;
  mixed.reserve(end - begin);
  while (!pieces.empty()) {
    for (Piece& piece : pieces) mixed.push_back(order_[piece.at++]);
    std::erase_if(pieces, [](const Piece& piece) { return piece.at == piece.end; });
  }
  std::copy(mixed.begin(), mixed.end(), order_.begin() + static_cast<ptrdiff_t>(begin));
}

bool KernelRun::IsTodo(uint32_t where) const {
  return blocks_[where / PageMask::kPages].todo.Test(static_cast<int>(where % PageMask::kPages));
}

// Memory was freed or split under a running kernel: the rest of the wave is looked up again.
void KernelRun::RebuildWave() {
  std::vector<PageTouch> rest;
  for (const Segment& segment : segments_) {
    for (size_t at = segment.cursor; at < segment.end; ++at) {
      uint32_t where = order_[at];
      if (at < segment.reached && !IsTodo(where)) continue;
      const WaveBlock& entry = blocks_[where / PageMask::kPages];
      int page = static_cast<int>(where % PageMask::kPages);
      uint8_t flags = 0;
      if (entry.reads.Test(page)) flags |= PageTouch::kRead;
      if (entry.writes.Test(page)) flags |= PageTouch::kWrite;
      if (entry.writes.Test(page) && !entry.depends.Test(page)) flags |= PageTouch::kOverwritten;
      rest.push_back({entry.slot * PageMask::kPages + static_cast<uint64_t>(page), flags});
    }
  }
  blocks_.clear();
  order_.clear();
  Collect(rest, NewStamp(), &blocks_, &order_);
  LayOutSegments({});
}

Time KernelRun::ServeWave(Time now) {
  if (layout_ != world_.unified.space().layout()) RebuildWave();
  do {
    Retire(now);
  } while (Issue());
  return active_.empty() ? FinishWave(now) : Batch(now);
}

// Lets threads go on to their next pages. False when none could.
bool KernelRun::Issue() {
  bool any = false;
  for (Segment& segment : segments_) {
    while (true) {
      while (segment.cursor < segment.reached && !IsTodo(order_[segment.cursor])) ++segment.cursor;
      size_t limit = std::min(segment.end, segment.cursor + window_);
      if (segment.reached >= limit) break;
      any = true;
      while (segment.reached < limit) Ask(order_[segment.reached++]);
    }
  }
  return any;
}

void KernelRun::Ask(uint32_t where) {
  uint32_t index = where / PageMask::kPages;
  int page = static_cast<int>(where % PageMask::kPages);
  WaveBlock& entry = blocks_[index];
  Block* block = entry.block;
  const DeviceView& view = block->views[static_cast<size_t>(device_)];
  bool there = view.resident.Test(page) && !view.pending.Test(page) &&
               !(view.read_only.Test(page) && entry.writes.Test(page));
  bool plain = !block->dead.Test(page) && !block->discarded.Test(page);
  if (there && plain) return;  // accessed at once
  if (entry.todo.None()) active_.push_back(index);
  entry.todo.Set(page);
}

// Accesses what can be accessed: those threads go on, and need the page no longer.
void KernelRun::Retire(Time now) {
  size_t kept = 0;
  for (uint32_t index : active_) {
    WaveBlock& entry = blocks_[index];
    PageMask remote;
    PageMask done = world_.unified.Accessible(entry.block, device_, entry.todo,
                                              entry.writes & entry.todo, now, &remote);
    entry.todo -= done;
    if (entry.todo.Any()) active_[kept++] = index;
    if (done.None()) continue;
    world_.unified.Access(entry.block, entry.depends & done, entry.writes & done);
    if (remote.None()) continue;
    remote_reads_ += static_cast<uint64_t>((remote & entry.reads).Count());
    remote_writes_ += static_cast<uint64_t>((remote & entry.writes).Count());
    bool large = entry.block->views[static_cast<size_t>(device_)].remote_large;
    if (!large) remote_small_ += static_cast<uint64_t>(remote.Count());
  }
  active_.resize(kept);
}

// The next faults: one after the other from each segment of the wave, as the fault buffer would
// hold them.
std::vector<KernelRun::Group> KernelRun::NextFaults(int* faults) {
  const int64_t limit = std::max<int64_t>(1, world_.costs.fault_batch_size);
  std::vector<Group> groups;
  const uint64_t stamp = NewStamp();
  std::vector<size_t> position;
  for (const Segment& segment : segments_) position.push_back(segment.cursor);
  *faults = 0;
  for (bool any = true; any && *faults < limit;) {
    any = false;
    for (size_t i = 0; i < segments_.size() && *faults < limit; ++i) {
      size_t& at = position[i];
      while (at < segments_[i].reached && !IsTodo(order_[at])) ++at;
      if (at == segments_[i].reached) continue;
      uint32_t where = order_[at++];
      Block* block = blocks_[where / PageMask::kPages].block;
      if (block->stamp != stamp) {
        block->stamp = stamp;
        block->entry = static_cast<uint32_t>(groups.size());
        groups.push_back({where / PageMask::kPages, PageMask()});
      }
      groups[block->entry].pages.Set(static_cast<int>(where % PageMask::kPages));
      ++*faults;
      any = true;
    }
  }
  std::sort(groups.begin(), groups.end(), [&](const Group& a, const Group& b) {
    const WaveBlock &left = blocks_[a.entry], &right = blocks_[b.entry];
    if (left.slot != right.slot) return left.slot < right.slot;
    return left.block->valid.Next(0) < right.block->valid.Next(0);
  });
  return groups;
}

}  // namespace atp::sim
