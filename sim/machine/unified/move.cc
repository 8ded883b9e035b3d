// SPDX-License-Identifier: Apache-2.0
// Moving pages of one block: to a device, to the host. Source: uvm_va_block_make_resident and its
// kin in uvm_va_block.c.
#include <algorithm>

#include "sim/machine/unified/unified.h"

namespace atp::sim {

Unified::Unified(const Costs& costs, Interconnect* link, Stats* stats, int devices,
                 uint64_t device_bytes, uint64_t host_limit)
    : costs_(costs),
      link_(link),
      stats_(stats),
      space_(devices, costs.f2m),
      losses_(static_cast<size_t>(devices), 0),
      internal_free_(static_cast<size_t>(devices), 0),
      peers_(static_cast<size_t>(devices), 0),
      host_limit_(host_limit) {
  for (int device = 0; device < devices; ++device)
    memories_.emplace_back(device_bytes, costs.pma_batch);
}

void Unified::SetPeerAccess(int device, int peer, bool enabled) {
  uint64_t bit = uint64_t{1} << peer;
  uint64_t& peers = peers_[static_cast<size_t>(device)];
  peers = enabled ? peers | bit : peers & ~bit;
}

uint64_t Unified::resident_bytes(int device) {
  uint64_t pages = 0;
  space_.ForAll([&](Block& block) {
    pages += static_cast<uint64_t>(block.views[static_cast<size_t>(device)].resident.Count());
  });
  return pages * kPageBytes;
}

Ticket Unified::Copy(Pass* pass, int device, Direction direction, const Block& block,
                     const PageMask& pages, const Ready& after) {
  uint64_t bytes = static_cast<uint64_t>(pages.Count()) * kPageBytes;
  Traffic& traffic = direction == Direction::kToDevice ? stats_->to_device : stats_->to_host;
  traffic.Of(pass->cause) += bytes;
  int pieces = block.host_large ? pages.Runs() : pages.Count();
  Ready start = after;
  start.at = std::max(start.at, pass->cpu);
  if (pass->serial) link_->Join(&start, pass->chain);
  Ticket ticket = link_->Push(device, pass->now, Channel::kDriver, direction, bytes,
                              costs_.piece_overhead * pieces, start);
  Ready ready = Interconnect::Of(ticket);
  if (pass->serial) pass->chain = ready;
  link_->Join(&pass->done, ready);
  return ticket;
}

// Host memory for pages that have none; `zeroed` of them must be cleared (nobody has valid data).
// False at the host's limit.
bool Unified::PopulateHost(Pass* pass, Block* block, const PageMask& pages,
                           const PageMask& zeroed) {
  PageMask fresh = pages - block->host_pages;
  int count = fresh.Count();
  if (count == 0) return true;
  uint64_t bytes = static_cast<uint64_t>(count) * kPageBytes;
  if (host_limit_ != 0 && stats_->host_bytes + bytes > host_limit_) return false;
  stats_->host_bytes += bytes;
  block->host_pages |= fresh;
  pass->cpu += Share(block->host_large ? costs_.host_pages_2m : costs_.host_pages_4k, count);
  int clear = (fresh & zeroed).Count();
  pass->cpu += Share(block->host_large ? costs_.host_zero_2m : costs_.host_zero_4k, clear);
  stats_->zeroed_on_host += static_cast<uint64_t>(clear) * kPageBytes;
  return true;
}

// Pages of the block with valid data anywhere but on `device`.
PageMask Unified::Elsewhere(const Block& block, int device) const {
  PageMask pages = device == kHost ? PageMask() : block.on_host;
  for (int d = 0; d < devices(); ++d) {
    if (d != device) pages |= block.views[static_cast<size_t>(d)].resident;
  }
  return pages;
}

// The driver's "update eviction heuristics": a full block that is resident goes to the tail, even
// when nothing was copied.
void Unified::MarkUsed(Block* block, int device) {
  DeviceView& view = block->views[static_cast<size_t>(device)];
  if (!block->whole || view.root == kNoChunk || view.resident.None()) return;
  memory(device).MoveToTail(view.root, ChunkList::kUsed);
  if (view.resident == PageMask::All()) view.ever_full = true;
}

bool Unified::MakeResident(Pass* pass, Block* block, int device, const PageMask& pages,
                           bool duplicate) {
  DeviceView& view = block->views[static_cast<size_t>(device)];
  PageMask missing = pages - view.resident;
  if (missing.Any()) {
    if (!EnsureChunks(pass, block, device, missing)) return false;
    Ready after = ChunksReady(*block, device);
    PageMask from_host = (missing & block->on_host) - block->discarded;
    PageMask from_peers = (missing & Elsewhere(*block, device)) - block->on_host - block->discarded;
    if (from_host.Any()) CopyFromHost(pass, block, device, from_host, after);
    if (from_peers.Any()) CopyFromPeers(pass, block, device, from_peers, after);
    ZeroFresh(pass, block, device, missing - from_host - from_peers, after);
    view.resident |= missing;
    view.pending |= missing;
    ChunksBusyUntil(block, device, view.arrival);
  }
  PageMask leaving = duplicate ? pages & block->discarded : pages;
  block->on_host -= leaving;
  block->host_mapped -= leaving;
  for (int peer = 0; peer < devices(); ++peer) {
    if (peer != device) LeaveDevice(block, peer, leaving);
  }
  view.remote -= pages;
  if (duplicate) {
    view.read_only |= pages;
  } else {
    view.read_only -= pages;
  }
  MarkUsed(block, device);
  return true;
}

void Unified::CopyFromHost(Pass* pass, Block* block, int device, const PageMask& pages,
                           const Ready& after) {
  DeviceView& view = block->views[static_cast<size_t>(device)];
  pass->cpu += Share(costs_.host_unmap, (pages & block->host_mapped).Count());
  Ready start = after;
  link_->Join(&start, block->host_arrival);
  Ticket ticket = Copy(pass, device, Direction::kToDevice, *block, pages, start);
  link_->Join(&view.arrival, Interconnect::Of(ticket));
}

// Device to device, through both links (no NVLink in this model).
void Unified::CopyFromPeers(Pass* pass, Block* block, int device, const PageMask& pages,
                            const Ready& after) {
  DeviceView& view = block->views[static_cast<size_t>(device)];
  PageMask left = pages;
  for (int peer = 0; peer < devices(); ++peer) {
    DeviceView& source = block->views[static_cast<size_t>(peer)];
    PageMask part = left & source.resident;
    if (peer == device || part.None()) continue;
    left -= part;
    Ready start = source.arrival;
    link_->Join(&start, after);
    start.at = std::max(start.at, pass->cpu);
    uint64_t bytes = static_cast<uint64_t>(part.Count()) * kPageBytes;
    Time setup = costs_.piece_overhead * part.Runs();
    Ticket out =
        link_->Push(peer, pass->now, Channel::kDriver, Direction::kToHost, bytes, setup, start);
    Ready sent = Interconnect::Of(out);
    ChunksBusyUntil(block, peer, sent);
    Ticket in =
        link_->Push(device, pass->now, Channel::kDriver, Direction::kToDevice, bytes, 0, sent);
    Ready received = Interconnect::Of(in);
    link_->Join(&view.arrival, received);
    link_->Join(&pass->done, received);
    if (pass->serial) pass->chain = received;
    stats_->peer_bytes += bytes;
  }
}

// Pages that nobody has data for. A chunk that is known to be zero needs nothing, nor does
// discarded data that overwrites what the block itself left there.
void Unified::ZeroFresh(Pass* pass, Block* block, int device, const PageMask& pages,
                        const Ready& after) {
  if (pages.None()) return;
  DeviceView& view = block->views[static_cast<size_t>(device)];
  PageMask cleared = view.ever_full ? pages - block->discarded : pages;
  bool is_zero = view.root != kNoChunk && memory(device).At(view.root).is_zero;
  if (is_zero || cleared.None()) return;
  Time& engine = internal_free_[static_cast<size_t>(device)];
  Time start = std::max({engine, pass->cpu, Resolve(after)});
  engine = start + Share(costs_.device_zero, cleared.Count());
  view.arrival.at = std::max(view.arrival.at, engine);
  pass->done.at = std::max(pass->done.at, engine);
  if (pass->serial) pass->chain.at = std::max(pass->chain.at, engine);
  stats_->zeroed_on_device += static_cast<uint64_t>(cleared.Count()) * kPageBytes;
}

// Pages lose their copy on a device. The chunk of a block that has none left stays with it, on the
// UNUSED list.
void Unified::LeaveDevice(Block* block, int device, const PageMask& pages) {
  DeviceView& view = block->views[static_cast<size_t>(device)];
  view.remote -= pages;
  if ((view.resident & pages).None()) return;
  view.resident -= pages;
  view.read_only -= pages;
  view.pending -= pages;
  ++losses_[static_cast<size_t>(device)];
  if (block->whole && view.root != kNoChunk && view.resident.None()) {
    memory(device).MoveToTail(view.root, ChunkList::kUnused);
  }
}

void Unified::CopyToHost(Pass* pass, Block* block, int device, const PageMask& pages,
                         Time earliest) {
  DeviceView& view = block->views[static_cast<size_t>(device)];
  Ready start = view.arrival;
  link_->Join(&start, ChunksReady(*block, device));
  start.at = std::max(start.at, earliest);
  Ready sent = Interconnect::Of(Copy(pass, device, Direction::kToHost, *block, pages, start));
  link_->Join(&block->host_arrival, sent);
  ChunksBusyUntil(block, device, sent);
}

bool Unified::MoveToHost(Pass* pass, Block* block, const PageMask& pages, bool duplicate) {
  PageMask anywhere = Elsewhere(*block, kHost) | block->on_host;
  if (!PopulateHost(pass, block, pages, (pages - anywhere) | (pages & block->discarded)))
    return false;
  PageMask wanted = pages - block->on_host;
  for (int device = 0; device < devices(); ++device) {
    PageMask part = wanted & block->views[static_cast<size_t>(device)].resident;
    if (part.None()) continue;
    wanted -= part;
    PageMask copied = part - block->discarded;
    if (copied.Any()) CopyToHost(pass, block, device, copied, pass->cpu + costs_.page_table);
  }
  block->on_host |= pages;
  for (int device = 0; device < devices(); ++device) {
    DeviceView& view = block->views[static_cast<size_t>(device)];
    if (duplicate) {
      view.read_only |= pages & view.resident;
    } else {
      LeaveDevice(block, device, pages);
    }
  }
  return true;
}

}  // namespace atp::sim
