// SPDX-License-Identifier: Apache-2.0
// The simulated machine's environment variables, read once when the driver is first called.
// A malformed value does not stop the process: cuInit fails and says which variable, value and
// remedy.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/card/remote_machine.h"
#include "sim/machine/machine.h"

namespace atp::sim {

struct Settings {
  MachineConfig
      machine;     // ATP_SIM_GPU, ATP_SIM_MEMORY, ATP_SIM_HOST_MEMORY, ATP_SIM_DEVICES, ATP_SIM_SET
  CardPlace card;  // ATP_SIM_CARD, ATP_SIM_START
  int driver_version = 13000;      // ATP_SIM_DRIVER: 1000 * major + 10 * minor
  unsigned threads = 0;            // ATP_SIM_THREADS: interpreter threads, 0 = all cores
  bool concurrent_managed = true;  // ATP_SIM_CMA=0: devices without page faults
  bool managed = true;             // ATP_SIM_MANAGED=0: devices without managed memory
  bool model_repeats = false;      // ATP_SIM_MODEL=repeats: repeated launches are not executed
  bool check_reads = false;        // ATP_SIM_CHECK=uninitialised: reads of what nobody has written
  std::string stats_file;          // ATP_SIM_STATS
  std::string trace_file;          // ATP_SIM_TRACE
  std::string faults;              // ATP_SIM_FAULT
  bool eager_modules = false;      // CUDA_MODULE_LOADING=EAGER
  bool restricts_devices = false;  // CUDA_VISIBLE_DEVICES is set
  std::string visible_devices;
  std::string error;  // first problem found, empty when all is well

  static Settings FromEnvironment();
};

// "16GiB", "512MiB", "1G", "4096": binary multiples, 0 on error.
uint64_t ParseBytes(const std::string& text);

// Ordinals of the machine that a program sees, in its order, as CUDA_VISIBLE_DEVICES says: numbers
// or unique prefixes of UUIDs ("GPU-..."), up to the first entry that names no device.
std::vector<int> VisibleDevices(const Settings& settings, const std::vector<std::string>& uuids);

}  // namespace atp::sim
