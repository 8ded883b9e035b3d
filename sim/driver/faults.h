// SPDX-License-Identifier: Apache-2.0
// Failures on demand, for tests of programs and of the shim: ATP_SIM_FAULT holds rules, separated
// by commas,
//   cuMemAlloc_v2:3=2          the third call answers error 2
//   cuMemAlloc_v2:3+=2         the third and every later call
//   cuMemcpyHtoDAsync_v2:*=delay:500us   every call costs 500 microseconds of the caller's time
//   cuMemcpyHtoDAsync_v2:2=slow:5ms      what the second call submits takes 5 ms longer on the
//   device cuLaunchKernel:10=lost     from the tenth call on the device is lost: every later call
//   fails
//   *:100=999                  the hundredth call, whatever it is
// Names are exported symbols (as in nm -D libcuda.so.1); a _ptsz twin counts as the symbol itself.
// cuInit can fail too; calls before it cost no time, because there is no clock yet.
// Consulted by Call under the driver's lock.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/driver/cuda_api.h"
#include "sim/machine/machine.h"

namespace atp::sim {

class Faults {
 public:
  // Reads rules; returns what is wrong with them, empty when all is well.
  std::string Parse(const std::string& rules);

  struct Outcome {
    CUresult result = CUDA_SUCCESS;
    Time delay = 0;  // of the caller
    Time slow = 0;   // of what the call submits
  };
  // What the `call`-th call (from 1) of a function should meet.
  Outcome Meet(const char* function, uint64_t call);
  bool device_lost() const { return device_lost_; }

 private:
  struct Rule {
    std::string function;
    uint64_t first = 1, last = UINT64_MAX;
    Outcome outcome;
    bool loses_device = false;
  };
  std::vector<Rule> rules_;
  bool device_lost_ = false;
  uint64_t calls_ = 0;  // of any function
};

}  // namespace atp::sim
