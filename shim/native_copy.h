// SPDX-License-Identifier: Apache-2.0
// Physical memory of the driver (cuMemCreate) that takes the place of managed memory, with its
// bytes: the steps, each tried where a refusal still changes nothing. The context is current, and
// nobody writes to the memory meanwhile (Standstill).
#pragma once

#include <cstdint>

#include "shim/device.h"
#include "shim/settings.h"
#include "shim/vmm.h"

namespace atp::shim {

// CUmemAccess_flags by device; 0 = none.
using AccessFlags = unsigned char[kMaxDevices];

bool ReserveAt(uint64_t address, uint64_t bytes);
// Whether this driver reserves addresses that managed memory has just left, tried on a sample:
// afterwards there is no way back.
bool ReservesWhatWasManaged(uint64_t bytes);
// Whether plain memory leaves managed memory the room that it needs to be copied from: a card
// without any ends the context. Not held against ATP_BUDGET, which plain memory may exceed.
bool FitsBeside(int ordinal, uint64_t bytes);
CUresult AllowAsNoted(uint64_t address, uint64_t bytes, const AccessFlags& access);
// Memory of `whole` bytes, of which the first `bytes` come from `from`. `access`: what it will be
// used for; null: nothing yet.
CUresult CreateCopy(const CUmemAllocationProp& prop, uint64_t whole, uint64_t from, uint64_t bytes,
                    const AccessFlags* access, MemoryHandle* native);
// The log: plain memory could not be shown where managed memory had lain.
void SayLost(uint64_t address);

}  // namespace atp::shim
