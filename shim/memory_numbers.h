// SPDX-License-Identifier: Apache-2.0
// The one place that decides what the program is told about memory sizes (ATP_REPORT_MEMORY):
//   physical  the card as it is; what the program has allocated counts as used, wherever it lies
//             just now, so that free does not move with our hints
//   virtual   what this process may have: the card, or its share of host memory where that is more
//   a size    that size
#pragma once

#include <cstdint>

#include "shim/device.h"

namespace atp::shim {

// Corrects the driver's answer of cuMemGetInfo. `device` may be null (no context): the answer
// stays.
void CorrectMemoryInfo(const Device* device, size_t* free, size_t* total);
uint64_t ReportedTotal(uint64_t physical_total);

// The arithmetic, for tests: what is free of `total` when `used` is in use; never negative.
uint64_t FreeOf(uint64_t total, uint64_t used);

}  // namespace atp::shim
