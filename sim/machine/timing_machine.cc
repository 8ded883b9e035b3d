// SPDX-License-Identifier: Apache-2.0
#include "sim/machine/timing_machine.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "sim/machine/copy_run.h"
#include "sim/machine/kernel_run.h"
#include "sim/machine/profiles.h"
#include "sim/machine/roofline.h"

namespace atp::sim {
namespace {

LinkRates RatesOf(const Costs& costs) {
  return {{costs.h2d, costs.d2h}, {costs.h2d_duplex, costs.d2h_duplex}};
}

}  // namespace

std::unique_ptr<Machine> Machine::Create(const MachineConfig& config, std::string* error) {
  int profile = ProfileIndex(config.profile);
  if (profile < 0) {
    *error = "simulated card: there is no profile \"" + config.profile +
             "\"; profiles: " + ProfileNames();
    return nullptr;
  }
  constexpr int kMostDevices = 16;
  if (config.devices < 1 || config.devices > kMostDevices) {
    *error = "simulated devices: " + std::to_string(config.devices) + " is not between 1 and 16";
    return nullptr;
  }
  Costs costs = ProfileCosts(profile);
  if (!ApplyOverrides(config.overrides, &costs, error)) return nullptr;
  DeviceShape shape = ProfileShape(profile, costs);
  if (config.device_bytes != 0) shape.total_bytes = config.device_bytes;
  if (shape.total_bytes < kBlockBytes) {
    *error = "simulated memory: " + std::to_string(shape.total_bytes) +
             " bytes is less than one block of 2 MiB";
    return nullptr;
  }
  auto machine = std::make_unique<TimingMachine>(config, costs, shape);
  if (!config.timeline.empty() && !machine->world().timeline.Open(config.timeline)) {
    *error = "ATP_SIM_TIMELINE=" + config.timeline + ": cannot be written";
    return nullptr;
  }
  return machine;
}

TimingMachine::TimingMachine(const MachineConfig& config, const Costs& costs,
                             const DeviceShape& shape)
    : config_(config),
      world_(costs, RatesOf(costs), config.devices, shape.total_bytes, config.host_bytes, shape),
      scheduler_(&world_, config.devices) {
  for (auto& pinned : pinned_) pinned.resize(static_cast<size_t>(config.devices));
}

const DeviceShape& TimingMachine::Shape(int device) const {
  (void)device;  // all cards of a machine are alike
  return world_.shape;
}

Time TimingMachine::KernelTime(int device, const LaunchConfig& config,
                               const ExecResult& result) const {
  return RooflineTime(world_.costs, Shape(device), config, result);
}

Lane TimingMachine::NewLane(Time start) {
  if (takes_turns_) start = std::max(start, scheduler_.now());
  lanes_.push_back(start);
  lane_owners_.push_back(CurrentMember());
  return static_cast<Lane>(lanes_.size() - 1);
}

void TimingMachine::SpendCall(Lane lane, const char* cost_name) {
  Time cost = TimeCost(world_.costs, cost_name);
  if (cost < 0) {
    std::fprintf(stderr, "simulated machine: no call cost named \"%s\" in costs.def\n", cost_name);
    std::abort();
  }
  lanes_[lane] += cost;
}

// Simulates up to the lane's now. Answers the moment at which the lane's call happens.
Time TimingMachine::CatchUp(Lane lane) {
  scheduler_.AdvanceTo(lanes_[lane]);
  return scheduler_.now();
}

Pass TimingMachine::NewPass(Time at, Time cpu) const {
  Pass pass;
  pass.now = at;
  pass.cpu = cpu;
  return pass;
}

MachineStatus TimingMachine::AllocDevice(Lane lane, int device, uint64_t bytes) {
  Time at = CatchUp(lane);
  if (Health(device) != MachineStatus::kOk) return Health(device);
  Pass pass = NewPass(at, std::max(at, resource_lock_until_));
  MachineStatus status = world_.unified.PinDeviceMemory(&pass, device, bytes);
  resource_lock_until_ = pass.cpu;
  lanes_[lane] += pass.cpu - at;
  if (status == MachineStatus::kOk) {
    pinned_[CurrentMember()][static_cast<size_t>(device)] += bytes;
  }
  scheduler_.NotePagesLost();
  return status;
}

void TimingMachine::FreeDevice(Lane lane, int device, uint64_t bytes) {
  CatchUp(lane);
  world_.unified.memory(device).Unpin(bytes);
  pinned_[CurrentMember()][static_cast<size_t>(device)] -= bytes;
}

MemoryInfo TimingMachine::Info(int device) const {
  const PhysicalMemory& memory = const_cast<TimingMachine*>(this)->world_.unified.memory(device);
  return {memory.free_bytes(), memory.total_bytes()};
}

std::vector<ProcessUse> TimingMachine::Processes(int device) const {
  const MemoryInfo info = Info(device);
  return {{0, info.total_bytes - info.free_bytes}};
}

uint64_t TimingMachine::BytesOf(Member member, int device) const {
  const PhysicalMemory& memory = const_cast<TimingMachine*>(this)->world_.unified.memory(device);
  return pinned_[member][static_cast<size_t>(device)] + memory.BytesOf(member);
}

void TimingMachine::AddManaged(Lane lane, uint64_t address, uint64_t bytes) {
  Time at = CatchUp(lane);
  Time start = world_.locks[MemberOf(address)].WriteFrom(at);  // mmap waits for hints in progress
  lanes_[lane] += start - at;
  world_.unified.space().Add(address, bytes);
}

void TimingMachine::RemoveManaged(Lane lane, uint64_t address) {
  Time at = CatchUp(lane);
  SpaceLock& space_lock = world_.locks[MemberOf(address)];
  Pass pass = NewPass(at, space_lock.WriteFrom(at));
  world_.unified.RemoveRange(&pass, address);
  space_lock.HoldWrite(pass.cpu);
  lanes_[lane] += pass.cpu - at;
  scheduler_.NotePagesLost();
}

// Hints happen in stream order: at once on an idle stream, by the driver's own thread on a busy
// one.
MachineStatus TimingMachine::Hinted(Lane lane, StreamId stream, const Hint& hint) {
  Time at = CatchUp(lane);
  int device = scheduler_.DeviceOf(stream);
  if (Health(device) != MachineStatus::kOk) return Health(device);
  bool known = hint.location >= kHost && hint.location < config_.devices;
  if (!known || hint.bytes == 0 || !world_.unified.space().Covers(hint.address, hint.bytes)) {
    return MachineStatus::kInvalidValue;
  }
  Operation operation;
  if (!scheduler_.IsIdle(stream)) {
    ++world_.stats.deferred_hints;
    operation.run = std::make_unique<DeferredHintRun>(&world_, hint);
    lanes_[lane] += world_.costs.prefetch_call;
    operation.submitted = at + world_.costs.prefetch_call;
    scheduler_.Submit(stream, std::move(operation));
    return MachineStatus::kOk;
  }
  Pass pass = NewPass(at, at);
  MachineStatus status = PerformHint(&world_, &pass, hint);
  const char* name = !hint.prefetch           ? "discard"
                     : hint.location == kHost ? "prefetch to host"
                                              : "prefetch to device";
  world_.timeline.Call(device, lane, name, hint.address, hint.bytes, at, pass.cpu);
  operation.run = std::make_unique<IssuedHintRun>(&world_, pass.done);
  operation.submitted = at;
  scheduler_.Submit(stream, std::move(operation));
  scheduler_.AdvanceTo(at);  // the stream is busy from now on
  lanes_[lane] += pass.cpu - at;
  scheduler_.NotePagesLost();
  return status;
}

MachineStatus TimingMachine::Prefetch(Lane lane, StreamId stream, uint64_t address, uint64_t bytes,
                                      int location) {
  return Hinted(lane, stream, Hint{address, bytes, true, false, location});
}

MachineStatus TimingMachine::Discard(Lane lane, StreamId stream, uint64_t address, uint64_t bytes,
                                     bool then_prefetch, int location) {
  return Hinted(lane, stream,
                Hint{address, bytes, then_prefetch, true, then_prefetch ? location : kHost});
}

MachineStatus TimingMachine::Advise(Lane lane, uint64_t address, uint64_t bytes, Advice advice,
                                    int location) {
  Time at = CatchUp(lane);
  bool known = location >= kHost && location < config_.devices;
  if (!known || bytes == 0 || !world_.unified.space().Covers(address, bytes)) {
    return MachineStatus::kInvalidValue;
  }
  SpaceLock& space_lock = world_.locks[MemberOf(address)];
  Pass pass = NewPass(at, space_lock.WriteFrom(at) + world_.costs.advise_call);
  world_.unified.Advise(&pass, address, bytes, advice, location);
  space_lock.HoldWrite(pass.cpu);
  lanes_[lane] += pass.cpu - at;
  world_.timeline.Call(std::max(location, 0), lane, "advise", address, bytes, at, pass.cpu);
  scheduler_.NotePagesLost();
  return MachineStatus::kOk;
}

void TimingMachine::FlushTimeline() {
  for (int device = 0; device < config_.devices; ++device) {
    world_.link.At(device).Busy(Direction::kToHost, scheduler_.now());  // settles both directions
  }
  world_.timeline.Flush();
}

MachineStatus TimingMachine::HostAccess(Lane lane, uint64_t address, uint64_t bytes, bool write) {
  Time at = CatchUp(lane);
  SpaceLock& space_lock = world_.locks[MemberOf(address)];
  Pass pass = NewPass(at, space_lock.ReadFrom(at));
  pass.cause = Cause::kHostFault;
  MachineStatus status = world_.unified.HostAccess(&pass, address, bytes, write);
  space_lock.HoldRead(pass.cpu);
  lanes_[lane] += pass.cpu - at;
  scheduler_.NotePagesLost();
  return status;
}

bool TimingMachine::ResidentOnHost(uint64_t address) const { return Residency(address) == kHost; }

int TimingMachine::Residency(uint64_t address) const {
  World& world = const_cast<TimingMachine*>(this)->world_;
  Block* block = world.unified.space().BlockOf(address >> kPageBits);
  if (block == nullptr) return kNoPlace;
  int page = static_cast<int>((address >> kPageBits) % PageMask::kPages);
  if (block->on_host.Test(page)) return kHost;
  for (int device = 0; device < config_.devices; ++device) {
    if (block->views[static_cast<size_t>(device)].resident.Test(page)) return device;
  }
  return kNoPlace;
}

MachineStatus TimingMachine::Health(int device) const {
  return world_.health[static_cast<size_t>(device)];
}

void TimingMachine::SetPeerAccess(int device, int peer, bool enabled) {
  world_.unified.SetPeerAccess(device, peer, enabled);
}

void TimingMachine::TakeTurns(Turns* turns) {
  takes_turns_ = turns != nullptr;
  scheduler_.TakeTurns(turns);
}

void TimingMachine::DropMember(Member member) {
  scheduler_.DropMember(member);
  std::vector<uint64_t> ranges;
  world_.unified.space().ForAll([&](const Block& block) {
    const uint64_t address =
        block.slot * kBlockBytes + static_cast<uint64_t>(block.valid.Next(0)) * kPageBytes;
    if (MemberOf(address) == member) ranges.push_back(address);
  });
  Pass pass = NewPass(scheduler_.now(), scheduler_.now());
  for (uint64_t address : ranges) world_.unified.RemoveRange(&pass, address);
  for (int device = 0; device < config_.devices; ++device) {
    uint64_t& pinned = pinned_[member][static_cast<size_t>(device)];
    world_.unified.memory(device).Unpin(pinned);
    pinned = 0;
  }
  scheduler_.NotePagesLost();
}

// Finishes what has been submitted: of several programs, by the current one.
void TimingMachine::Drain() {
  if (!takes_turns_) {
    while (scheduler_.AdvanceOnce(kNever)) {
    }
    return;
  }
  for (StreamId stream = 0; stream < scheduler_.StreamCount(); ++stream) {
    if (scheduler_.OwnerOf(stream) != CurrentMember()) continue;
    while (!scheduler_.IsEmpty(stream) && scheduler_.AdvanceOnce(kNever)) {
    }
  }
}

// What is counted is the machine's; the time is the program's own.
std::string TimingMachine::StatsJson() {
  Drain();
  StatsFrame frame;
  frame.profile = config_.profile;
  if (!takes_turns_) frame.total = scheduler_.now();
  for (size_t lane = 0; lane < lanes_.size(); ++lane) {
    if (lane_owners_[lane] == CurrentMember()) frame.total = std::max(frame.total, lanes_[lane]);
  }
  for (int device = 0; device < config_.devices; ++device) {
    frame.link_busy[0] += world_.link.At(device).Busy(Direction::kToDevice, scheduler_.now());
    frame.link_busy[1] += world_.link.At(device).Busy(Direction::kToHost, scheduler_.now());
    frame.resident_bytes += world_.unified.resident_bytes(device);
  }
  return ToJson(world_.stats, frame);
}

}  // namespace atp::sim
