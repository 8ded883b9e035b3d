// SPDX-License-Identifier: Apache-2.0
// The implementation of Machine: lanes and calls on top of the scheduler and the model of unified
// memory.
//
// A call is made at the later of the lane's now and simulated time; simulation first catches up to
// it. Made by Machine::Create.
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "sim/machine/hint_run.h"
#include "sim/machine/machine.h"
#include "sim/machine/run.h"
#include "sim/machine/scheduler.h"

namespace atp::sim {

class TimingMachine : public Machine {
 public:
  TimingMachine(const MachineConfig& config, const Costs& costs, const DeviceShape& shape);
  ~TimingMachine() override { TimingMachine::FlushTimeline(); }

  const DeviceShape& Shape(int device) const override;
  Time KernelTime(int device, const LaunchConfig& config, const ExecResult& result) const override;

  Lane NewLane(Time start) override;
  Time Now(Lane lane) const override { return lanes_[lane]; }
  void Spend(Lane lane, Time cost) override { lanes_[lane] += cost; }
  void SpendCall(Lane lane, const char* cost_name) override;

  MachineStatus AllocDevice(Lane lane, int device, uint64_t bytes) override;
  void FreeDevice(Lane lane, int device, uint64_t bytes) override;
  MemoryInfo Info(int device) const override;

  void AddManaged(Lane lane, uint64_t address, uint64_t bytes) override;
  void RemoveManaged(Lane lane, uint64_t address) override;
  MachineStatus Prefetch(Lane lane, StreamId stream, uint64_t address, uint64_t bytes,
                         int location) override;
  MachineStatus Advise(Lane lane, uint64_t address, uint64_t bytes, Advice advice,
                       int location) override;
  MachineStatus Discard(Lane lane, StreamId stream, uint64_t address, uint64_t bytes,
                        bool then_prefetch, int location) override;
  MachineStatus HostAccess(Lane lane, uint64_t address, uint64_t bytes, bool write) override;
  bool ResidentOnHost(uint64_t address) const override;
  int Residency(uint64_t address) const override;

  StreamId NewStream(int device, bool blocks_with_legacy) override;
  StreamId LegacyStream(int device) const override { return scheduler_.LegacyStream(device); }
  void DropStream(Lane lane, StreamId stream) override;
  EventId NewEvent() override;
  void DropEvent(EventId event) override;

  void SubmitKernel(Lane lane, StreamId stream, KernelWork work) override;
  void SubmitCopy(Lane lane, StreamId stream, CopyWork work) override;
  void SubmitDelay(Lane lane, StreamId stream, Time duration) override;
  void Record(Lane lane, StreamId stream, EventId event) override;
  void Wait(Lane lane, StreamId stream, EventId event) override;

  bool Done(Lane lane, StreamId stream) override;
  bool EventDone(Lane lane, EventId event) override;
  void SyncStream(Lane lane, StreamId stream) override;
  void SyncEvent(Lane lane, EventId event) override;
  void SyncDevice(Lane lane, int device) override;
  Time EventTime(EventId event) const override;
  int WaitAny(Lane lane, std::span<const EventId> events, Time deadline) override;

  MachineStatus Health(int device) const override;
  std::vector<ProcessUse> Processes(int device) const override;
  std::string StatsJson() override;
  void FlushTimeline() override;
  void SetPeerAccess(int device, int peer, bool enabled) override;
  Time KernelBusy(int device) const override {
    const auto found = world_.stats.busy.find(device);
    return found == world_.stats.busy.end() ? 0 : found->second;
  }
  uint64_t HostFree() const override {
    if (config_.host_bytes == 0) return UINT64_MAX;
    return config_.host_bytes - std::min(config_.host_bytes, world_.stats.host_bytes);
  }
  uint64_t DiscardViolations() const override { return world_.stats.discard_violations; }

  // --- several programs: calls are the current member's (sim/machine/member.h)
  void TakeTurns(Turns* turns);
  void AddMember(Member member) { scheduler_.AddMember(member); }
  // It has ended: what it had is free again.
  void DropMember(Member member);
  // What it holds of a device.
  uint64_t BytesOf(Member member, int device) const;
  Time now() const { return scheduler_.now(); }

  // For tests: the model inside.
  World& world() { return world_; }
  void AdvanceTo(Time time) { scheduler_.AdvanceTo(time); }

 private:
  Time CatchUp(Lane lane);
  MachineStatus Hinted(Lane lane, StreamId stream, const Hint& hint);
  Pass NewPass(Time at, Time cpu) const;
  void Drain();
  void Submit(Lane lane, StreamId stream, Operation operation);
  bool IsDone(EventId event, Time at) const;

  const MachineConfig config_;
  World world_;
  Scheduler scheduler_;
  bool takes_turns_ = false;
  std::vector<Time> lanes_;
  std::vector<Member> lane_owners_;
  // Plain device memory of each program, by device.
  std::array<std::vector<uint64_t>, kMostMembers> pinned_;
  std::vector<std::shared_ptr<Recording>> events_;  // null: never recorded
  std::vector<EventId> free_events_;
  Time resource_lock_until_ =
      0;  // the resource manager's lock: device allocations that evict hold it
};

}  // namespace atp::sim
