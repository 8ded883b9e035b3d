// SPDX-License-Identifier: Apache-2.0
// Populates a new managed allocation on its device while everything still fits, so that first
// touches are not page faults: with 2 MiB pages resident from the start, managed memory costs a
// program that fits nothing. Only allocations below an eighth of the budget: a pool that a
// framework takes at once is mostly not used.
#pragma once

#include "shim/device.h"
#include "shim/loop.h"

namespace atp::shim {

// Any thread, the allocation's context current. Failure costs page faults, nothing else.
void Populate(Device& device, const Allocation& allocation);
// The bytes there are of no use to anybody: a later eviction need not carry them. Returns when it
// is done, so that what is written there afterwards stays. The device has passed every use of them.
void Discard(uint64_t address, uint64_t bytes, CUcontext context);
void ForgetPopulateStream(CUcontext context);  // the context is being destroyed

}  // namespace atp::shim
