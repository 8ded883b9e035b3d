// SPDX-License-Identifier: Apache-2.0
// Nodes of graphs: adding them, and reading and changing their parameters in a graph or in an
// instance.
#include "sim/runtime/copy_shapes.h"
#include "sim/runtime/registry.h"

namespace {

using namespace atp::simrt;  // NOLINT: this file only forwards calls

static_assert(sizeof(cudaMemsetParams) == sizeof(CUDA_MEMSET_NODE_PARAMS));
static_assert(sizeof(cudaHostNodeParams) == sizeof(CUDA_HOST_NODE_PARAMS));
static_assert(sizeof(cudaMemAllocNodeParams) == sizeof(CUDA_MEM_ALLOC_NODE_PARAMS));

Status Convert(const cudaKernelNodeParams& from, CUDA_KERNEL_NODE_PARAMS* to) {
  CUkernel kernel = nullptr;
  const Status status = Registry::Get().FindKernel(from.func, &kernel);
  *to = {};
  to->func = reinterpret_cast<CUfunction>(kernel);
  to->gridDimX = from.gridDim.x;
  to->gridDimY = from.gridDim.y;
  to->gridDimZ = from.gridDim.z;
  to->blockDimX = from.blockDim.x;
  to->blockDimY = from.blockDim.y;
  to->blockDimZ = from.blockDim.z;
  to->sharedMemBytes = from.sharedMemBytes;
  to->kernelParams = from.kernelParams;
  to->extra = from.extra;
  return status;
}

cudaKernelNodeParams Convert(const CUDA_KERNEL_NODE_PARAMS& from) {
  cudaKernelNodeParams to = {};
  const auto kernel = from.func ? reinterpret_cast<CUkernel>(from.func) : from.kern;
  to.func = const_cast<void*>(Registry::Get().HostFunction(kernel));
  to.gridDim = dim3(from.gridDimX, from.gridDimY, from.gridDimZ);
  to.blockDim = dim3(from.blockDimX, from.blockDimY, from.blockDimZ);
  to.sharedMemBytes = from.sharedMemBytes;
  to.kernelParams = from.kernelParams;
  to.extra = from.extra;
  return to;
}

const CUDA_MEMSET_NODE_PARAMS* Cast(const cudaMemsetParams* p) {
  return reinterpret_cast<const CUDA_MEMSET_NODE_PARAMS*>(p);
}

const CUDA_HOST_NODE_PARAMS* Cast(const cudaHostNodeParams* p) {
  return reinterpret_cast<const CUDA_HOST_NODE_PARAMS*>(p);
}

cudaMemcpy3DParms Linear(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  cudaMemcpy3DParms p = {};
  p.srcPtr = {const_cast<void*>(from), bytes, bytes, 1};
  p.dstPtr = {to, bytes, bytes, 1};
  p.extent = {bytes, 1, 1};
  p.kind = kind;
  return p;
}

// Copy, set and memory nodes belong to the context of the device that is current when they are
// added.
CUcontext Current(const DriverCalls& cu) {
  CUcontext context = nullptr;
  cu.CtxGetCurrent(&context);
  return context;
}

}  // namespace

extern "C" {

cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                   const cudaGraphNode_t* dependencies, size_t count,
                                   const cudaKernelNodeParams* params) {
  return WithContext([&](const DriverCalls& cu) {
    CUDA_KERNEL_NODE_PARAMS p;
    const Status status = Convert(*params, &p);
    return status.ok() ? Status(cu.GraphAddKernelNode(node, graph, dependencies, count, &p))
                       : status;
  });
}

cudaError_t cudaGraphKernelNodeGetParams(cudaGraphNode_t node, cudaKernelNodeParams* params) {
  return WithContext([&](const DriverCalls& cu) {
    CUDA_KERNEL_NODE_PARAMS p = {};
    const CUresult result = cu.GraphKernelNodeGetParams(node, &p);
    if (result == CUDA_SUCCESS) *params = Convert(p);
    return result;
  });
}

cudaError_t cudaGraphKernelNodeSetParams(cudaGraphNode_t node, const cudaKernelNodeParams* params) {
  return WithContext([&](const DriverCalls& cu) {
    CUDA_KERNEL_NODE_PARAMS p;
    const Status status = Convert(*params, &p);
    return status.ok() ? Status(cu.GraphKernelNodeSetParams(node, &p)) : status;
  });
}

cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const cudaKernelNodeParams* params) {
  return WithContext([&](const DriverCalls& cu) {
    CUDA_KERNEL_NODE_PARAMS p;
    const Status status = Convert(*params, &p);
    return status.ok() ? Status(cu.GraphExecKernelNodeSetParams(exec, node, &p)) : status;
  });
}

cudaError_t cudaGraphAddMemcpyNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                   const cudaGraphNode_t* dependencies, size_t count,
                                   const cudaMemcpy3DParms* params) {
  return WithContext([&](const DriverCalls& cu) {
    CUDA_MEMCPY3D copy;
    const Status status = Copy3D(*params, &copy);
    return status.ok()
               ? Status(cu.GraphAddMemcpyNode(node, graph, dependencies, count, &copy, Current(cu)))
               : status;
  });
}

cudaError_t cudaGraphMemcpyNodeSetParams(cudaGraphNode_t node, const cudaMemcpy3DParms* params) {
  return WithContext([&](const DriverCalls& cu) {
    CUDA_MEMCPY3D copy;
    const Status status = Copy3D(*params, &copy);
    return status.ok() ? Status(cu.GraphMemcpyNodeSetParams(node, &copy)) : status;
  });
}

cudaError_t cudaGraphExecMemcpyNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const cudaMemcpy3DParms* params) {
  return WithContext([&](const DriverCalls& cu) {
    CUDA_MEMCPY3D copy;
    const Status status = Copy3D(*params, &copy);
    return status.ok() ? Status(cu.GraphExecMemcpyNodeSetParams(exec, node, &copy, Current(cu)))
                       : status;
  });
}

cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t* node, cudaGraph_t graph,
                                     const cudaGraphNode_t* dependencies, size_t count, void* to,
                                     const void* from, size_t bytes, cudaMemcpyKind kind) {
  const cudaMemcpy3DParms params = Linear(to, from, bytes, kind);
  return cudaGraphAddMemcpyNode(node, graph, dependencies, count, &params);
}

cudaError_t cudaGraphMemcpyNodeSetParams1D(cudaGraphNode_t node, void* to, const void* from,
                                           size_t bytes, cudaMemcpyKind kind) {
  const cudaMemcpy3DParms params = Linear(to, from, bytes, kind);
  return cudaGraphMemcpyNodeSetParams(node, &params);
}

cudaError_t cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t exec, cudaGraphNode_t node, void* to,
                                               const void* from, size_t bytes,
                                               cudaMemcpyKind kind) {
  const cudaMemcpy3DParms params = Linear(to, from, bytes, kind);
  return cudaGraphExecMemcpyNodeSetParams(exec, node, &params);
}

cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                   const cudaGraphNode_t* dependencies, size_t count,
                                   const cudaMemsetParams* params) {
  return WithContext([&](const DriverCalls& cu) {
    return cu.GraphAddMemsetNode(node, graph, dependencies, count, Cast(params), Current(cu));
  });
}

cudaError_t cudaGraphMemsetNodeGetParams(cudaGraphNode_t node, cudaMemsetParams* params) {
  return WithContext([&](const DriverCalls& cu) {
    return cu.GraphMemsetNodeGetParams(node, reinterpret_cast<CUDA_MEMSET_NODE_PARAMS*>(params));
  });
}

cudaError_t cudaGraphMemsetNodeSetParams(cudaGraphNode_t node, const cudaMemsetParams* params) {
  return WithContext(
      [&](const DriverCalls& cu) { return cu.GraphMemsetNodeSetParams(node, Cast(params)); });
}

cudaError_t cudaGraphExecMemsetNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const cudaMemsetParams* params) {
  return WithContext([&](const DriverCalls& cu) {
    return cu.GraphExecMemsetNodeSetParams(exec, node, Cast(params), Current(cu));
  });
}

cudaError_t cudaGraphAddHostNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                 const cudaGraphNode_t* dependencies, size_t count,
                                 const cudaHostNodeParams* params) {
  return WithContext([&](const DriverCalls& cu) {
    return cu.GraphAddHostNode(node, graph, dependencies, count, Cast(params));
  });
}

cudaError_t cudaGraphHostNodeGetParams(cudaGraphNode_t node, cudaHostNodeParams* params) {
  return WithContext([&](const DriverCalls& cu) {
    return cu.GraphHostNodeGetParams(node, reinterpret_cast<CUDA_HOST_NODE_PARAMS*>(params));
  });
}

cudaError_t cudaGraphHostNodeSetParams(cudaGraphNode_t node, const cudaHostNodeParams* params) {
  return WithContext(
      [&](const DriverCalls& cu) { return cu.GraphHostNodeSetParams(node, Cast(params)); });
}

cudaError_t cudaGraphExecHostNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                           const cudaHostNodeParams* params) {
  return WithContext([&](const DriverCalls& cu) {
    return cu.GraphExecHostNodeSetParams(exec, node, Cast(params));
  });
}

cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                       const cudaGraphNode_t* dependencies, size_t count,
                                       cudaGraph_t child) {
  return WithContext([&](const DriverCalls& cu) {
    return cu.GraphAddChildGraphNode(node, graph, dependencies, count, child);
  });
}

cudaError_t cudaGraphChildGraphNodeGetGraph(cudaGraphNode_t node, cudaGraph_t* graph) {
  return WithContext(
      [&](const DriverCalls& cu) { return cu.GraphChildGraphNodeGetGraph(node, graph); });
}

cudaError_t cudaGraphExecChildGraphNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                 cudaGraph_t child) {
  return WithContext([&](const DriverCalls& cu) {
    return cu.GraphExecChildGraphNodeSetParams(exec, node, child);
  });
}

cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                  const cudaGraphNode_t* dependencies, size_t count) {
  return WithContext([&](const DriverCalls& cu) {
    return cu.GraphAddEmptyNode(node, graph, dependencies, count);
  });
}

cudaError_t cudaGraphAddEventRecordNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                        const cudaGraphNode_t* dependencies, size_t count,
                                        cudaEvent_t event) {
  return WithContext([&](const DriverCalls& cu) {
    return cu.GraphAddEventRecordNode(node, graph, dependencies, count, event);
  });
}

cudaError_t cudaGraphEventRecordNodeGetEvent(cudaGraphNode_t node, cudaEvent_t* event) {
  return WithContext(
      [&](const DriverCalls& cu) { return cu.GraphEventRecordNodeGetEvent(node, event); });
}

cudaError_t cudaGraphEventRecordNodeSetEvent(cudaGraphNode_t node, cudaEvent_t event) {
  return WithContext(
      [&](const DriverCalls& cu) { return cu.GraphEventRecordNodeSetEvent(node, event); });
}

cudaError_t cudaGraphExecEventRecordNodeSetEvent(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                 cudaEvent_t event) {
  return WithContext([&](const DriverCalls& cu) {
    return cu.GraphExecEventRecordNodeSetEvent(exec, node, event);
  });
}

cudaError_t cudaGraphAddEventWaitNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                      const cudaGraphNode_t* dependencies, size_t count,
                                      cudaEvent_t event) {
  return WithContext([&](const DriverCalls& cu) {
    return cu.GraphAddEventWaitNode(node, graph, dependencies, count, event);
  });
}

cudaError_t cudaGraphEventWaitNodeGetEvent(cudaGraphNode_t node, cudaEvent_t* event) {
  return WithContext(
      [&](const DriverCalls& cu) { return cu.GraphEventWaitNodeGetEvent(node, event); });
}

cudaError_t cudaGraphEventWaitNodeSetEvent(cudaGraphNode_t node, cudaEvent_t event) {
  return WithContext(
      [&](const DriverCalls& cu) { return cu.GraphEventWaitNodeSetEvent(node, event); });
}

cudaError_t cudaGraphExecEventWaitNodeSetEvent(cudaGraphExec_t exec, cudaGraphNode_t node,
                                               cudaEvent_t event) {
  return WithContext(
      [&](const DriverCalls& cu) { return cu.GraphExecEventWaitNodeSetEvent(exec, node, event); });
}

cudaError_t cudaGraphAddMemAllocNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                     const cudaGraphNode_t* dependencies, size_t count,
                                     cudaMemAllocNodeParams* params) {
  return WithContext([&](const DriverCalls& cu) {
    return cu.GraphAddMemAllocNode(node, graph, dependencies, count,
                                   reinterpret_cast<CUDA_MEM_ALLOC_NODE_PARAMS*>(params));
  });
}

cudaError_t cudaGraphMemAllocNodeGetParams(cudaGraphNode_t node, cudaMemAllocNodeParams* params) {
  return WithContext([&](const DriverCalls& cu) {
    return cu.GraphMemAllocNodeGetParams(node,
                                         reinterpret_cast<CUDA_MEM_ALLOC_NODE_PARAMS*>(params));
  });
}

cudaError_t cudaGraphAddMemFreeNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                    const cudaGraphNode_t* dependencies, size_t count,
                                    void* pointer) {
  return WithContext([&](const DriverCalls& cu) {
    return cu.GraphAddMemFreeNode(node, graph, dependencies, count, Address(pointer));
  });
}

cudaError_t cudaGraphMemFreeNodeGetParams(cudaGraphNode_t node, void* pointer) {
  return WithContext([&](const DriverCalls& cu) {
    return cu.GraphMemFreeNodeGetParams(node, static_cast<CUdeviceptr*>(pointer));
  });
}

}  // extern "C"
