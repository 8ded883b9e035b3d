// SPDX-License-Identifier: Apache-2.0
// Managed memory from the driver, and the books about it: what is promised against device and host,
// what the loop is told, when launches begin to be looked at. Used by all that places memory
// (placement, ranges, pools). Any thread, re-entry guard held. Errors are the driver's, except the
// refusal of memory that neither device nor host could hold, which is CUDA_ERROR_OUT_OF_MEMORY with
// a line in the log.
#pragma once

#include <atomic>
#include <cstdint>

#include "shim/device.h"
#include "shim/tracker.h"

namespace atp::shim {

// Launches need to be looked at: managed memory is near the budget of some device, or a trace is
// wanted. Never goes back.
extern std::atomic<bool> g_watching;
// Begins to, where it is near that.
void WatchIfNear(const Device& device);
inline bool Watching() { return g_watching.load(std::memory_order_relaxed); }

// Counts bytes as managed memory of the device. False: neither the device nor the host's share
// holds them (host_promise.h; whoever answers the program says why, WithPatience).
bool TakeShare(Device* device, uint64_t bytes);
void GiveShare(int device, uint64_t bytes);

// A range is memory of the program from now on: tracked and shown to the loop. Its bytes are
// already counted. Null: it cannot be tracked, which costs sight only.
Record* Announce(uint64_t address, uint64_t bytes, uint64_t mapped_bytes, CUcontext context,
                 int device);
// The same record, larger at its end.
bool AnnounceGrowth(Record* record, uint64_t mapped_bytes);
// The loop and the tracker forget it; the books stay.
void Withdraw(Record* record);

// Maps managed memory of its own. Null with *result set when the program must be told; null with
// CUDA_SUCCESS when plain memory should serve.
Record* MapManaged(Device* device, CUcontext context, uint64_t bytes, CUresult* result);
// Gives it back to the driver.
CUresult UnmapManaged(Record* record);
// The driver has taken it, or will, without a free.
void ForgetManaged(Record* record);

// Waits until a context has passed everything submitted, as a native free does. The loop hears of
// it. False: the driver refused (a capture is open).
bool WaitForContext(CUcontext context);
// The same for the memory's context before the memory is used again: what movers have under way is
// not waited for.
bool WaitForUsesOf(const Record& record);

}  // namespace atp::shim
