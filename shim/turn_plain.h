// SPDX-License-Identifier: Apache-2.0
// An allocation that was placed as managed memory becomes device memory, with its bytes and at its
// address, when the program uses it in a way that the driver refuses for managed memory: memory
// operations of streams, handles for other devices. From then on physical memory of the driver
// (cuMemCreate) is mapped there, until the program frees it. Only whole allocations: not what
// lies in slabs or pools. An export by cuIpcGetMemHandle gains nothing by it (docs/hooks.md).
//
// The program stands still meanwhile, as in vmm_convert.h, and the devices must be idle: a device
// that is busy for two seconds may be waiting for this thread. Any thread, re-entry guard held.
// Trouble leaves the memory as it was, and the program with the driver's refusal.
#pragma once

#include <cstdint>

#include "shim/cuda_abi.h"

namespace atp::shim {

// False: there is no such allocation, or it stays managed (the log says why).
bool TurnPlain(CUdeviceptr address);

// An allocation that has been turned lies around the address: the program's own start and size.
bool IsTurned(uint64_t address, uint64_t* start, uint64_t* bytes);
// Frees the one that begins there, as a plain free does. False: there is none.
bool FreeTurned(CUdeviceptr address);
// The context goes; null = every context of the device.
void ForgetTurned(CUcontext context, int device);
void ResetTurnedAfterFork();

}  // namespace atp::shim
