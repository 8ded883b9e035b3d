// SPDX-License-Identifier: Apache-2.0
// How much host memory there is for managed memory: what the machine, and the control group that
// the process is in, have available. Looked at whenever more is to be promised (host_promise.h).
#pragma once

#include <cstdint>

namespace atp::shim {

struct HostLimit {
  uint64_t bytes = 0;      // what may be promised
  uint64_t available = 0;  // of so much
  bool asked_for = false;  // ATP_HOST_BUDGET
};

// ATP_HOST_BUDGET, else 80 % of what is available, less max(2 GiB, 5 %).
HostLimit HostLimitOf(uint64_t available);
// The limit as of the first time that somebody asks: what the program is told does not change.
uint64_t HostShare();

// min(MemAvailable, room of the control group) now; UINT64_MAX when nothing is known. On the
// simulated machine that machine's, where it has a limit.
uint64_t AvailableHostMemory();

// From the text of the files; tests give their own.
uint64_t ParseMemAvailable(const char* meminfo);
uint64_t DefaultHostShare(uint64_t available);
// Room of the process's control group and of those above it: `cgroup` is /proc/self/cgroup, `root`
// where control groups are mounted. Version 2 and version 1.
uint64_t ControlGroupRoom(const char* cgroup, const char* root);

}  // namespace atp::shim
