// SPDX-License-Identifier: Apache-2.0
// What the machine counts, and its JSON form (ATP_SIM_STATS). Written by every part of the model,
// under the driver's lock.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "sim/machine/machine.h"

namespace atp::sim {

// Why bytes of managed memory move.
enum class Cause { kFault, kPrefetch, kEviction, kHostFault, kEngineFault };

struct KernelStats {
  uint64_t count = 0;
  Time time = 0;
  Time fault_time = 0;
};

struct Traffic {  // bytes
  uint64_t fault = 0, prefetch = 0, eviction = 0, host_fault = 0, engine_fault = 0;
  uint64_t copy = 0;    // copies that the program submitted
  uint64_t remote = 0;  // kernels that access host memory in place
  uint64_t& Of(Cause cause);
  uint64_t Managed() const { return fault + prefetch + eviction + host_fault + engine_fault; }
};

struct Stats {
  uint64_t gpu_faults = 0, fault_batches = 0, block_services = 0;
  uint64_t host_faults = 0, engine_faults = 0;
  Traffic to_device, to_host;
  uint64_t peer_bytes = 0;
  uint64_t zeroed_on_device = 0, zeroed_on_host = 0;  // bytes of first touches
  uint64_t discarded_not_copied = 0, duplicates_not_copied = 0;
  uint64_t evictions = 0, unused_taken = 0,
           discarded_taken = 0;  // chunks by the list that they came from
  uint64_t touches = 0;          // prefetches of resident blocks
  uint64_t deferred_hints = 0;
  uint64_t discard_violations = 0;
  uint64_t host_bytes = 0;  // host memory behind managed memory; only grows until ranges are freed
  std::map<std::string, KernelStats> kernels;
  std::map<uint32_t, Time> streams;
  std::map<int, Time> busy;  // of kernels, by device
};

struct StatsFrame {  // what the counters do not know themselves
  std::string profile;
  Time total = 0;
  Time link_busy[2] = {0, 0};
  uint64_t resident_bytes = 0;
};
std::string ToJson(const Stats& stats, const StatsFrame& frame);

}  // namespace atp::sim
