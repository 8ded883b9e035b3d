// SPDX-License-Identifier: Apache-2.0
// Managed ranges that the program has given back by plain frees, kept for its next request of the
// same size. A program that asks for its tensors anew in each iteration gets the same addresses in
// each, so plans stay valid, and what is wanted again at once is not unmapped. Of the ranges that
// fit, the one with the lowest address serves: equal sequences of requests get equal addresses,
// whatever the order of the frees before. Only while launches are watched (memory is short).
// Any thread, re-entry guard held. One lock; not on the launch path.
#pragma once

#include <cstdint>

#include "shim/device.h"
#include "shim/tracker.h"

namespace atp::shim {

// Takes the record over. Every stream of its context has passed the last use of its memory.
// CUDA_ERROR_INVALID_VALUE: it has been given back before. CUDA_ERROR_NOT_SUPPORTED: not kept, the
// caller unmaps it.
CUresult KeepIdle(Record* record);
// An idle range of exactly that many bytes, which is the program's again; null: there is none.
Record* TakeIdle(Device* device, CUcontext context, uint64_t mapped_bytes);
// Before memory for `bytes` more is mapped: unmaps what was given back first, until what the
// device's books hold is at most a sixth more than what has been in use at once.
void TrimIdle(Device* device, uint64_t bytes);
void GiveBackIdle(int device);    // unmaps all of a device
void ForgetIdle(Record* record);  // the driver has taken it, or will
void ResetIdleAfterFork();

}  // namespace atp::shim
