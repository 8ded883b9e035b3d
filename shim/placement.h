// SPDX-License-Identifier: Apache-2.0
// Which memory serves an allocation of the program, and how it is given back.
//
// Managed memory, rounded up to 2 MiB, for what may have to move. Allocations below 1 MiB stay
// plain device memory, packed by the driver, up to 5 % of the budget, and are packed into managed
// slabs beyond that: 1 MiB is where rounding to 2 MiB at most doubles an allocation. Plain too:
// allocations while a stream is capturing, and on devices that cannot serve. Any thread, re-entry
// guard held. Errors are the driver's, except the refusal of memory that neither device nor host
// could hold, which is CUDA_ERROR_OUT_OF_MEMORY with a line in the log.
#pragma once

#include <cstdint>

#include "shim/device.h"
#include "shim/findings.h"
#include "shim/managed.h"
#include "shim/native_sizes.h"
#include "shim/tracker.h"

namespace atp::shim {

CUresult PlaceAllocation(CUdeviceptr* address, size_t bytes);
// A plain free. What is not ours is the driver's to judge.
CUresult ReleaseAllocation(CUdeviceptr address);

// Accounts for memory that the program got from the driver by other ways.
void AccountNative(CUdeviceptr address, size_t bytes, WhyNative why, bool packed = false);
// The driver's answer to such a way, inside WithPatience: when memory is out, the log says once who
// holds it.
void SayIfPlainMemoryIsOut(CUresult result, size_t bytes, WhyNative why);
// Before the driver frees it: from then on another thread may be given the address. False: unknown.
bool UnaccountNative(CUdeviceptr address, NativeSizes::Entry* was);
void Account(const NativeSizes::Entry& entry);  // again, when the driver has refused

// The program's allocation around an address in managed memory of ours. False: not ours.
bool ProgramRange(uint64_t address, uint64_t* start, uint64_t* bytes);

// A context is about to be destroyed with all its memory; null = every context of `device`.
void ForgetMemoryOf(CUcontext context, int device);

void StopHints();  // at exit and after trouble
void ResetPlacementAfterFork();

// Bytes that the program holds on a device, as it asked for them by all ways that are seen.
struct Usage {
  uint64_t managed = 0, native = 0;
};
Usage UsageOf(const Device& device);

}  // namespace atp::shim
