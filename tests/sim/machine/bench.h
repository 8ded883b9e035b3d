// SPDX-License-Identifier: Apache-2.0
// A simulated machine on a test bench: verbs for the tests of sim/machine. Memory addresses are
// made up; nothing is ever read.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sim/machine/timing_machine.h"

namespace atp::sim {

inline constexpr uint64_t kMiB = uint64_t{1} << 20;
inline constexpr uint64_t kBlock = kBlockBytes;

// A device of `blocks` blocks, with chunks taken one by one so that "full" is exact.
class Bench {
 public:
  explicit Bench(uint64_t blocks, const std::string& overrides = "", uint64_t host_bytes = 0,
                 int devices = 1, const std::string& profile = "a100-40g") {
    MachineConfig config;
    config.profile = profile;
    config.device_bytes = blocks * kBlock;
    config.host_bytes = host_bytes;
    config.devices = devices;
    config.overrides = overrides;
    std::string error;
    machine_ = Machine::Create(config, &error);
    EXPECT_NE(machine_, nullptr) << error;
    lane = machine_->NewLane(0);
    stream = machine_->NewStream(0, false);
    side = machine_->NewStream(0, false);
  }

  TimingMachine& machine() { return static_cast<TimingMachine&>(*machine_); }
  Machine* operator->() { return machine_.get(); }
  const Costs& costs() { return machine().world().costs; }
  Unified& unified() { return machine().world().unified; }
  const Stats& stats() { return machine().world().stats; }

  // Managed memory of so many blocks (or bytes), at a fresh aligned address.
  uint64_t Managed(uint64_t blocks) { return ManagedBytes(blocks * kBlock); }
  uint64_t ManagedBytes(uint64_t bytes) {
    uint64_t address = next_;
    next_ += (bytes + kBlock - 1) / kBlock * kBlock + kBlock;
    machine_->AddManaged(lane, address, bytes);
    return address;
  }

  // Every page of [address, address + bytes), one after the other, `waves` equal parts.
  static KernelWork Sweep(uint64_t address, uint64_t bytes, uint8_t flags = PageTouch::kRead,
                          size_t waves = 1, Time time = 100 * kUs) {
    KernelWork work;
    work.name = "sweep";
    work.resident_time = time;
    work.waves.resize(waves);
    uint64_t pages = bytes >> kPageBits;
    for (uint64_t i = 0; i < pages; ++i) {
      work.waves[i * waves / pages].pages.push_back({(address >> kPageBits) + i, flags});
    }
    return work;
  }

  // Runs a kernel to its end; returns how long it took.
  Time Run(KernelWork work) {
    machine_->SyncDevice(lane, 0);
    Time start = machine_->Now(lane);
    machine_->SubmitKernel(lane, stream, std::move(work));
    machine_->SyncStream(lane, stream);
    return machine_->Now(lane) - start;
  }
  Time Read(uint64_t address, uint64_t bytes) { return Run(Sweep(address, bytes)); }
  Time Write(uint64_t address, uint64_t bytes) {
    return Run(Sweep(address, bytes, PageTouch::kWrite));
  }
  Time Overwrite(uint64_t address, uint64_t bytes) {
    return Run(Sweep(address, bytes, PageTouch::kWrite | PageTouch::kOverwritten));
  }

  // Prefetches and waits; returns how long that took.
  Time Prefetch(uint64_t address, uint64_t bytes, int location = 0) {
    machine_->SyncDevice(lane, 0);
    Time start = machine_->Now(lane);
    EXPECT_EQ(machine_->Prefetch(lane, side, address, bytes, location), MachineStatus::kOk);
    machine_->SyncStream(lane, side);
    return machine_->Now(lane) - start;
  }
  void Discard(uint64_t address, uint64_t bytes) {
    machine_->SyncDevice(lane, 0);
    EXPECT_EQ(machine_->Discard(lane, side, address, bytes, false, kHost), MachineStatus::kOk);
    machine_->SyncStream(lane, side);
  }

  int Where(uint64_t address) { return machine_->Residency(address); }
  // Resident pages of a block on a device.
  int PagesOn(int device, uint64_t address) {
    return unified()
        .space()
        .BlockOf(address >> kPageBits)
        ->views[static_cast<size_t>(device)]
        .resident.Count();
  }
  // Slots of the chunks of a list, head first (whole blocks).
  std::vector<uint64_t> List(ChunkList list, int device = 0) {
    std::vector<uint64_t> slots;
    for (ChunkId id : unified().memory(device).List(list)) {
      slots.push_back(unified().memory(device).At(id).parts.at(0).block->slot);
    }
    return slots;
  }
  nlohmann::json Json() { return nlohmann::json::parse(machine_->StatsJson()); }

  Lane lane = 0;
  StreamId stream = 0, side = 0;

 private:
  std::unique_ptr<Machine> machine_;
  uint64_t next_ = uint64_t{1} << 40;
};

}  // namespace atp::sim
