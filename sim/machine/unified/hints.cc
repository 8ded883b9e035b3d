// SPDX-License-Identifier: Apache-2.0
// Prefetch, advise and discard. Source: uvm_migrate.c, uvm_policy.c, va_block_discard_locked in
// uvm_va_block.c.
#include <algorithm>

#include "sim/machine/unified/unified.h"

namespace atp::sim {

// One visit of a prefetch to a block. Even when nothing moves, the block goes to the tail of the
// list of victims: the only "touch" that user space has.
bool Unified::VisitForDevice(Pass* pass, Block* block, const PageMask& pages, int device,
                             int passes, bool* moved) {
  PageMask missing = pages - block->views[static_cast<size_t>(device)].resident;
  *moved = *moved || missing.Any();
  pass->cpu +=
      Share(*moved ? costs_.prefetch_block : costs_.prefetch_touch, pages.Count()) / passes;
  if (!MakeResident(pass, block, device, pages, block->policy.read_mostly)) return false;
  block->discarded -= pages;
  block->discard_kept -= pages;
  return true;
}

// A range of several blocks is walked twice: move, then move again and map. Blocks that the first
// pass evicts near its end come back in the second.
MachineStatus Unified::PrefetchToDevice(Pass* pass, uint64_t address, uint64_t bytes, int device) {
  struct Visit {
    Block* block;
    PageMask pages;
    bool moved = false;
  };
  std::vector<Visit> visits;
  space_.ForEach(address, bytes, [&](Block& block, const PageMask& pages) {
    visits.push_back({&block, pages});
    return true;
  });
  const auto is_there = [&](const Visit& visit) {
    return (visit.pages - visit.block->views[static_cast<size_t>(device)].resident).None();
  };
  if (costs_.touch_elided > 0 && std::all_of(visits.begin(), visits.end(), is_there)) {
    return MachineStatus::kOk;
  }
  int passes = visits.size() > 1 ? 2 : 1;
  for (int i = 0; i < passes; ++i) {
    for (Visit& visit : visits) {
      if (!VisitForDevice(pass, visit.block, visit.pages, device, passes, &visit.moved)) {
        return MachineStatus::kOutOfMemory;
      }
    }
  }
  for (const Visit& visit : visits) {
    const DeviceView& view = visit.block->views[static_cast<size_t>(device)];
    if (visit.moved) link_->Join(&pass->done, view.arrival);
    stats_->touches += !visit.moved;
  }
  pass->done.at = std::max(pass->done.at, pass->cpu);
  return MachineStatus::kOk;
}

bool Unified::VisitForHost(Pass* pass, Block* block, const PageMask& pages) {
  pass->cpu += Share(costs_.prefetch_block, pages.Count());
  if (!MoveToHost(pass, block, pages, block->policy.read_mostly)) return false;
  block->discarded -= pages;
  block->discard_kept -= pages;
  return true;
}

// Starts all copies, then maps each block for the host, which waits for its copy: the calling
// thread is blocked about as long as the copies take.
MachineStatus Unified::PrefetchToHost(Pass* pass, uint64_t address, uint64_t bytes) {
  bool fits = space_.ForEach(address, bytes, [&](Block& block, const PageMask& pages) {
    return VisitForHost(pass, &block, pages);
  });
  if (!fits) return MachineStatus::kOutOfMemory;
  space_.ForEach(address, bytes, [&](Block& block, const PageMask& pages) {
    PageMask mapped = pages - block.host_mapped;
    if (mapped.None()) return true;
    pass->cpu = std::max(pass->cpu, Resolve(block.host_arrival));
    pass->cpu += Share(costs_.host_map, mapped.Count());
    block.host_mapped |= mapped;
    return true;
  });
  pass->done.at = std::max(pass->done.at, pass->cpu);
  return MachineStatus::kOk;
}

// No block may lie on both sides of the end of an advised range. A block that is split lives in
// small chunks from then on.
void Unified::SplitForAdvice(uint64_t address) {
  if (address % kBlockBytes == 0) return;
  Block* block = space_.BlockOf(address >> kPageBits);
  if (block == nullptr) return;
  int boundary = static_cast<int>((address % kBlockBytes) >> kPageBits);
  PageMask upper = block->valid & PageMask::Range(boundary, PageMask::kPages - boundary);
  if (upper == block->valid) return;
  for (int device = 0; device < devices(); ++device) BreakRoot(block, device, boundary);
  space_.SplitAt(address);
  Block* part = space_.BlockOf(address >> kPageBits);
  for (int device = 0; device < devices(); ++device) {
    for (const SmallChunk& small : part->views[static_cast<size_t>(device)].small) {
      for (ChunkPart& owner : memory(device).At(small.root).parts) {
        if (owner.block == block && owner.block_page == small.block_page) owner.block = part;
      }
    }
  }
}

void Unified::Advise(Pass* pass, uint64_t address, uint64_t bytes, Advice advice, int location) {
  SplitForAdvice(address);
  SplitForAdvice(address + bytes);
  space_.ForEach(address, bytes, [&](Block& block, const PageMask&) {
    pass->cpu = std::max(pass->cpu, Resolve(block.host_arrival));
    for (const DeviceView& view : block.views)
      pass->cpu = std::max(pass->cpu, Resolve(view.arrival));
    pass->cpu += costs_.advise_block;
    ApplyAdvice(pass, &block, advice, location);
    return true;
  });
}

void Unified::ApplyAdvice(Pass* pass, Block* block, Advice advice, int location) {
  Policy& policy = block->policy;
  uint64_t bit = location >= 0 ? uint64_t{1} << location : 0;
  switch (advice) {
    case Advice::kSetReadMostly:
      policy.read_mostly = true;
      break;
    case Advice::kUnsetReadMostly:
      policy.read_mostly = false;
      Collapse(block);
      break;
    case Advice::kSetPreferred:
      policy.preferred = location;
      if (location >= 0) block->views[static_cast<size_t>(location)].remote = PageMask();
      break;
    case Advice::kUnsetPreferred:
      policy.preferred = kNoPlace;
      break;
    case Advice::kSetAccessedBy:
      policy.accessed_by |= bit;
      if (bit != 0 && !policy.read_mostly && policy.preferred != location) {
        DeviceView& view = block->views[static_cast<size_t>(location)];
        view.remote |= block->on_host - view.resident;
        view.remote_large = block->whole && block->host_large && view.remote == PageMask::All();
        view.remote_from = std::max(view.remote_from, pass->cpu + costs_.page_table);
      }
      break;
    case Advice::kUnsetAccessedBy:
      policy.accessed_by &= ~bit;
      if (bit != 0) block->views[static_cast<size_t>(location)].remote = PageMask();
      break;
  }
}

// Ends read duplication. Copies stay at the preferred location when it is a device, else on the
// host.
void Unified::Collapse(Block* block) {
  for (int device = 0; device < devices(); ++device) {
    DeviceView& view = block->views[static_cast<size_t>(device)];
    PageMask shared = view.resident & Elsewhere(*block, device);
    view.read_only -= view.resident - shared;
    if (shared.None()) continue;
    if (block->policy.preferred == device) {
      block->on_host -= shared;
      block->host_mapped -= shared;
      view.read_only -= shared;
      for (int peer = 0; peer < devices(); ++peer) {
        if (peer != device) LeaveDevice(block, peer, shared);
      }
    } else {
      LeaveDevice(block, device, shared);
    }
  }
}

void Unified::Discard(Pass* pass, uint64_t address, uint64_t bytes, bool unmap) {
  space_.ForEach(address, bytes, [&](Block& block, const PageMask& pages) {
    pass->cpu += Share(unmap ? costs_.discard_unmap : costs_.discard_keep, pages.Count());
    block.discarded |= pages;
    block.dead |= pages;
    if (unmap) {
      block.discard_kept -= pages;
      block.on_host -= pages;
      block.host_mapped -= pages;
    } else {
      block.discard_kept |= pages;
    }
    for (int device = 0; device < devices(); ++device) {
      DeviceView& view = block.views[static_cast<size_t>(device)];
      if (unmap) {
        LeaveDevice(&block, device, pages);
      } else {
        PageMask shared = view.resident & pages & block.on_host;  // a discard ends read duplication
        block.on_host -= shared;
        view.read_only -= shared;
        bool all = block.whole && view.root != kNoChunk && view.resident.Any() &&
                   block.discarded == PageMask::All();
        if (all) memory(device).MoveToTail(view.root, ChunkList::kDiscarded);
      }
    }
    return true;
  });
  pass->done.at = std::max(pass->done.at, pass->cpu);
}

}  // namespace atp::sim
