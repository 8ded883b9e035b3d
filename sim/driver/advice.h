// SPDX-License-Identifier: Apache-2.0
// What a program has said about pieces of managed memory, piece by piece. Only remembers; the
// machine acts. Under the driver's lock.
#pragma once

#include <functional>

#include "sim/driver/memory.h"

namespace atp::sim {

// Applies `change` to the advice of every piece of [begin, end), splitting pieces at the ends.
void ChangeAdvice(Allocation* allocation, uint64_t begin, uint64_t end,
                  const std::function<void(Advised&)>& change);

// Calls `visit` with the advice of every piece that overlaps [begin, end).
void VisitAdvice(const Allocation& allocation, uint64_t begin, uint64_t end,
                 const std::function<void(const Advised&)>& visit);

// A location of the API as the machine counts: kHost or a device index. False when it names
// nothing.
bool ToMachineLocation(const Driver& driver, const CUmemLocation& location, int* where);

// The old calls name a device or CU_DEVICE_CPU.
CUmemLocation FromDevice(CUdevice device);

}  // namespace atp::sim
