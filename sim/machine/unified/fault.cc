// SPDX-License-Identifier: Apache-2.0
// Service of page faults of one block, by a device or by the host. Source:
// uvm_gpu_replayable_faults.c, uvm_va_block.c (block_select_processor_residency,
// uvm_va_block_service_locked).
#include <algorithm>

#include "sim/machine/unified/density_tree.h"
#include "sim/machine/unified/residency.h"
#include "sim/machine/unified/unified.h"

namespace atp::sim {

struct Unified::Destinations {
  PageMask move, duplicate;         // to the faulting processor
  std::vector<PageMask> elsewhere;  // [place + 1]: served at that place and mapped from afar
  bool is_mixed = false;
};

PageMask Unified::PagesAt(const Block& block, int place) const {
  return place == kHost ? block.on_host : block.views[static_cast<size_t>(place)].resident;
}

bool Unified::Reaches(int processor, int place) const {
  if (processor == place) return true;
  if (processor == kHost || place == kNoPlace)
    return false;  // no coherent link: the host cannot reach a card
  return place == kHost || ((peers_[static_cast<size_t>(processor)] >> place) & 1) != 0;
}

Unified::Destinations Unified::Choose(const Block& block, int processor, const PageMask& pages,
                                      const PageMask& writes) {
  Destinations result;
  result.elsewhere.resize(static_cast<size_t>(devices()) + 1);
  auto decide = [&](int place, const PageMask& part, bool is_write) {
    if (part.None()) return;
    Fault fault{processor, place, is_write, Reaches(processor, place),
                Reaches(processor, block.policy.preferred)};
    Residency residency = ChooseResidency(block.policy, fault);
    if (residency.place == processor) {
      (residency.duplicate ? result.duplicate : result.move) |= part;
    } else {
      result.elsewhere[static_cast<size_t>(residency.place + 1)] |= part;
      result.is_mixed = true;
    }
  };
  PageMask left = pages;
  auto classify = [&](int place) {
    PageMask part = place == kNoPlace ? left : left & PagesAt(block, place);
    decide(place, part & writes, true);
    decide(place, part - writes, false);
    left -= part;
  };
  classify(
      processor);  // resident here: a write to a read-only page, or pages that only lack a mapping
  classify(kHost);
  for (int device = 0; device < devices(); ++device) classify(device);
  classify(kNoPlace);
  return result;
}

// What the density prefetcher brings along.
PageMask Unified::Expanded(const Block& block, int processor, const PageMask& pages) const {
  const PageMask here = PagesAt(block, processor);
  bool first_touch = (pages - here - Elsewhere(block, processor)).Any();
  PageMask expanded = block.valid;
  if (!(block.policy.preferred == processor && first_touch)) {
    expanded = ExpandFaults(pages, here, block.valid, static_cast<int>(costs_.prefetch_threshold));
  }
  int preferred = block.policy.preferred;
  if (preferred != kNoPlace && preferred != processor)
    expanded -= PagesAt(block, preferred) - pages;
  return expanded;
}

bool Unified::ServiceFaults(Pass* pass, Block* block, int processor, const PageMask& pages,
                            const PageMask& writes) {
  Destinations to = Choose(*block, processor, pages, writes);
  PageMask extra;
  if (!to.is_mixed) extra = Expanded(*block, processor, pages) - pages;
  (block->policy.read_mostly ? to.duplicate : to.move) |= extra;
  auto bring = [&](const PageMask& part, bool duplicate) {
    if (part.None()) return true;
    return processor == kHost ? MoveToHost(pass, block, part, duplicate)
                              : MakeResident(pass, block, processor, part, duplicate);
  };
  if (!bring(to.duplicate, true) || !bring(to.move, false)) return false;
  for (int place = kHost; place < devices(); ++place) {
    const PageMask& part = to.elsewhere[static_cast<size_t>(place + 1)];
    if (part.None()) continue;
    bool served = place == kHost ? MoveToHost(pass, block, part, false)
                                 : MakeResident(pass, block, place, part, false);
    if (!served) return false;
    DeviceView& view = block->views[static_cast<size_t>(processor)];
    view.remote |= part;
    view.remote_large = false;
    view.remote_from = 0;
    link_->Join(&pass->done, place == kHost ? block->host_arrival
                                            : block->views[static_cast<size_t>(place)].arrival);
    pass->cpu += costs_.page_table;
  }
  block->discarded -= (pages & writes) - block->discard_kept;
  return true;
}

PageMask Unified::Accessible(Block* block, int device, const PageMask& pages,
                             const PageMask& writes, Time now, PageMask* remote) {
  DeviceView& view = block->views[static_cast<size_t>(device)];
  if (view.pending.Any() && Resolve(view.arrival) <= now) view.pending = PageMask();
  PageMask here = (pages & view.resident) - view.pending - (writes & view.read_only);
  *remote = PageMask();
  if (view.remote.Any() && view.remote_from <= now) *remote = (pages & view.remote) - view.resident;
  return here | *remote;
}

void Unified::Access(Block* block, const PageMask& reads, const PageMask& writes) {
  if (block->dead.None() && block->discarded.None()) return;
  stats_->discard_violations += static_cast<uint64_t>((block->dead & reads).Count());
  block->dead -= writes | reads;  // a read is counted once, not again with every launch
  block->discarded -= writes - block->discard_kept;
}

// The host touches pages in ascending order; each fault brings its neighbours along.
bool Unified::HostFault(Pass* pass, Block* block, const PageMask& pages, bool write) {
  for (int page = pages.Next(0); page < PageMask::kPages; page = pages.Next(page + 1)) {
    bool shared = write && Elsewhere(*block, kHost).Test(page);
    if (block->on_host.Test(page) && block->host_mapped.Test(page) && !shared) continue;
    PageMask one = PageMask::Range(page, 1);
    ++stats_->host_faults;
    pass->cpu += costs_.host_fault;
    PageMask mapped = (Expanded(*block, kHost, one) | one) - block->host_mapped;
    if (!ServiceFaults(pass, block, kHost, one, write ? one : PageMask())) return false;
    pass->cpu = std::max(pass->cpu, Resolve(block->host_arrival));
    mapped &= block->on_host;
    pass->cpu += Share(costs_.host_map, mapped.Count());
    block->host_mapped |= mapped;
  }
  return true;
}

MachineStatus Unified::HostAccess(Pass* pass, uint64_t address, uint64_t bytes, bool write) {
  bool fits = space_.ForEach(address, bytes, [&](Block& block, const PageMask& pages) {
    Access(&block, write ? PageMask() : pages, write ? pages : PageMask());
    return HostFault(pass, &block, pages, write);
  });
  return fits ? MachineStatus::kOk : MachineStatus::kOutOfMemory;
}

}  // namespace atp::sim
