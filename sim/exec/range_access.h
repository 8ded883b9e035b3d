// SPDX-License-Identifier: Apache-2.0
// Access to a piece of memory that is larger than one element: rows of matrices, asynchronous
// copies.
#pragma once

#include "sim/exec/warp.h"

namespace atp::sim::exec {

// Host address of [address, address + bytes) as `lane` sees it through `insn` (aux: 1 = generic, 2
// = shared); null after reporting a failure. Notes the touch and the sectors.
uint8_t* RangeAddress(Warp& warp, const Insn* insn, int lane, uint64_t address, uint32_t bytes,
                      uint32_t alignment, bool read, bool write);

}  // namespace atp::sim::exec
