// SPDX-License-Identifier: Apache-2.0
// What the copy entry points share. Under the driver's lock.
#pragma once

#include "sim/driver/entry.h"
#include "sim/driver/task.h"

namespace atp::sim {

// Submits a copy to the default stream of the call and waits where the call must.
CUresult CopyNow(Call& call, const CopyTask& task);
// Submits a copy to a stream.
CUresult CopyLater(Call& call, const CopyTask& task, CUstream stream);

// True for memory that a device may use (pinned host memory is).
bool IsDevicePointer(const Call& call, uint64_t address);

// Peer copies name the contexts of both sides; they need no peer access between them.
CUresult CheckPeers(Call& call, CUcontext destination, CUcontext source, CopyTask* task);

// 2D and 3D descriptors to tasks.
CUresult ToTask(Call& call, const CUDA_MEMCPY2D& copy, CopyTask* task);
CUresult ToTask(Call& call, const CUDA_MEMCPY3D& copy, CopyTask* task);
// The 3D descriptor of a task, for graph queries. An array is described by the memory that it is.
CUDA_MEMCPY3D ToDescriptor(const CopyTask& task);

}  // namespace atp::sim
