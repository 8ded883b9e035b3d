// SPDX-License-Identifier: Apache-2.0
// Adding nodes to graphs, and reading and changing what they do.
#include "sim/driver/copy_calls.h"
#include "sim/driver/driver.h"
#include "sim/driver/graph.h"
#include "sim/driver/node_params.h"

namespace atp::sim {
namespace {

CUresult Add(Call& call, CUgraphNode* out, CUgraph handle, const CUgraphNode* dependencies,
             size_t count, Task task) {
  Graph* graph = call.driver.graphs.Get(handle);
  if (!out || !graph || (count && !dependencies)) return CUDA_ERROR_INVALID_VALUE;
  std::vector<GraphNode*> after;
  for (size_t i = 0; i < count; ++i) {
    GraphNode* node = call.driver.nodes.Get(dependencies[i]);
    if (!node || node->graph != graph) return CUDA_ERROR_INVALID_VALUE;
    after.push_back(node);
  }
  *out = reinterpret_cast<CUgraphNode>(
      AddNode(call.driver, *graph, std::move(task), std::move(after)));
  return CUDA_SUCCESS;
}

// Makes a task from parameters and adds it.
template <class Params>
CUresult AddFrom(Call& call, CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies,
                 size_t count, const Params* params) {
  if (!params) return CUDA_ERROR_INVALID_VALUE;
  Task task;
  const CUresult result = ToTask(call, *params, &task);
  return result == CUDA_SUCCESS ? Add(call, out, graph, dependencies, count, std::move(task))
                                : result;
}

template <class Params>
CUresult SetFrom(Call& call, CUgraphNode handle, const Params* params) {
  GraphNode* node = call.driver.nodes.Get(handle);
  if (!node || !params) return CUDA_ERROR_INVALID_VALUE;
  Task task;
  const CUresult result = ToTask(call, *params, &task);
  return result == CUDA_SUCCESS ? ReplaceTask(call.driver, node, std::move(task)) : result;
}

// The node behind a handle when it is of that kind.
template <class T>
T* TaskOf(Call& call, CUgraphNode handle) {
  GraphNode* node = call.driver.nodes.Get(handle);
  return node ? std::get_if<T>(&node->task) : nullptr;
}

}  // namespace
}  // namespace atp::sim

ATP_API cuGraphAddKernelNode_v2(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                                size_t count, const CUDA_KERNEL_NODE_PARAMS* params) {
  ATP_CALL(kNeedsContext, cost::kCall);
  return AddFrom(call, node, graph, dependencies, count, params);
}

ATP_API cuGraphAddKernelNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                             size_t count, const CUDA_KERNEL_NODE_PARAMS_v1* params) {
  if (!params) return CUDA_ERROR_INVALID_VALUE;
  const CUDA_KERNEL_NODE_PARAMS wide = atp::sim::Widen(*params);
  return cuGraphAddKernelNode_v2(node, graph, dependencies, count, &wide);
}

ATP_API cuGraphAddMemcpyNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                             size_t count, const CUDA_MEMCPY3D* params, CUcontext) {
  ATP_CALL(kNeedsContext, cost::kCall);
  return AddFrom(call, node, graph, dependencies, count, params);
}

ATP_API cuGraphAddMemsetNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                             size_t count, const CUDA_MEMSET_NODE_PARAMS* params, CUcontext) {
  ATP_CALL(kNeedsContext, cost::kCall);
  return AddFrom(call, node, graph, dependencies, count, params);
}

ATP_API cuGraphAddHostNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                           size_t count, const CUDA_HOST_NODE_PARAMS* params) {
  ATP_CALL(kNeedsInit, cost::kCall);
  return AddFrom(call, node, graph, dependencies, count, params);
}

ATP_API cuGraphAddEmptyNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                            size_t count) {
  ATP_CALL(kNeedsInit, cost::kCall);
  return Add(call, node, graph, dependencies, count, EmptyTask{});
}

ATP_API cuGraphAddNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                       size_t count, CUgraphNodeParams* params) {
  ATP_CALL(kNeedsContext, cost::kCall);
  if (!params) return CUDA_ERROR_INVALID_VALUE;
  Task task;
  const CUresult result = ToTask(call, params, &task);
  return result == CUDA_SUCCESS ? Add(call, node, graph, dependencies, count, std::move(task))
                                : result;
}

ATP_API cuGraphAddNode_v2(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                          const CUgraphEdgeData*, size_t count, CUgraphNodeParams* params) {
  return cuGraphAddNode(node, graph, dependencies, count, params);
}

namespace {

// Nodes whose parameters are one handle or address.
CUgraphNodeParams OneParameter(CUgraphNodeType type) {
  CUgraphNodeParams params{};
  params.type = type;
  return params;
}

}  // namespace

ATP_API cuGraphAddChildGraphNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                                 size_t count, CUgraph child) {
  CUgraphNodeParams params = OneParameter(CU_GRAPH_NODE_TYPE_GRAPH);
  params.graph.graph = child;
  return cuGraphAddNode(node, graph, dependencies, count, &params);
}

ATP_API cuGraphAddEventRecordNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                                  size_t count, CUevent event) {
  CUgraphNodeParams params = OneParameter(CU_GRAPH_NODE_TYPE_EVENT_RECORD);
  params.eventRecord.event = event;
  return cuGraphAddNode(node, graph, dependencies, count, &params);
}

ATP_API cuGraphAddEventWaitNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                                size_t count, CUevent event) {
  CUgraphNodeParams params = OneParameter(CU_GRAPH_NODE_TYPE_WAIT_EVENT);
  params.eventWait.event = event;
  return cuGraphAddNode(node, graph, dependencies, count, &params);
}

ATP_API cuGraphAddMemAllocNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                               size_t count, CUDA_MEM_ALLOC_NODE_PARAMS* allocation) {
  if (!allocation) return CUDA_ERROR_INVALID_VALUE;
  CUgraphNodeParams params = OneParameter(CU_GRAPH_NODE_TYPE_MEM_ALLOC);
  params.alloc.poolProps = allocation->poolProps;
  params.alloc.bytesize = allocation->bytesize;
  const CUresult result = cuGraphAddNode(node, graph, dependencies, count, &params);
  allocation->dptr = params.alloc.dptr;
  return result;
}

ATP_API cuGraphAddMemFreeNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                              size_t count, CUdeviceptr address) {
  CUgraphNodeParams params = OneParameter(CU_GRAPH_NODE_TYPE_MEM_FREE);
  params.free.dptr = address;
  return cuGraphAddNode(node, graph, dependencies, count, &params);
}

ATP_API cuGraphKernelNodeGetParams_v2(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS* params) {
  ATP_CALL(kNeedsInit, cost::kCall);
  if (!params || !TaskOf<KernelTask>(call, node)) return CUDA_ERROR_INVALID_VALUE;
  *params = KernelParams(call.driver.nodes.Get(node));
  return CUDA_SUCCESS;
}

ATP_API cuGraphKernelNodeGetParams(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v1* params) {
  CUDA_KERNEL_NODE_PARAMS wide;
  if (!params) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = cuGraphKernelNodeGetParams_v2(node, &wide);
  if (result == CUDA_SUCCESS) {
    *params = {wide.func,         wide.gridDimX,  wide.gridDimY,  wide.gridDimZ,
               wide.blockDimX,    wide.blockDimY, wide.blockDimZ, wide.sharedMemBytes,
               wide.kernelParams, wide.extra};
  }
  return result;
}

ATP_API cuGraphKernelNodeSetParams_v2(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS* params) {
  ATP_CALL(kNeedsContext, cost::kCall);
  return SetFrom(call, node, params);
}

ATP_API cuGraphKernelNodeSetParams(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1* params) {
  if (!params) return CUDA_ERROR_INVALID_VALUE;
  const CUDA_KERNEL_NODE_PARAMS wide = atp::sim::Widen(*params);
  return cuGraphKernelNodeSetParams_v2(node, &wide);
}

ATP_API cuGraphMemcpyNodeGetParams(CUgraphNode node, CUDA_MEMCPY3D* params) {
  ATP_CALL(kNeedsInit, cost::kCall);
  const CopyTask* task = TaskOf<CopyTask>(call, node);
  if (!params || !task) return CUDA_ERROR_INVALID_VALUE;
  *params = ToDescriptor(*task);
  return CUDA_SUCCESS;
}

ATP_API cuGraphMemcpyNodeSetParams(CUgraphNode node, const CUDA_MEMCPY3D* params) {
  ATP_CALL(kNeedsContext, cost::kCall);
  return SetFrom(call, node, params);
}

ATP_API cuGraphMemsetNodeGetParams(CUgraphNode node, CUDA_MEMSET_NODE_PARAMS* params) {
  ATP_CALL(kNeedsInit, cost::kCall);
  const SetTask* task = TaskOf<SetTask>(call, node);
  if (!params || !task) return CUDA_ERROR_INVALID_VALUE;
  *params = SetParams(*task);
  return CUDA_SUCCESS;
}

ATP_API cuGraphMemsetNodeSetParams(CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS* params) {
  ATP_CALL(kNeedsContext, cost::kCall);
  return SetFrom(call, node, params);
}

ATP_API cuGraphHostNodeGetParams(CUgraphNode node, CUDA_HOST_NODE_PARAMS* params) {
  ATP_CALL(kNeedsInit, cost::kCall);
  const HostTask* task = TaskOf<HostTask>(call, node);
  if (!params || !task) return CUDA_ERROR_INVALID_VALUE;
  *params = {task->function, task->argument};
  return CUDA_SUCCESS;
}

ATP_API cuGraphHostNodeSetParams(CUgraphNode node, const CUDA_HOST_NODE_PARAMS* params) {
  ATP_CALL(kNeedsInit, cost::kCall);
  return SetFrom(call, node, params);
}

ATP_API cuGraphChildGraphNodeGetGraph(CUgraphNode node, CUgraph* graph) {
  ATP_CALL(kNeedsInit, cost::kCall);
  const ChildTask* task = TaskOf<ChildTask>(call, node);
  if (!graph || !task) return CUDA_ERROR_INVALID_VALUE;
  *graph = reinterpret_cast<CUgraph>(task->graph.get());
  return CUDA_SUCCESS;
}

ATP_API cuGraphEventRecordNodeGetEvent(CUgraphNode node, CUevent* event) {
  ATP_CALL(kNeedsInit, cost::kCall);
  const RecordTask* task = TaskOf<RecordTask>(call, node);
  if (!event || !task) return CUDA_ERROR_INVALID_VALUE;
  *event = reinterpret_cast<CUevent>(task->event.get());
  return CUDA_SUCCESS;
}

ATP_API cuGraphEventRecordNodeSetEvent(CUgraphNode node, CUevent handle) {
  ATP_CALL(kNeedsInit, cost::kCall);
  RecordTask* task = TaskOf<RecordTask>(call, node);
  Event* event = call.driver.events.Get(handle);
  if (!event || !task) return CUDA_ERROR_INVALID_VALUE;
  task->event = event->self;
  return CUDA_SUCCESS;
}

ATP_API cuGraphEventWaitNodeGetEvent(CUgraphNode node, CUevent* event) {
  ATP_CALL(kNeedsInit, cost::kCall);
  const WaitTask* task = TaskOf<WaitTask>(call, node);
  if (!event || !task) return CUDA_ERROR_INVALID_VALUE;
  *event = reinterpret_cast<CUevent>(task->event.get());
  return CUDA_SUCCESS;
}

ATP_API cuGraphEventWaitNodeSetEvent(CUgraphNode node, CUevent handle) {
  ATP_CALL(kNeedsInit, cost::kCall);
  WaitTask* task = TaskOf<WaitTask>(call, node);
  Event* event = call.driver.events.Get(handle);
  if (!event || !task) return CUDA_ERROR_INVALID_VALUE;
  task->event = event->self;
  return CUDA_SUCCESS;
}

ATP_API cuGraphMemAllocNodeGetParams(CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS* params) {
  ATP_CALL(kNeedsInit, cost::kCall);
  const GraphAllocTask* task = TaskOf<GraphAllocTask>(call, node);
  if (!params || !task) return CUDA_ERROR_INVALID_VALUE;
  *params = task->params;
  return CUDA_SUCCESS;
}

ATP_API cuGraphMemFreeNodeGetParams(CUgraphNode node, CUdeviceptr* address) {
  ATP_CALL(kNeedsInit, cost::kCall);
  const FreeTask* task = TaskOf<FreeTask>(call, node);
  if (!address || !task) return CUDA_ERROR_INVALID_VALUE;
  *address = task->address;
  return CUDA_SUCCESS;
}

ATP_API cuGraphNodeSetParams(CUgraphNode handle, CUgraphNodeParams* params) {
  ATP_CALL(kNeedsContext, cost::kCall);
  GraphNode* node = call.driver.nodes.Get(handle);
  if (!node || !params || params->type != NodeType(*node)) return CUDA_ERROR_INVALID_VALUE;
  Task task;
  const CUresult result = ToTask(call, params, &task);
  return result == CUDA_SUCCESS ? ReplaceTask(call.driver, node, std::move(task)) : result;
}

ATP_API cuGraphKernelNodeGetAttribute(CUgraphNode handle, CUkernelNodeAttrID id,
                                      CUkernelNodeAttrValue* value) {
  ATP_CALL(kNeedsInit, cost::kCall);
  if (!value || !TaskOf<KernelTask>(call, handle)) return CUDA_ERROR_INVALID_VALUE;
  *value = call.driver.nodes.Get(handle)->attributes[id];
  return CUDA_SUCCESS;
}

ATP_API cuGraphKernelNodeSetAttribute(CUgraphNode handle, CUkernelNodeAttrID id,
                                      const CUkernelNodeAttrValue* value) {
  ATP_CALL(kNeedsInit, cost::kCall);
  KernelTask* task = TaskOf<KernelTask>(call, handle);
  if (!value || !task) return CUDA_ERROR_INVALID_VALUE;
  if (id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) task->config.cooperative = value->cooperative != 0;
  call.driver.nodes.Get(handle)->attributes[id] = *value;
  return CUDA_SUCCESS;
}

ATP_API cuGraphKernelNodeCopyAttributes(CUgraphNode destination, CUgraphNode source) {
  ATP_CALL(kNeedsInit, cost::kCall);
  KernelTask* to = TaskOf<KernelTask>(call, destination);
  const KernelTask* from = TaskOf<KernelTask>(call, source);
  if (!to || !from) return CUDA_ERROR_INVALID_VALUE;
  to->config.cooperative = from->config.cooperative;
  call.driver.nodes.Get(destination)->attributes = call.driver.nodes.Get(source)->attributes;
  return CUDA_SUCCESS;
}
