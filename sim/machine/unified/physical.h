// SPDX-License-Identifier: Apache-2.0
// Physical memory of one device: the card's own allocator and the root chunks (2 MiB) that the UVM
// driver holds, with the lists that decide which chunk is evicted next. No time here except the
// moment at which a chunk's last copy ends.
//
// Owned and called by Unified. Source: uvm_pmm_gpu.c in NVIDIA/open-gpu-kernel-modules 595.45.04
// (order of victims, batches of 64 chunks without eviction); lists are ordered by migration and
// allocation, never by access.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/machine/link.h"
#include "sim/machine/member.h"
#include "sim/machine/unified/page_mask.h"

namespace atp::sim {

struct Block;

using ChunkId = uint32_t;
inline constexpr ChunkId kNoChunk = UINT32_MAX;

// Lists of the UVM driver, in the order in which victims are taken; kNone: with the card's
// allocator, or in use by an operation.
enum class ChunkList : uint8_t { kFree, kFreeZero, kUnused, kDiscarded, kUsed, kNone };
inline constexpr int kChunkLists = 5;

// Pages of a block that live in a root chunk.
struct ChunkPart {
  Block* block = nullptr;
  int block_page = 0;
  int chunk_page = 0;
  int pages = 0;
};

struct RootChunk {
  ChunkList list = ChunkList::kNone;
  bool is_zero = true;
  bool split = false;
  ChunkId previous = kNoChunk, next = kNoChunk;
  Ready ready;                   // the last copy that reads or writes it
  PageMask taken;                // of a split chunk
  std::vector<ChunkPart> parts;  // exactly one, of 512 pages, unless split
};

class PhysicalMemory {
 public:
  PhysicalMemory(uint64_t bytes, int64_t batch) : total_(bytes), free_(bytes), batch_(batch) {}

  // A chunk of the free list or of the card's allocator (a batch, without evicting); kNoChunk when
  // there is none.
  ChunkId TakeRoot();
  // The next victim: head of UNUSED, then of DISCARDED, then of USED. kNoChunk when nothing can be
  // evicted.
  ChunkId Victim() const;
  void MoveToTail(ChunkId id, ChunkList list);
  void Remove(ChunkId id);
  // An empty chunk back to the card's allocator.
  void Return(ChunkId id);
  // A chunk of the free list back to the card's allocator; false when the list is empty.
  bool ReturnFree();

  // Space in a chunk that is split already, for `pages` (1 or 16, aligned to that); false when
  // there is none.
  bool TakePart(int pages, ChunkId* id, int* first);
  void Split(ChunkId id);
  // After an eviction: whole again, without owners, content unknown.
  void Empty(ChunkId id);

  bool Pin(uint64_t bytes);  // plain device memory
  void Unpin(uint64_t bytes) {
    free_ += bytes;
    pinned_ -= bytes;
  }

  RootChunk& At(ChunkId id) { return chunks_[id]; }
  uint64_t free_bytes() const { return free_; }
  uint64_t total_bytes() const { return total_; }
  uint64_t pinned_bytes() const { return pinned_; }
  // Ids of a list from head to tail.
  std::vector<ChunkId> List(ChunkList list) const;
  // Bytes of chunks that the managed memory of a member has.
  uint64_t BytesOf(Member member) const;
  // Bytes that eviction could give to plain device memory.
  uint64_t evictable_bytes() const { return evictable_ * kBlockBytes; }

 private:
  struct Ends {
    ChunkId head = kNoChunk, tail = kNoChunk;
  };
  ChunkId NewChunk();

  const uint64_t total_;
  uint64_t free_;  // never claimed by UVM nor pinned
  uint64_t pinned_ = 0;
  uint64_t evictable_ = 0;  // chunks on lists
  const int64_t batch_;
  std::vector<RootChunk> chunks_;
  std::vector<ChunkId> spare_ids_;
  std::vector<ChunkId> split_;  // chunks that are split, in the order in which they were
  Ends lists_[kChunkLists];
};

}  // namespace atp::sim
