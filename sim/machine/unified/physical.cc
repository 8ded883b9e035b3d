// SPDX-License-Identifier: Apache-2.0
#include "sim/machine/unified/physical.h"

#include <algorithm>

#include "sim/machine/unified/block.h"

namespace atp::sim {

ChunkId PhysicalMemory::NewChunk() {
  if (!spare_ids_.empty()) {
    ChunkId id = spare_ids_.back();
    spare_ids_.pop_back();
    chunks_[id] = RootChunk();
    return id;
  }
  chunks_.emplace_back();
  return static_cast<ChunkId>(chunks_.size() - 1);
}

ChunkId PhysicalMemory::TakeRoot() {
  for (ChunkList list : {ChunkList::kFreeZero, ChunkList::kFree}) {
    ChunkId id = lists_[static_cast<int>(list)].head;
    if (id == kNoChunk) continue;
    Remove(id);
    return id;
  }
  int64_t chunks =
      std::min<int64_t>(std::max<int64_t>(batch_, 1), static_cast<int64_t>(free_ / kBlockBytes));
  if (chunks == 0) return kNoChunk;
  free_ -= static_cast<uint64_t>(chunks) * kBlockBytes;
  ChunkId first = NewChunk();
  for (int64_t i = 1; i < chunks; ++i) MoveToTail(NewChunk(), ChunkList::kFreeZero);
  return first;
}

ChunkId PhysicalMemory::Victim() const {
  for (ChunkList list : {ChunkList::kUnused, ChunkList::kDiscarded, ChunkList::kUsed}) {
    ChunkId id = lists_[static_cast<int>(list)].head;
    if (id != kNoChunk) return id;
  }
  return kNoChunk;
}

void PhysicalMemory::Remove(ChunkId id) {
  RootChunk& chunk = chunks_[id];
  if (chunk.list == ChunkList::kNone) return;
  Ends& ends = lists_[static_cast<int>(chunk.list)];
  (chunk.previous == kNoChunk ? ends.head : chunks_[chunk.previous].next) = chunk.next;
  (chunk.next == kNoChunk ? ends.tail : chunks_[chunk.next].previous) = chunk.previous;
  chunk.previous = chunk.next = kNoChunk;
  chunk.list = ChunkList::kNone;
  --evictable_;
}

void PhysicalMemory::MoveToTail(ChunkId id, ChunkList list) {
  Remove(id);
  RootChunk& chunk = chunks_[id];
  Ends& ends = lists_[static_cast<int>(list)];
  chunk.list = list;
  chunk.previous = ends.tail;
  (ends.tail == kNoChunk ? ends.head : chunks_[ends.tail].next) = id;
  ends.tail = id;
  ++evictable_;
}

void PhysicalMemory::Return(ChunkId id) {
  Remove(id);
  if (chunks_[id].split) std::erase(split_, id);
  spare_ids_.push_back(id);
  free_ += kBlockBytes;
}

bool PhysicalMemory::ReturnFree() {
  for (ChunkList list : {ChunkList::kFree, ChunkList::kFreeZero}) {
    ChunkId id = lists_[static_cast<int>(list)].head;
    if (id == kNoChunk) continue;
    Return(id);
    return true;
  }
  return false;
}

bool PhysicalMemory::TakePart(int pages, ChunkId* id, int* first) {
  for (ChunkId candidate : split_) {
    RootChunk& chunk = chunks_[candidate];
    if (chunk.taken.Count() + pages > PageMask::kPages) continue;
    for (int page = 0; page < PageMask::kPages; page += pages) {
      if (chunk.taken.CountRange(page, pages) != 0) continue;
      chunk.taken.SetRange(page, pages);
      *id = candidate;
      *first = page;
      return true;
    }
  }
  return false;
}

void PhysicalMemory::Split(ChunkId id) {
  chunks_[id].split = true;
  split_.push_back(id);
}

void PhysicalMemory::Empty(ChunkId id) {
  Remove(id);
  RootChunk& chunk = chunks_[id];
  if (chunk.split) std::erase(split_, id);
  chunk.split = false;
  chunk.taken = PageMask();
  chunk.parts.clear();
  chunk.is_zero = false;
}

bool PhysicalMemory::Pin(uint64_t bytes) {
  if (bytes > free_) return false;
  free_ -= bytes;
  pinned_ += bytes;
  return true;
}

std::vector<ChunkId> PhysicalMemory::List(ChunkList list) const {
  std::vector<ChunkId> ids;
  for (ChunkId id = lists_[static_cast<int>(list)].head; id != kNoChunk; id = chunks_[id].next) {
    ids.push_back(id);
  }
  return ids;
}

uint64_t PhysicalMemory::BytesOf(Member member) const {
  uint64_t pages = 0;
  for (ChunkList list : {ChunkList::kUnused, ChunkList::kDiscarded, ChunkList::kUsed}) {
    for (ChunkId id : List(list)) {
      for (const ChunkPart& part : chunks_[id].parts) {
        if (MemberOf(part.block->slot * kBlockBytes) == member) {
          pages += static_cast<uint64_t>(part.pages);
        }
      }
    }
  }
  return pages * kPageBytes;
}

}  // namespace atp::sim
