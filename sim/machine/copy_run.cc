// SPDX-License-Identifier: Apache-2.0
#include "sim/machine/copy_run.h"

#include <algorithm>

namespace atp::sim {
namespace {

Time Duration(uint64_t bytes, int64_t rate) {
  return static_cast<Time>(static_cast<__int128>(bytes) * kSecond / rate);
}

}  // namespace

Time CopyRun::Step(Time now) {
  if (!started_) {
    started_ = true;
    ready_.at = now + (work_.kind == CopyKind::kHostToHost ? 0 : world_.costs.copy_latency);
  }
  Time end = world_.link.Resolve(ready_);
  while (end <= now) {
    if (offset_ == work_.bytes ||
        world_.health[static_cast<size_t>(device_)] != MachineStatus::kOk) {
      return kDone;
    }
    end = StartPiece(now);
  }
  return end;
}

Time CopyRun::StartPiece(Time now) {
  uint64_t bytes = std::min(work_.bytes - offset_, kBlockBytes);
  Pass pass;
  pass.now = now;
  pass.cpu = lock_.ReadFrom(now);
  pass.cause = Cause::kEngineFault;
  uint64_t remote_in = 0, remote_out = 0;
  bool host_only = work_.kind == CopyKind::kHostToHost;
  bool reached = host_only;
  if (!host_only) {
    reached =
        (work_.source == 0 || Reach(&pass, work_.source + offset_, bytes, false, &remote_in)) &&
        (work_.destination == 0 ||
         Reach(&pass, work_.destination + offset_, bytes, true, &remote_out));
  }
  if (!reached) world_.health[static_cast<size_t>(device_)] = MachineStatus::kContextDead;
  ready_ = Interconnect::After(pass.cpu);
  Move(now, pass.cpu, bytes, remote_in, remote_out);
  offset_ += bytes;
  return world_.link.Resolve(ready_);
}

// Faults until the engine has seen every page of the piece once. `remote_bytes`: what it reaches in
// place.
bool CopyRun::Reach(Pass* pass, uint64_t address, uint64_t bytes, bool write,
                    uint64_t* remote_bytes) {
  Unified& unified = world_.unified;
  bool faulted = false;
  bool fits = unified.space().ForEach(address, bytes, [&](Block& block, const PageMask& pages) {
    PageMask todo = pages;
    while (true) {
      PageMask remote;
      PageMask writes = write ? todo : PageMask();
      PageMask there = unified.Accessible(&block, device_, todo, writes, pass->cpu, &remote);
      *remote_bytes += static_cast<uint64_t>(remote.Count()) * kPageBytes;
      todo -= there;
      if (todo.None()) break;
      PageMask page = PageMask::Range(todo.Next(0), 1);
      const DeviceView& view = block.views[static_cast<size_t>(device_)];
      if ((page & view.pending).Any()) {
        pass->cpu = std::max(pass->cpu, unified.Resolve(view.arrival));
        continue;
      }
      faulted = true;
      ++world_.stats.engine_faults;
      pass->cpu += world_.costs.engine_fault;
      if (!unified.ServiceFaults(pass, &block, device_, page, write ? page : PageMask()))
        return false;
      pass->cpu = std::max(pass->cpu, unified.Resolve(pass->done));
    }
    unified.Access(&block, write ? PageMask() : pages, write ? pages : PageMask());
    return true;
  });
  if (faulted) lock_.HoldRead(pass->cpu);
  return fits;
}

void CopyRun::PushLink(Time now, Time start, Direction direction, uint64_t bytes, bool staged) {
  if (bytes == 0) return;
  Traffic& traffic =
      direction == Direction::kToDevice ? world_.stats.to_device : world_.stats.to_host;
  traffic.copy += bytes;
  Ticket ticket = world_.link.Push(device_, now, Channel::kProgram, direction, bytes, 0,
                                   Interconnect::After(start));
  world_.link.Join(&ready_, Interconnect::Of(ticket));
  if (staged) ready_.at = std::max(ready_.at, start + Duration(bytes, world_.costs.pageable_copy));
}

void CopyRun::Move(Time now, Time start, uint64_t bytes, uint64_t remote_in, uint64_t remote_out) {
  int64_t memory = std::max<int64_t>(
      1,
      static_cast<int64_t>(static_cast<double>(world_.costs.dram) * world_.costs.dram_efficiency));
  switch (work_.kind) {
    case CopyKind::kHostToDevice:
      PushLink(now, start, Direction::kToDevice, bytes, work_.pageable_host);
      return;
    case CopyKind::kDeviceToHost:
      PushLink(now, start, Direction::kToHost, bytes, work_.pageable_host);
      return;
    case CopyKind::kPeer:  // charged to the link of the stream's device, towards the other
      PushLink(now, start, Direction::kToHost, bytes, false);
      return;
    case CopyKind::kHostToHost:
      ready_.at = start + Duration(bytes, world_.costs.host_copy);
      return;
    case CopyKind::kDeviceToDevice:
      ready_.at = start + Duration(2 * bytes, memory);
      break;
    case CopyKind::kSet:
      ready_.at = start + Duration(bytes, memory);
      break;
  }
  PushLink(now, start, Direction::kToDevice, std::min(remote_in, bytes), false);
  PushLink(now, start, Direction::kToHost, std::min(remote_out, bytes), false);
}

}  // namespace atp::sim
