// SPDX-License-Identifier: Apache-2.0
// Memory of ours becomes the driver's, with its bytes and at its address: what only the driver's
// memory can do (a second mapping, an export) then works. A range is converted as a whole, because
// managed memory is freed as a whole. Under the lock of vmm.cc, re-entry guard held.
//
// For what shows memory the program stands still: other threads wait at the entry of hooks, and
// every context that the shim has seen is idle. Not held back: a thread that is already inside a
// hook but not yet at the driver, and the later parts of a copy from or to pageable memory that
// another thread has begun.
#pragma once

#include <cstdint>

#include "shim/vmm_books.h"

namespace atp::shim {

// False: a context refused (a capture is open, or it is in error). Needs no lock.
bool WaitForEveryContext();

// From now on the driver has the memory. CUDA_ERROR_NOT_SUPPORTED: it is mapped in a managed range
// that stays one; any other error is the driver's.
CUresult GiveToDriver(Memory* memory);

// The managed range that begins there becomes one of the driver's, with all that it shows. False:
// it stays as it was, and the log says why.
bool GiveToDriver(uint64_t range_begin);

}  // namespace atp::shim
