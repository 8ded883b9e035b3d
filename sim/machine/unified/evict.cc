// SPDX-License-Identifier: Apache-2.0
// Device memory for blocks, and eviction to get it. Source: block_alloc_gpu_chunk and
// uvm_va_block_evict_chunks in uvm_va_block.c, alloc_root_chunk and pick_root_chunk_to_evict in
// uvm_pmm_gpu.c.
#include <algorithm>

#include "sim/machine/unified/unified.h"

namespace atp::sim {
namespace {

constexpr int kSmallPages = 16;  // 64 KiB

}  // namespace

Ready Unified::ChunksReady(const Block& block, int device) {
  const DeviceView& view = block.views[static_cast<size_t>(device)];
  if (view.root != kNoChunk) return memory(device).At(view.root).ready;
  Ready ready;
  for (const SmallChunk& small : view.small)
    link_->Join(&ready, memory(device).At(small.root).ready);
  return ready;
}

void Unified::ChunksBusyUntil(Block* block, int device, const Ready& ready) {
  DeviceView& view = block->views[static_cast<size_t>(device)];
  if (view.root != kNoChunk) link_->Join(&memory(device).At(view.root).ready, ready);
  for (const SmallChunk& small : view.small)
    link_->Join(&memory(device).At(small.root).ready, ready);
}

// A root chunk for the caller, evicting one victim when there is no other way.
ChunkId Unified::ObtainRoot(Pass* pass, int device) {
  ChunkId id = memory(device).TakeRoot();
  if (id != kNoChunk) return id;
  id = memory(device).Victim();
  if (id == kNoChunk || !EvictRoot(pass, device, id)) return kNoChunk;
  return id;
}

bool Unified::EnsureChunks(Pass* pass, Block* block, int device, const PageMask& pages) {
  DeviceView& view = block->views[static_cast<size_t>(device)];
  if (!block->whole) return EnsureSmallChunks(pass, block, device, pages);
  if (view.root != kNoChunk) return true;
  ChunkId id = ObtainRoot(pass, device);
  if (id == kNoChunk) return false;
  memory(device).At(id).parts = {{block, 0, 0, PageMask::kPages}};
  view.root = id;
  view.ever_full = false;
  return true;
}

// Blocks that are not a full 2 MiB live in pieces of 64 KiB, or of 4 KiB where such a piece would
// stick out.
bool Unified::EnsureSmallChunks(Pass* pass, Block* block, int device, const PageMask& pages) {
  DeviceView& view = block->views[static_cast<size_t>(device)];
  PhysicalMemory& physical = memory(device);
  PageMask covered;
  for (const SmallChunk& small : view.small) covered.SetRange(small.block_page, small.pages);
  for (int page = (pages - covered).Next(0); page < PageMask::kPages;
       page = (pages - covered).Next(page)) {
    int first = page / kSmallPages * kSmallPages;
    bool fits = (block->valid & PageMask::Range(first, kSmallPages)).Count() == kSmallPages &&
                covered.CountRange(first, kSmallPages) == 0;
    SmallChunk small{kNoChunk, fits ? first : page, 0, fits ? kSmallPages : 1};
    if (!physical.TakePart(small.pages, &small.root, &small.chunk_page)) {
      ChunkId id = ObtainRoot(pass, device);
      if (id == kNoChunk) return false;
      physical.Split(id);
      physical.TakePart(small.pages, &small.root, &small.chunk_page);
    }
    physical.At(small.root)
        .parts.push_back({block, small.block_page, small.chunk_page, small.pages});
    physical.MoveToTail(small.root, ChunkList::kUsed);
    view.small.push_back(small);
    covered.SetRange(small.block_page, small.pages);
    // An eviction on the way may have taken earlier pieces of this very block.
    covered = PageMask();
    for (const SmallChunk& held : view.small) covered.SetRange(held.block_page, held.pages);
  }
  return true;
}

// Takes everything out of a chunk and off the lists. False when the host has no memory left: the
// chunk stays as it is.
bool Unified::EvictRoot(Pass* pass, int device, ChunkId id) {
  PhysicalMemory& physical = memory(device);
  ChunkList list = physical.At(id).list;
  std::vector<ChunkPart> parts = physical.At(id).parts;
  bool had_pages = false;
  for (const ChunkPart& part : parts) {
    const DeviceView& view = part.block->views[static_cast<size_t>(device)];
    had_pages |= view.resident.CountRange(part.block_page, part.pages) > 0;
    if (!EvictPart(pass, device, part)) return false;
  }
  if (had_pages) {
    ++stats_->evictions;
  } else {
    pass->cpu += costs_.evict_empty;
  }
  stats_->unused_taken += list == ChunkList::kUnused;
  stats_->discarded_taken += list == ChunkList::kDiscarded;
  physical.Empty(id);
  return true;
}

bool Unified::EvictPart(Pass* pass, int device, const ChunkPart& part) {
  Block* block = part.block;
  DeviceView& view = block->views[static_cast<size_t>(device)];
  PageMask inside = PageMask::Range(part.block_page, part.pages) & block->valid;
  PageMask pages = inside & (view.resident | (block->discarded - Elsewhere(*block, device)));
  PageMask resident = pages & view.resident;
  if (resident.Any()) pass->cpu += costs_.evict;
  PageMask zeroed = pages & block->discarded;
  if (!PopulateHost(pass, block, pages, zeroed)) return false;
  PageMask copied = resident - block->on_host - block->discarded;
  auto bytes = [](const PageMask& mask) {
    return static_cast<uint64_t>(mask.Count()) * kPageBytes;
  };
  stats_->duplicates_not_copied += bytes((resident & block->on_host) - block->discarded);
  stats_->discarded_not_copied += bytes(resident & block->discarded);
  if (copied.Any()) {
    Cause cause = pass->cause;
    pass->cause = Cause::kEviction;
    CopyToHost(pass, block, device, copied, pass->cpu + costs_.page_table);
    pass->cause = cause;
  }
  // What was written after a discard that kept the mappings is lost here.
  block->dead |= resident & block->discard_kept;
  block->on_host |= pages;
  LeaveDevice(block, device, resident);
  if (view.root != kNoChunk) {
    view.root = kNoChunk;
    view.ever_full = false;
  } else {
    std::erase_if(view.small, [&](const SmallChunk& small) {
      return small.block_page == part.block_page && small.pages == part.pages;
    });
  }
  MapForAccessedBy(block, resident, pass->cpu);
  return true;
}

// A kernel thread maps evicted pages for the devices that asked for it, a little later.
void Unified::MapForAccessedBy(Block* block, const PageMask& pages, Time from) {
  if (block->policy.accessed_by == 0 || block->policy.read_mostly || pages.None()) return;
  for (int device = 0; device < devices(); ++device) {
    bool asked = ((block->policy.accessed_by >> device) & 1) != 0;
    if (!asked || block->policy.preferred == device) continue;
    DeviceView& view = block->views[static_cast<size_t>(device)];
    Ready ready = block->host_arrival;
    ready.at = std::max(ready.at, from + costs_.remote_map_delay);
    view.remote_from = std::max(view.remote_from, Resolve(ready));
    view.remote |= pages - view.resident;
    view.remote_large = block->whole && block->host_large && view.remote == PageMask::All();
  }
}

void Unified::FreeChunks(Block* block, int device) {
  DeviceView& view = block->views[static_cast<size_t>(device)];
  PhysicalMemory& physical = memory(device);
  if (view.root != kNoChunk) {
    physical.Empty(view.root);
    physical.Return(view.root);
  }
  for (const SmallChunk& small : view.small) {
    RootChunk& root = physical.At(small.root);
    root.taken -= PageMask::Range(small.chunk_page, small.pages);
    std::erase_if(root.parts,
                  [&](const ChunkPart& part) { return part.chunk_page == small.chunk_page; });
    if (!root.parts.empty()) continue;
    physical.Empty(small.root);
    physical.Return(small.root);
  }
  view.root = kNoChunk;
  view.small.clear();
}

// The 2 MiB chunk of a block becomes pieces, before advice splits the block at page `boundary`.
void Unified::BreakRoot(Block* block, int device, int boundary) {
  DeviceView& view = block->views[static_cast<size_t>(device)];
  if (view.root == kNoChunk) return;
  PhysicalMemory& physical = memory(device);
  ChunkId id = view.root;
  RootChunk& root = physical.At(id);
  root.parts.clear();
  root.taken = PageMask::All();
  for (int first = 0; first < PageMask::kPages; first += kSmallPages) {
    bool cut = boundary > first && boundary < first + kSmallPages;
    int pages = cut ? 1 : kSmallPages;
    for (int page = first; page < first + kSmallPages; page += pages) {
      view.small.push_back({id, page, page, pages});
      root.parts.push_back({block, page, page, pages});
    }
  }
  view.root = kNoChunk;
  physical.Split(id);
  physical.MoveToTail(id, ChunkList::kUsed);
}

MachineStatus Unified::PinDeviceMemory(Pass* pass, int device, uint64_t bytes) {
  PhysicalMemory& physical = memory(device);
  if (bytes > physical.free_bytes() + physical.evictable_bytes())
    return MachineStatus::kOutOfMemory;
  while (!physical.Pin(bytes)) {
    if (physical.ReturnFree()) continue;
    ChunkId id = physical.Victim();
    if (id == kNoChunk || !EvictRoot(pass, device, id)) return MachineStatus::kOutOfMemory;
    // The memory goes to somebody who knows no trackers: the call waits for the copy.
    pass->cpu = std::max(pass->cpu, Resolve(physical.At(id).ready));
    physical.Return(id);
  }
  return MachineStatus::kOk;
}

void Unified::RemoveRange(Pass* pass, uint64_t begin) {
  Range* range = space_.Find(begin);
  if (range == nullptr) return;
  for (auto& first : range->slots) {
    for (Block* block = first.get(); block != nullptr; block = block->sibling.get()) {
      pass->cpu = std::max(pass->cpu, Resolve(block->host_arrival));
      for (int device = 0; device < devices(); ++device) {
        const DeviceView& view = block->views[static_cast<size_t>(device)];
        pass->cpu = std::max(pass->cpu, Resolve(view.arrival));
        if (view.resident.Any()) ++losses_[static_cast<size_t>(device)];
        FreeChunks(block, device);
      }
      stats_->host_bytes -= static_cast<uint64_t>(block->host_pages.Count()) * kPageBytes;
      pass->cpu += costs_.free_block;
    }
  }
  space_.Remove(range->begin);
}

}  // namespace atp::sim
