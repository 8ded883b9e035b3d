// SPDX-License-Identifier: Apache-2.0
// State of managed memory: ranges (one per allocation) made of blocks of at most 2 MiB, each with
// bitmaps of its pages.
//
// Used by the files of Unified only. A block covers the pages of its mask `valid` inside one
// aligned 2 MiB slot; advice on part of a slot splits its block in two with disjoint masks. Source:
// uvm_va_block_types.h, uvm_va_range.c in NVIDIA/open-gpu-kernel-modules 595.45.04.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "sim/machine/link.h"
#include "sim/machine/unified/page_mask.h"
#include "sim/machine/unified/physical.h"

namespace atp::sim {

inline constexpr int kNoPlace = -2;  // a location that is neither host nor device
inline constexpr uint64_t kPageBytes = uint64_t{1} << kPageBits;

struct Policy {
  bool read_mostly = false;
  int preferred = kNoPlace;
  uint64_t accessed_by = 0;  // bit d: device d
  bool operator==(const Policy&) const = default;
};

// Pages of a split block in small chunks.
struct SmallChunk {
  ChunkId root = kNoChunk;
  int block_page = 0;
  int chunk_page = 0;
  int pages = 0;
};

// What one device knows of a block.
struct DeviceView {
  PageMask resident;
  PageMask read_only;  // resident, but a write faults (READ_MOSTLY)
  PageMask pending;    // resident, but the copy ends only at `arrival`
  PageMask remote;     // mapped to memory elsewhere, since `remote_from`
  Ready arrival;
  Time remote_from = 0;
  bool remote_large = false;  // mapped by one 2 MiB entry
  bool ever_full = false;
  ChunkId root = kNoChunk;  // of a whole block
  std::vector<SmallChunk> small;
};

struct Block {
  uint64_t slot = 0;  // address / 2 MiB
  PageMask valid;
  bool whole = false;      // all 512 pages: lives in one root chunk
  bool host_large = true;  // the host found a contiguous 2 MiB for it
  Policy policy;
  PageMask on_host;     // the host has valid data
  PageMask host_pages;  // host memory is allocated; stays so until the range is freed
  PageMask host_mapped;
  PageMask discarded;
  PageMask discard_kept;  // discarded without unmapping: a write does not undo it
  PageMask dead;  // content lost by a discard and not written since: reading it is a violation
  Ready host_arrival;
  std::vector<DeviceView> views;
  std::unique_ptr<Block> sibling;  // next block of a split slot
  // Scratch of whoever walks a list of pages: `entry` is valid while `stamp` is the walker's.
  uint64_t stamp = 0;
  uint32_t entry = 0;
};

struct Range {
  uint64_t begin = 0, end = 0;
  std::vector<std::unique_ptr<Block>> slots;
};

// All managed ranges of the process.
class AddressSpace {
 public:
  AddressSpace(int devices, double f2m) : devices_(devices), f2m_(f2m) {}

  void Add(uint64_t address, uint64_t bytes);
  Range* Find(uint64_t address);
  void Remove(uint64_t begin);
  // Changes whenever pointers to blocks may have become invalid or cover fewer pages.
  uint64_t layout() const { return layout_; }
  // The block of a page, null when it is not managed.
  Block* BlockOf(uint64_t page);
  bool Covers(uint64_t address, uint64_t bytes);
  // Calls visit(block, mask of the pages inside) in ascending order; stops when it returns false.
  template <typename Visit>
  bool ForEach(uint64_t address, uint64_t bytes, Visit visit);
  template <typename Visit>
  void ForAll(Visit visit);
  // Splits the block so that no block lies on both sides of the page boundary `address`. True when
  // one was split.
  bool SplitAt(uint64_t address);

 private:
  void Divide(Block* block, const PageMask& upper);

  const int devices_;
  const double f2m_;
  std::map<uint64_t, std::unique_ptr<Range>> ranges_;
  Range* last_ = nullptr;
  uint64_t layout_ = 0;
};

// Mask of the pages of a slot inside [address, address + bytes).
PageMask SlotMask(uint64_t slot, uint64_t address, uint64_t bytes);

template <typename Visit>
bool AddressSpace::ForEach(uint64_t address, uint64_t bytes, Visit visit) {
  uint64_t end = address + bytes;
  while (address < end) {
    Range* range = Find(address);
    if (range == nullptr) return true;
    uint64_t stop = end < range->end ? end : range->end;
    uint64_t first_slot = range->begin / kBlockBytes;
    for (uint64_t slot = address / kBlockBytes; slot * kBlockBytes < stop; ++slot) {
      PageMask inside = SlotMask(slot, address, stop - address);
      for (Block* block = range->slots[slot - first_slot].get(); block != nullptr;
           block = block->sibling.get()) {
        PageMask pages = inside & block->valid;
        if (pages.Any() && !visit(*block, pages)) return false;
      }
    }
    address = stop;
  }
  return true;
}

template <typename Visit>
void AddressSpace::ForAll(Visit visit) {
  for (auto& [begin, range] : ranges_) {
    for (auto& first : range->slots) {
      for (Block* block = first.get(); block != nullptr; block = block->sibling.get())
        visit(*block);
    }
  }
}

}  // namespace atp::sim
