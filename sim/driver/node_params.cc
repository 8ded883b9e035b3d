// SPDX-License-Identifier: Apache-2.0
#include "sim/driver/node_params.h"

#include "sim/driver/copy_calls.h"
#include "sim/driver/driver.h"
#include "sim/driver/launch.h"

namespace atp::sim {

CUresult ToTask(Call& call, const CUDA_KERNEL_NODE_PARAMS& params, Task* task) {
  Context* context = params.ctx ? call.driver.contexts.Get(params.ctx) : call.context;
  if (!context) return CUDA_ERROR_INVALID_CONTEXT;
  const void* handle = params.func ? static_cast<const void*>(params.func) : params.kern;
  if (Function* plain = call.driver.functions.Get(handle)) context = plain->module->context;
  Function* function = nullptr;
  const CUresult result = ResolveFunction(call.driver, call.lane(), *context, handle, &function);
  if (result != CUDA_SUCCESS) return result;
  LaunchConfig config;
  config.grid[0] = params.gridDimX, config.grid[1] = params.gridDimY,
  config.grid[2] = params.gridDimZ;
  config.block[0] = params.blockDimX, config.block[1] = params.blockDimY,
  config.block[2] = params.blockDimZ;
  config.dynamic_shared_bytes = params.sharedMemBytes;
  KernelTask kernel;
  const CUresult made =
      MakeKernelTask(call.driver, *function, config, params.kernelParams, params.extra, &kernel);
  if (made == CUDA_SUCCESS) *task = std::move(kernel);
  return made;
}

CUresult ToTask(Call& call, const CUDA_MEMCPY3D& params, Task* task) {
  CopyTask copy;
  if (const CUresult result = ToTask(call, params, &copy); result != CUDA_SUCCESS) return result;
  if (const CUresult result = CheckCopy(call.driver, *call.context, copy); result != CUDA_SUCCESS)
    return result;
  *task = copy;
  return CUDA_SUCCESS;
}

CUresult ToTask(Call& call, const CUDA_MEMSET_NODE_PARAMS& params, Task* task) {
  const unsigned element = params.elementSize;
  if (element != 1 && element != 2 && element != 4) return CUDA_ERROR_INVALID_VALUE;
  const SetTask set{params.dst, params.pitch, element, params.value, params.width, params.height};
  if (const CUresult result = CheckSet(call.driver, *call.context, set); result != CUDA_SUCCESS)
    return result;
  *task = set;
  return CUDA_SUCCESS;
}

CUresult ToTask(Call&, const CUDA_HOST_NODE_PARAMS& params, Task* task) {
  if (!params.fn) return CUDA_ERROR_INVALID_VALUE;
  *task = HostTask{params.fn, params.userData, nullptr, nullptr};
  return CUDA_SUCCESS;
}

namespace {

CUresult EventOf(Call& call, CUevent handle, Event** event) {
  *event = call.driver.events.Get(handle);
  return *event ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult ToChild(Call& call, CUgraph handle, Task* task) {
  Graph* graph = call.driver.graphs.Get(handle);
  if (!graph) return CUDA_ERROR_INVALID_VALUE;
  ChildTask child;
  child.graph = CloneGraph(call.driver, *graph, nullptr);
  child.graph->is_child = true;
  call.driver.graphs.Add(child.graph.get());
  *task = std::move(child);
  return CUDA_SUCCESS;
}

CUresult ToAllocation(Call& call, CUDA_MEM_ALLOC_NODE_PARAMS_v2* params, Task* task) {
  if (params->bytesize == 0 || params->poolProps.allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
      params->poolProps.location.type != CU_MEM_LOCATION_TYPE_DEVICE)
    return CUDA_ERROR_INVALID_VALUE;
  GraphAllocTask allocation;
  allocation.params.poolProps = params->poolProps;
  allocation.params.bytesize = params->bytesize;
  const CUresult result =
      AllocateForGraph(call.driver, call.lane(), *call.context->legacy, &allocation);
  if (result != CUDA_SUCCESS) return result;
  params->dptr = allocation.params.dptr;
  *task = std::move(allocation);
  return CUDA_SUCCESS;
}

}  // namespace

CUresult ToTask(Call& call, CUgraphNodeParams* params, Task* task) {
  Event* event = nullptr;
  CUresult result = CUDA_SUCCESS;
  switch (params->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: {
      const CUDA_KERNEL_NODE_PARAMS_v3& k = params->kernel;
      return ToTask(call,
                    CUDA_KERNEL_NODE_PARAMS{k.func, k.gridDimX, k.gridDimY, k.gridDimZ, k.blockDimX,
                                            k.blockDimY, k.blockDimZ, k.sharedMemBytes,
                                            k.kernelParams, k.extra, k.kern, k.ctx},
                    task);
    }
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      return ToTask(call, params->memcpy.copyParams, task);
    case CU_GRAPH_NODE_TYPE_MEMSET: {
      const CUDA_MEMSET_NODE_PARAMS_v2& m = params->memset;
      return ToTask(
          call, CUDA_MEMSET_NODE_PARAMS{m.dst, m.pitch, m.value, m.elementSize, m.width, m.height},
          task);
    }
    case CU_GRAPH_NODE_TYPE_HOST:
      return ToTask(call, CUDA_HOST_NODE_PARAMS{params->host.fn, params->host.userData}, task);
    case CU_GRAPH_NODE_TYPE_GRAPH:
      return ToChild(call, params->graph.graph, task);
    case CU_GRAPH_NODE_TYPE_EMPTY:
      *task = EmptyTask{};
      return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
      result = EventOf(call, params->eventWait.event, &event);
      if (event) *task = WaitTask{event->self};
      return result;
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
      result = EventOf(call, params->eventRecord.event, &event);
      if (event) *task = RecordTask{event->self};
      return result;
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
      return ToAllocation(call, &params->alloc, task);
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
      *task = FreeTask{params->free.dptr};
      return call.driver.memory().Find(params->free.dptr) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    default:
      return CUDA_ERROR_NOT_SUPPORTED;
  }
}

CUDA_KERNEL_NODE_PARAMS KernelParams(GraphNode* node) {
  auto& kernel = std::get<KernelTask>(node->task);
  node->param_pointers.clear();
  for (const ParamInfo& param : kernel.function->info->params)
    node->param_pointers.push_back(kernel.params.data() + param.offset);
  CUDA_KERNEL_NODE_PARAMS params{};
  params.func = reinterpret_cast<CUfunction>(kernel.function);
  params.gridDimX = kernel.config.grid[0];
  params.gridDimY = kernel.config.grid[1];
  params.gridDimZ = kernel.config.grid[2];
  params.blockDimX = kernel.config.block[0];
  params.blockDimY = kernel.config.block[1];
  params.blockDimZ = kernel.config.block[2];
  params.sharedMemBytes = kernel.config.dynamic_shared_bytes;
  params.kernelParams = node->param_pointers.data();
  params.kern = reinterpret_cast<CUkernel>(kernel.function->kernel);
  params.ctx = reinterpret_cast<CUcontext>(kernel.function->module->context);
  return params;
}

CUDA_MEMSET_NODE_PARAMS SetParams(const SetTask& task) {
  return {task.destination, task.pitch, task.value, task.element_bytes, task.width, task.height};
}

CUDA_KERNEL_NODE_PARAMS Widen(const CUDA_KERNEL_NODE_PARAMS_v1& p) {
  return {p.func,      p.gridDimX,       p.gridDimY,     p.gridDimZ, p.blockDimX, p.blockDimY,
          p.blockDimZ, p.sharedMemBytes, p.kernelParams, p.extra,    nullptr,     nullptr};
}

CUresult ReplaceTask(Driver& driver, GraphNode* node, Task task) {
  if (node->task.index() != task.index()) return CUDA_ERROR_INVALID_VALUE;
  if (const auto* child = std::get_if<ChildTask>(&node->task))
    driver.graphs.Remove(child->graph.get());
  node->task = std::move(task);
  return CUDA_SUCCESS;
}

}  // namespace atp::sim
