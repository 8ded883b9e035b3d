// SPDX-License-Identifier: Apache-2.0
// From the parameter structures of graph nodes to tasks and back. Under the driver's lock.
#pragma once

#include "sim/driver/entry.h"
#include "sim/driver/graph.h"

namespace atp::sim {

CUresult ToTask(Call& call, const CUDA_KERNEL_NODE_PARAMS& params, Task* task);
CUresult ToTask(Call& call, const CUDA_MEMCPY3D& params, Task* task);
CUresult ToTask(Call& call, const CUDA_MEMSET_NODE_PARAMS& params, Task* task);
CUresult ToTask(Call& call, const CUDA_HOST_NODE_PARAMS& params, Task* task);
// Any kind of node that can be made. A memory allocation node also fills in its address.
CUresult ToTask(Call& call, CUgraphNodeParams* params, Task* task);

CUDA_KERNEL_NODE_PARAMS KernelParams(GraphNode* node);
CUDA_MEMSET_NODE_PARAMS SetParams(const SetTask& task);

// The old structure of kernel nodes names only functions.
CUDA_KERNEL_NODE_PARAMS Widen(const CUDA_KERNEL_NODE_PARAMS_v1& params);

// Puts a task into a node of the same kind.
CUresult ReplaceTask(Driver& driver, GraphNode* node, Task task);

}  // namespace atp::sim
