// SPDX-License-Identifier: Apache-2.0
// How much managed memory this process may promise. Pages that have once been on the host stay
// there until they are freed and cannot be swapped, and an eviction that finds no host memory kills
// the context; so what does not fit the device must fit the host, and is refused otherwise.
#pragma once

#include <cstdint>

namespace atp::shim {

// ATP_HOST_BUDGET, else 80 % of the smaller of MemAvailable and the control group's room, less
// max(2 GiB, 5 %). Measured once.
uint64_t HostShare();

// min(MemAvailable, room of the control group) now, from the text of the files; tests give their
// own. UINT64_MAX when nothing is known.
uint64_t AvailableHostMemory();
uint64_t ParseMemAvailable(const char* meminfo);
uint64_t DefaultHostShare(uint64_t available);

}  // namespace atp::shim
