// SPDX-License-Identifier: Apache-2.0
// How the driver learns which managed memory the program has touched on the host.
//
// A protection fault per page would be the obvious way, but then a system call that reads or writes
// managed memory (a plain read() into it) fails with EFAULT, which no real machine does. Instead
// the program's view is always accessible and the kernel's page table tells, page by page, what the
// host has touched since the driver last dropped the view's entries (/proc/self/pagemap, bit 63;
// the bytes stay in the memory file). The driver looks when it matters: before device work uses a
// block, at advise, prefetch and free, and at exit. The machine is told then, so a host access
// takes its virtual time at the next driver call that concerns the block. Reads cannot be told from
// writes: memory that is read-mostly counts as read, other memory as written.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/machine/machine.h"

namespace atp::sim {

class Driver;

// Reports host touches of managed memory within [begin, end) to the machine and starts anew there.
void CollectHostTouches(Driver& driver, Lane lane, uint64_t begin, uint64_t end);

// The same for every block that a launch has touched.
void CollectHostTouches(Driver& driver, Lane lane, const std::vector<WaveTouches>& waves);

// The same for all managed memory, for the statistics at exit.
void CollectAllHostTouches(Driver& driver, Lane lane);

}  // namespace atp::sim
