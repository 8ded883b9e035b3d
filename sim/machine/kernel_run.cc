// SPDX-License-Identifier: Apache-2.0
#include "sim/machine/kernel_run.h"

#include <algorithm>
#include <cmath>

namespace atp::sim {
Time KernelRun::Boundary(size_t wave) const {
  __int128 scaled = static_cast<__int128>(work_.resident_time) * static_cast<__int128>(wave);
  return static_cast<Time>(scaled / static_cast<__int128>(WaveCount()));
}

Time KernelRun::Step(Time now) {
  switch (state_) {
    case State::kNew:
      started_ = now;
      if (world_.health[static_cast<size_t>(device_)] != MachineStatus::kOk) return Finish(now);
      return Continue(now);
    case State::kComputing: {
      Time remote = world_.link.Resolve(remote_done_);
      if (remote > now) return remote;
      remote_done_ = Ready();
      wave_ = compute_end_;
      return Continue(now);
    }
    case State::kFaulting: {
      Time end = std::max(batch_cpu_, world_.link.Resolve(batch_done_)) + world_.costs.replay;
      if (end > now) return end;
      fault_time_ += now - batch_start_;
      credit_ += static_cast<Time>(
          std::llround(static_cast<double>(now - batch_start_) * world_.costs.fault_overlap));
      if (world_.health[static_cast<size_t>(device_)] != MachineStatus::kOk) return Finish(now);
      return ServeWave(now);
    }
  }
  return kDone;
}

Time KernelRun::Finish(Time now) {
  KernelStats& stats = world_.stats.kernels[work_.name];
  ++stats.count;
  stats.time += now - started_;
  stats.fault_time += fault_time_;
  if (world_.timeline.is_open()) {
    world_.timeline.Kernel(device_, work_.name, started_, now,
                           {fault_time_, faults_, world_.unified.resident_bytes(device_)});
  }
  world_.stats.busy[device_] += now - started_;
  CountComputing(false);
  return kDone;
}

Time KernelRun::Continue(Time now) {
  if (wave_ >= WaveCount()) return Finish(now);
  if (work_.waves.empty() || (!must_look_ && AllThere(now)))
    return Compute(now, wave_, WaveCount());
  must_look_ = true;
  BeginWave();
  return ServeWave(now);
}

Time KernelRun::Compute(Time now, size_t first, size_t last) {
  state_ = State::kComputing;
  is_rest_ = false;
  compute_start_ = now;
  compute_end_ = last;
  CountComputing(true);
  Time end = now + sharers_ * (Boundary(last) - Boundary(first));
  return end > now ? end : Step(now);
}

// The share is that of the moment when a stretch of computing begins, and holds to its end.
void KernelRun::CountComputing(bool computes) {
  int& computing = world_.computing[static_cast<size_t>(device_)];
  computing += (computes ? 1 : 0) - (computes_ ? 1 : 0);
  computes_ = computes;
  if (computes) sharers_ = computing;
}

// Looks again at the next wave boundary: the waves after it may miss what has left.
Time KernelRun::PagesLost(Time now, Time wake) {
  must_look_ = true;
  if (state_ != State::kComputing || is_rest_ || compute_end_ - wave_ <= 1) return wake;
  for (size_t wave = wave_ + 1; wave < compute_end_; ++wave) {
    Time end = compute_start_ + sharers_ * (Boundary(wave) - Boundary(wave_));
    if (end < now) continue;
    compute_end_ = wave;
    return end > now ? end : now;
  }
  return wake;
}

// Sorts touches into blocks; calls with the same `stamp` add to the same list. `order`, when
// wanted, keeps the order of first touch.
void KernelRun::Collect(std::span<const PageTouch> pages, uint64_t stamp,
                        std::vector<WaveBlock>* blocks, std::vector<uint32_t>* order) {
  AddressSpace& space = world_.unified.space();
  Block* block = nullptr;
  for (size_t i = 0; i < pages.size();) {
    const PageTouch& touch = pages[i];
    uint64_t slot = touch.page / PageMask::kPages;
    int page = static_cast<int>(touch.page % PageMask::kPages);
    if (block == nullptr || block->slot != slot || !block->valid.Test(page)) {
      block = space.BlockOf(touch.page);
      if (block == nullptr) {  // plain device memory
        ++i;
        continue;
      }
      if (block->stamp != stamp) {
        block->stamp = stamp;
        block->entry = static_cast<uint32_t>(blocks->size());
        blocks->emplace_back();
        blocks->back().block = block;
        blocks->back().slot = slot;
      }
    }
    // Most kernels touch neighbours one after the other: a run of them in one go.
    size_t end = i + 1;
    int count = 1;
    while (end < pages.size() && page + count < PageMask::kPages &&
           block->valid.Test(page + count) &&
           pages[end].page == touch.page + static_cast<uint64_t>(count) &&
           pages[end].flags == touch.flags) {
      ++end;
      ++count;
    }
    i = end;
    WaveBlock& entry = (*blocks)[block->entry];
    bool reads = (touch.flags & PageTouch::kRead) != 0,
         writes = (touch.flags & PageTouch::kWrite) != 0;
    bool overwrites = (touch.flags & PageTouch::kOverwritten) != 0;
    if (order == nullptr) entry.todo.SetRange(page, count);
    if (reads) entry.reads.SetRange(page, count);
    if (writes || overwrites) entry.writes.SetRange(page, count);
    if (reads && !overwrites) entry.depends.SetRange(page, count);
    if (order == nullptr) continue;
    for (int k = 0; k < count; ++k) {
      order->push_back(block->entry * PageMask::kPages + static_cast<uint32_t>(page + k));
    }
  }
}

// The common case: everything that the rest of the kernel touches is resident, and nothing of it
// was discarded.
bool KernelRun::AllThere(Time now) {
  std::vector<WaveBlock> all;
  const uint64_t stamp = NewStamp();
  for (size_t wave = wave_; wave < work_.waves.size(); ++wave) {
    Collect(work_.waves[wave].pages, stamp, &all, nullptr);
  }
  for (WaveBlock& entry : all) {
    Block* block = entry.block;
    if (block->dead.Any() || block->discarded.Any()) return false;
    PageMask remote;
    PageMask there =
        world_.unified.Accessible(block, device_, entry.todo, entry.writes, now, &remote);
    if ((entry.todo - there).Any() || remote.Any()) return false;
  }
  return true;
}

// What is left of the wave's computing, or of its accesses to host memory when those take longer.
Time KernelRun::FinishWave(Time now) {
  state_ = State::kComputing;
  is_rest_ = true;
  compute_start_ = now;
  compute_end_ = wave_ + 1;
  Time share = Boundary(wave_ + 1) - Boundary(wave_);
  CountComputing(true);
  Time end = now + sharers_ * std::max<Time>(0, share - credit_);
  if (remote_reads_ + remote_writes_ > 0) {
    double per_page = static_cast<double>(kPageBytes);
    uint64_t touches = 0;
    for (const WaveTouches& wave : work_.waves) touches += wave.pages.size();
    if (work_.sector_bytes != 0 && touches != 0) {
      per_page = static_cast<double>(work_.sector_bytes) / static_cast<double>(touches);
    }
    Ready after = Interconnect::After(now);
    auto access = [&](Direction direction, uint64_t pages, double share_of_link, Traffic* traffic) {
      if (pages == 0) return;
      uint64_t bytes = static_cast<uint64_t>(std::llround(static_cast<double>(pages) * per_page));
      traffic->remote += bytes;
      uint64_t weight =
          static_cast<uint64_t>(std::llround(static_cast<double>(bytes) / share_of_link));
      Ticket ticket =
          world_.link.Push(device_, now, Channel::kProgram, direction, weight, 0, after);
      world_.link.Join(&remote_done_, Interconnect::Of(ticket));
    };
    access(Direction::kToDevice, remote_reads_, world_.costs.remote_read, &world_.stats.to_device);
    access(Direction::kToHost, remote_writes_, world_.costs.remote_write, &world_.stats.to_host);
    Time scattered = world_.costs.remote_scattered * static_cast<Time>(remote_small_);
    end = std::max({end, now + scattered, world_.link.Resolve(remote_done_)});
  }
  return end > now ? end : Step(now);
}

Time KernelRun::Batch(Time now) {
  state_ = State::kFaulting;
  CountComputing(false);
  int faults = 0;
  std::vector<Group> groups = NextFaults(&faults);
  Pass pass;
  pass.now = now;
  Time& service_free = world_.fault_service_free[static_cast<size_t>(device_)];
  pass.cpu = std::max(lock_.ReadFrom(now), service_free) + world_.costs.fault_batch;
  pass.serial = true;
  world_.stats.gpu_faults += static_cast<uint64_t>(faults);
  faults_ += static_cast<uint64_t>(faults);
  ++world_.stats.fault_batches;
  batch_start_ = now;
  for (const Group& group : groups) {  // fetched and sorted before any block is served
    const WaveBlock& entry = blocks_[group.entry];
    const DeviceView& view = entry.block->views[static_cast<size_t>(device_)];
    int upgrades = (group.pages & entry.writes & view.resident & view.read_only).Count();
    pass.cpu += world_.costs.read_mostly_write * upgrades +
                world_.costs.fault * (group.pages.Count() - upgrades);
  }
  for (const Group& group : groups) {
    if (ServeGroup(&pass, group)) continue;
    world_.health[static_cast<size_t>(device_)] = MachineStatus::kContextDead;
    break;
  }
  lock_.HoldRead(pass.cpu);
  batch_cpu_ = pass.cpu;
  batch_done_ = pass.done;
  service_free = std::max(batch_cpu_, world_.link.Resolve(batch_done_)) + world_.costs.replay;
  return service_free;
}

bool KernelRun::ServeGroup(Pass* pass, const Group& group) {
  WaveBlock& entry = blocks_[group.entry];
  Block* block = entry.block;
  DeviceView& view = block->views[static_cast<size_t>(device_)];
  ++world_.stats.block_services;
  PageMask pages = group.pages;
  PageMask upgrades = pages & entry.writes & view.resident & view.read_only;
  // Pages on their way are only waited for.
  PageMask in_flight = (pages & view.resident & view.pending) - upgrades;
  if (in_flight.Any()) world_.link.Join(&pass->done, view.arrival);
  pages -= in_flight;
  if (pages != upgrades || in_flight.Any()) pass->cpu += world_.costs.block_service;
  if (pages.None()) return true;
  PageMask writes = pages & entry.writes;
  if (!world_.unified.ServiceFaults(pass, block, device_, pages, writes)) return false;
  if ((pages & view.resident).Any()) world_.link.Join(&pass->done, view.arrival);
  return true;
}

}  // namespace atp::sim
