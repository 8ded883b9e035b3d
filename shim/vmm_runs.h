// SPDX-License-Identifier: Apache-2.0
// What the loop sees of managed ranges. A joined mapping, or the part of one that is left, is one
// allocation for the loop: programs cut their tensors from a range without regard to where one
// mapping ends and the next begins. Under the lock of vmm.cc.
#pragma once

#include <cstdint>

#include "shim/vmm_books.h"

namespace atp::shim {

// [begin, begin + bytes) of a range is memory of the program from now on.
void JoinRun(const Range& range, uint64_t range_begin, int device, uint64_t begin, uint64_t bytes);
// [begin, end) is not any more; no mover is inside the driver with it when this returns.
void LeaveRun(uint64_t begin, uint64_t end);

}  // namespace atp::shim
