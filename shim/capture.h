// SPDX-License-Identifier: Apache-2.0
// Whether any stream of the process is recording a graph. Counts the begins and ends that the
// program makes; while the count is zero, which is nearly always, nobody asks the driver. A capture
// that ends without an end call (its stream is destroyed) leaves the count high: that costs
// questions, never correctness.
#pragma once

#include <atomic>

#include "shim/cuda_abi.h"

namespace atp::shim {

extern std::atomic<int> g_open_captures;
inline bool CaptureOpen() { return g_open_captures.load(std::memory_order_relaxed) > 0; }

// True when this stream records. `per_thread` says which default stream null means.
bool IsCapturing(CUstream stream, bool per_thread);

}  // namespace atp::shim
