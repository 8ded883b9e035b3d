// SPDX-License-Identifier: Apache-2.0
// Work in progress on the simulated machine, and what all of it shares.
//
// A Run is one operation of a stream (kernel, copy, hint, delay) as a coroutine: the scheduler
// calls Step at the moments that the run asked for. Runs act on unified memory only at those
// moments, so that other lanes' hints interleave with them.
#pragma once

#include <array>
#include <vector>

#include "sim/machine/costs.h"
#include "sim/machine/link.h"
#include "sim/machine/machine.h"
#include "sim/machine/member.h"
#include "sim/machine/stats.h"
#include "sim/machine/timeline.h"
#include "sim/machine/unified/unified.h"

namespace atp::sim {

// The VA-space lock, held for reading by hints and fault batches, for writing by advice, allocation
// and free.
struct SpaceLock {
  Time readers_until = 0;
  Time writer_until = 0;

  Time ReadFrom(Time wanted) const { return wanted > writer_until ? wanted : writer_until; }
  Time WriteFrom(Time wanted) const {
    Time start = ReadFrom(wanted);
    return start > readers_until ? start : readers_until;
  }
  void HoldRead(Time until) { readers_until = until > readers_until ? until : readers_until; }
  void HoldWrite(Time until) { writer_until = until > writer_until ? until : writer_until; }
};

struct World {
  World(const Costs& costs_in, const LinkRates& rates, int devices, uint64_t device_bytes,
        uint64_t host_bytes, const DeviceShape& shape_in)
      : costs(costs_in),
        shape(shape_in),
        link(devices, rates, &timeline),
        unified(costs, &link, &stats, devices, device_bytes, host_bytes),
        health(static_cast<size_t>(devices), MachineStatus::kOk),
        computing(static_cast<size_t>(devices), 0),
        fault_service_free(static_cast<size_t>(devices), 0) {}
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  const Costs costs;
  const DeviceShape shape;
  Stats stats;
  Timeline timeline;
  Interconnect link;
  Unified unified;
  std::array<SpaceLock, kMostMembers> locks;
  // The driver's one thread for hints on busy streams.
  std::array<Time, kMostMembers> deferral_free{};
  std::vector<MachineStatus> health;
  std::vector<int> computing;  // by device: kernels that compute, at most one of each program
  std::vector<Time> fault_service_free;  // by device: its one thread for batches of faults
};

class Run {
 public:
  static constexpr Time kDone = -1;

  virtual ~Run() = default;
  // Goes on at `now`; answers when it wants to be called next (later than `now`), or kDone.
  virtual Time Step(Time now) = 0;
  // Pages have left the device while the run waited for `wake`; answers when to call Step instead.
  virtual Time PagesLost(Time now, Time wake) {
    (void)now;
    return wake;
  }
};

// A fixed duration: host functions and the like.
class DelayRun : public Run {
 public:
  explicit DelayRun(Time duration) : duration_(duration) {}
  Time Step(Time now) override {
    if (end_ < 0) end_ = now + duration_;
    return now >= end_ ? kDone : end_;
  }

 private:
  const Time duration_;
  Time end_ = -1;
};

}  // namespace atp::sim
