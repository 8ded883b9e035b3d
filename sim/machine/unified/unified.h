// SPDX-License-Identifier: Apache-2.0
// Unified memory as NVIDIA's driver keeps it: where pages are, what moves them, who is evicted
// (docs/sim.md, "Unified memory").
//
// Called by the machine and by runs of kernels and copies. Every operation acts on the state at
// once and works out its times: processor time of the calling thread in Pass::cpu, copies as pieces
// on the link. Holds no data of programs. Nothing here is thread safe: the driver's lock protects
// it. Sources: uvm_va_block.c, uvm_pmm_gpu.c, uvm_migrate.c, uvm_policy.c in
// NVIDIA/open-gpu-kernel-modules 595.45.04.
#pragma once

#include <vector>

#include "sim/machine/costs.h"
#include "sim/machine/link.h"
#include "sim/machine/stats.h"
#include "sim/machine/unified/block.h"

namespace atp::sim {

// One thread's way through the driver.
struct Pass {
  Time now = 0;  // simulated time
  Time cpu = 0;  // the thread's clock, at or after `now`
  Cause cause = Cause::kFault;
  bool serial = false;  // fault service: each copy waits for the one before it
  Ready chain;          // the copy before, when serial
  Ready done;           // everything started in this pass
};

class Unified {
 public:
  Unified(const Costs& costs, Interconnect* link, Stats* stats, int devices, uint64_t device_bytes,
          uint64_t host_limit);

  AddressSpace& space() { return space_; }
  PhysicalMemory& memory(int device) { return memories_[static_cast<size_t>(device)]; }
  int devices() const { return static_cast<int>(memories_.size()); }
  void SetPeerAccess(int device, int peer, bool enabled);

  // --- hints and calls of the program
  MachineStatus PrefetchToDevice(Pass* pass, uint64_t address, uint64_t bytes, int device);
  MachineStatus PrefetchToHost(Pass* pass, uint64_t address, uint64_t bytes);
  void Advise(Pass* pass, uint64_t address, uint64_t bytes, Advice advice, int location);
  void Discard(Pass* pass, uint64_t address, uint64_t bytes, bool unmap);
  MachineStatus HostAccess(Pass* pass, uint64_t address, uint64_t bytes, bool write);
  MachineStatus PinDeviceMemory(Pass* pass, int device, uint64_t bytes);
  void RemoveRange(Pass* pass, uint64_t begin);

  // --- faults. `processor` is a device or kHost; false when memory ran out (device: nothing to
  // evict; host: the limit).
  bool ServiceFaults(Pass* pass, Block* block, int processor, const PageMask& pages,
                     const PageMask& writes);

  // Which of `pages` the device can access at `now` without a fault. `remote`: those of them that
  // lie elsewhere.
  PageMask Accessible(Block* block, int device, const PageMask& pages, const PageMask& writes,
                      Time now, PageMask* remote);
  // Notes reads and writes that happen: counts reads of discarded content, and lets writes undo
  // discards.
  void Access(Block* block, const PageMask& reads, const PageMask& writes);

  // Grows whenever pages leave the device, so that a running kernel looks again.
  uint64_t losses(int device) const { return losses_[static_cast<size_t>(device)]; }
  uint64_t resident_bytes(int device);
  Time Resolve(const Ready& ready) { return link_->Resolve(ready); }

 private:
  // moves (move.cc)
  bool MakeResident(Pass* pass, Block* block, int device, const PageMask& pages, bool duplicate);
  bool MoveToHost(Pass* pass, Block* block, const PageMask& pages, bool duplicate);
  void CopyFromHost(Pass* pass, Block* block, int device, const PageMask& pages,
                    const Ready& after);
  void CopyFromPeers(Pass* pass, Block* block, int device, const PageMask& pages,
                     const Ready& after);
  void ZeroFresh(Pass* pass, Block* block, int device, const PageMask& pages, const Ready& after);
  void CopyToHost(Pass* pass, Block* block, int device, const PageMask& pages, Time earliest);
  Ticket Copy(Pass* pass, int device, Direction direction, const Block& block,
              const PageMask& pages, const Ready& after);
  bool PopulateHost(Pass* pass, Block* block, const PageMask& pages, const PageMask& zeroed);
  void LeaveDevice(Block* block, int device, const PageMask& pages);
  void MarkUsed(Block* block, int device);
  PageMask Elsewhere(const Block& block, int device) const;

  // chunks (evict.cc)
  bool EnsureChunks(Pass* pass, Block* block, int device, const PageMask& pages);
  bool EnsureSmallChunks(Pass* pass, Block* block, int device, const PageMask& pages);
  ChunkId ObtainRoot(Pass* pass, int device);
  bool EvictRoot(Pass* pass, int device, ChunkId id);
  bool EvictPart(Pass* pass, int device, const ChunkPart& part);
  void MapForAccessedBy(Block* block, const PageMask& pages, Time from);
  void FreeChunks(Block* block, int device);
  void BreakRoot(Block* block, int device, int boundary);
  Ready ChunksReady(const Block& block, int device);
  void ChunksBusyUntil(Block* block, int device, const Ready& ready);

  // faults (fault.cc)
  struct Destinations;
  Destinations Choose(const Block& block, int processor, const PageMask& pages,
                      const PageMask& writes);
  PageMask PagesAt(const Block& block, int place) const;
  bool Reaches(int processor, int place) const;
  PageMask Expanded(const Block& block, int processor, const PageMask& pages) const;
  bool HostFault(Pass* pass, Block* block, const PageMask& pages, bool write);

  // hints (hints.cc)
  bool VisitForDevice(Pass* pass, Block* block, const PageMask& pages, int device, int passes,
                      bool* moved);
  bool VisitForHost(Pass* pass, Block* block, const PageMask& pages);
  void ApplyAdvice(Pass* pass, Block* block, Advice advice, int location);
  void Collapse(Block* block);
  void SplitForAdvice(uint64_t address);

  const Costs& costs_;
  Interconnect* link_;
  Stats* stats_;
  AddressSpace space_;
  std::vector<PhysicalMemory> memories_;
  std::vector<uint64_t> losses_;
  std::vector<Time> internal_free_;  // the copy engine for work inside a device
  std::vector<uint64_t> peers_;      // bit p of [d]: device d reaches memory of device p
  const uint64_t host_limit_;
};

// The part of a cost per 2 MiB that `pages` take.
inline Time Share(Time per_block, int pages) { return per_block * pages / PageMask::kPages; }

}  // namespace atp::sim
