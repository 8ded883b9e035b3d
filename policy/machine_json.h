// SPDX-License-Identifier: Apache-2.0
// The machine file: what `atp calibrate` has measured of a machine (docs/machine.md). The planner,
// the replay model, the daemon's tuner and the simulated machine take its figures. From and to
// text; pure; any thread. Reading never trusts its input.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "policy/replay/options.h"
#include "policy/trace.h"

namespace atp::policy {

// 0 = not measured. A block is 2 MiB.
struct MeasuredMachine {
  std::string device;
  uint64_t device_bytes = 0;
  int driver = 0;  // as 13000
  LinkRates link;
  // What the thread that calls spends.
  double prefetch_call_us = 0;   // a call, whatever its range
  double prefetch_block_us = 0;  // each block that moves
  double prefetch_touch_us = 0;  // each block that is there already
  double host_map_us = 0;        // each block that goes to the host: its mappings there
  double host_unmap_us = 0;      // each block that the host had mapped and that leaves it
  // Page faults of kernels.
  double fault_batch_us = 0;  // a batch, whatever is in it
  double fault_us = 0;        // each page in it
  double fault_block_us = 0;  // each block in it
};

bool ReadMachine(std::string_view text, MeasuredMachine* machine, std::string* error);
std::string WriteMachine(const MeasuredMachine& machine);

// The trace on this machine: its link, and its memory where the trace names none.
void UseMachine(const MeasuredMachine& machine, Trace* trace);
// What the replay model knows of a machine; what was not measured stays as it is.
void UseMachine(const MeasuredMachine& machine, DriverCosts* costs);
// For ATP_SIM_SET: the simulated machine with what was measured.
std::string SimulatedCosts(const MeasuredMachine& machine);

}  // namespace atp::policy
