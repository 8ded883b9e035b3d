// SPDX-License-Identifier: Apache-2.0
// Executable graphs: instantiation, launch, update.
#include "sim/driver/capture.h"
#include "sim/driver/driver.h"
#include "sim/driver/graph.h"
#include "sim/driver/node_params.h"

namespace atp::sim {
namespace {

constexpr unsigned long long kKnownFlags = CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH |
                                           CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD |
                                           CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;

CUresult Instantiate(Call& call, CUgraphExec* out, CUgraph handle, unsigned long long flags) {
  const Graph* graph = call.driver.graphs.Get(handle);
  if (!out || !graph) return CUDA_ERROR_INVALID_VALUE;
  if (flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) return CUDA_ERROR_NOT_SUPPORTED;
  if (flags & ~kKnownFlags) return CUDA_ERROR_INVALID_VALUE;
  if (TopologicalOrder(*graph).empty() && !graph->nodes.empty()) return CUDA_ERROR_INVALID_VALUE;
  auto* exec = new GraphExec;
  exec->graph = CloneGraph(call.driver, *graph, &exec->node_of);
  exec->order = TopologicalOrder(*exec->graph);
  exec->context = call.context;
  exec->flags = flags;
  *out = reinterpret_cast<CUgraphExec>(call.driver.graph_execs.Add(exec));
  return CUDA_SUCCESS;
}

// Our copy of a node of the graph from which `exec` was made.
GraphNode* OwnNode(Call& call, CUgraphExec handle, CUgraphNode node) {
  const GraphExec* exec = call.driver.graph_execs.Get(handle);
  if (!exec) return nullptr;
  const auto found = exec->node_of.find(reinterpret_cast<const GraphNode*>(node));
  return found == exec->node_of.end() ? nullptr : found->second;
}

template <class Params>
CUresult SetFrom(Call& call, CUgraphExec exec, CUgraphNode handle, const Params* params) {
  GraphNode* node = OwnNode(call, exec, handle);
  if (!node || !params) return CUDA_ERROR_INVALID_VALUE;
  Task task;
  const CUresult result = ToTask(call, *params, &task);
  return result == CUDA_SUCCESS ? ReplaceTask(call.driver, node, std::move(task)) : result;
}

// Pairs the nodes of both graphs in order of creation. What differs is told in `result` and
// `wrong`.
bool SameShape(const Graph& ours, const Graph& theirs, CUgraphExecUpdateResult* result,
               const GraphNode** wrong) {
  *wrong = nullptr;
  *result = CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
  if (ours.nodes.size() != theirs.nodes.size()) return false;
  std::map<const GraphNode*, size_t> index, index_theirs;
  for (size_t i = 0; i < ours.nodes.size(); ++i) {
    index[ours.nodes[i].get()] = i;
    index_theirs[theirs.nodes[i].get()] = i;
  }
  for (size_t i = 0; i < ours.nodes.size(); ++i) {
    const GraphNode& a = *ours.nodes[i];
    const GraphNode& b = *theirs.nodes[i];
    *wrong = &b;
    if (NodeType(a) != NodeType(b)) {
      *result = CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED;
      return false;
    }
    std::set<size_t> from, from_theirs;
    for (const GraphNode* dependency : a.dependencies) from.insert(index[dependency]);
    for (const GraphNode* dependency : b.dependencies) from_theirs.insert(index_theirs[dependency]);
    if (from != from_theirs) return false;
    const auto* child = std::get_if<ChildTask>(&a.task);
    if (child && !SameShape(*child->graph, *std::get<ChildTask>(b.task).graph, result, wrong))
      return false;
  }
  *wrong = nullptr;
  *result = CU_GRAPH_EXEC_UPDATE_SUCCESS;
  return true;
}

void TakeTasks(Driver& driver, Graph* ours, const Graph& theirs) {
  for (size_t i = 0; i < ours->nodes.size(); ++i) {
    GraphNode* node = ours->nodes[i].get();
    if (const auto* child = std::get_if<ChildTask>(&node->task)) {
      TakeTasks(driver, child->graph.get(), *std::get<ChildTask>(theirs.nodes[i]->task).graph);
    } else {
      node->task = theirs.nodes[i]->task;
    }
    node->original = theirs.nodes[i].get();
  }
}

CUresult Update(Call& call, CUgraphExec exec_handle, CUgraph graph_handle,
                CUgraphExecUpdateResultInfo* info) {
  GraphExec* exec = call.driver.graph_execs.Get(exec_handle);
  const Graph* graph = call.driver.graphs.Get(graph_handle);
  if (!exec || !graph || !info) return CUDA_ERROR_INVALID_VALUE;
  const GraphNode* wrong = nullptr;
  info->errorFromNode = nullptr;
  const bool same = SameShape(*exec->graph, *graph, &info->result, &wrong);
  info->errorNode = reinterpret_cast<CUgraphNode>(const_cast<GraphNode*>(wrong));
  if (!same) return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
  TakeTasks(call.driver, exec->graph.get(), *graph);
  // Nodes of either graph now name ours.
  for (const auto& node : exec->graph->nodes) exec->node_of[node->original] = node.get();
  return CUDA_SUCCESS;
}

}  // namespace
}  // namespace atp::sim

ATP_API cuGraphInstantiateWithFlags(CUgraphExec* exec, CUgraph graph, unsigned long long flags) {
  ATP_CALL(kNeedsContext, cost::kModule);
  return Instantiate(call, exec, graph, flags);
}

ATP_API cuGraphInstantiateWithParams(CUgraphExec* exec, CUgraph graph,
                                     CUDA_GRAPH_INSTANTIATE_PARAMS* params) {
  ATP_CALL(kNeedsContext, cost::kModule);
  if (!params) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = Instantiate(call, exec, graph, params->flags);
  params->hErrNode_out = nullptr;
  params->result_out =
      result == CUDA_SUCCESS ? CUDA_GRAPH_INSTANTIATE_SUCCESS : CUDA_GRAPH_INSTANTIATE_ERROR;
  return result;
}

ATP_API cuGraphInstantiate_v2(CUgraphExec* exec, CUgraph graph, CUgraphNode* error_node, char* log,
                              size_t bytes) {
  ATP_CALL(kNeedsContext, cost::kModule);
  if (error_node) *error_node = nullptr;
  if (log && bytes) *log = 0;
  return Instantiate(call, exec, graph, 0);
}

ATP_API cuGraphInstantiate(CUgraphExec* exec, CUgraph graph, CUgraphNode* error_node, char* log,
                           size_t bytes) {
  return cuGraphInstantiate_v2(exec, graph, error_node, log, bytes);
}

ATP_API cuGraphExecDestroy(CUgraphExec handle) {
  ATP_CALL(kNeedsInit, cost::kCall);
  GraphExec* exec = call.driver.graph_execs.Get(handle);
  if (!exec) return CUDA_ERROR_INVALID_VALUE;
  call.driver.graph_execs.Remove(exec);
  DestroyGraph(call.driver, exec->graph.release());
  delete exec;
  return CUDA_SUCCESS;
}

ATP_API cuGraphExecGetFlags(CUgraphExec handle, cuuint64_t* flags) {
  ATP_CALL(kNeedsInit, cost::kCall);
  const GraphExec* exec = call.driver.graph_execs.Get(handle);
  if (!exec || !flags) return CUDA_ERROR_INVALID_VALUE;
  *flags = exec->flags;
  return CUDA_SUCCESS;
}

ATP_API cuGraphLaunch(CUgraphExec handle, CUstream stream_handle) {
  ATP_CALL(kNeedsContext, cost::kGraphLaunch);
  GraphExec* exec = call.driver.graph_execs.Get(handle);
  if (!exec) return CUDA_ERROR_INVALID_VALUE;
  Stream* stream = nullptr;
  if (const CUresult result = ResolveStream(call, stream_handle, &stream); result != CUDA_SUCCESS)
    return result;
  return LaunchGraph(call, *exec, *stream);
}

ATP_API cuGraphUpload(CUgraphExec handle, CUstream stream_handle) {
  ATP_CALL(kNeedsContext, cost::kGraphLaunch);
  if (!call.driver.graph_execs.Get(handle)) return CUDA_ERROR_INVALID_VALUE;
  Stream* stream = nullptr;
  if (const CUresult result = ResolveStream(call, stream_handle, &stream); result != CUDA_SUCCESS)
    return result;
  return IsCapturing(*stream) ? RefuseInCapture(*stream) : CUDA_SUCCESS;
}

ATP_API cuGraphExecUpdate_v2(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo* info) {
  ATP_CALL(kNeedsContext, cost::kCall);
  return Update(call, exec, graph, info);
}

ATP_API cuGraphExecUpdate(CUgraphExec exec, CUgraph graph, CUgraphNode* wrong,
                          CUgraphExecUpdateResult* result) {
  ATP_CALL(kNeedsContext, cost::kCall);
  CUgraphExecUpdateResultInfo info{};
  const CUresult answer = Update(call, exec, graph, &info);
  if (wrong) *wrong = info.errorNode;
  if (result) *result = info.result;
  return answer;
}

ATP_API cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode node,
                                          const CUDA_KERNEL_NODE_PARAMS* params) {
  ATP_CALL(kNeedsContext, cost::kCall);
  return SetFrom(call, exec, node, params);
}

ATP_API cuGraphExecKernelNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                       const CUDA_KERNEL_NODE_PARAMS_v1* params) {
  if (!params) return CUDA_ERROR_INVALID_VALUE;
  const CUDA_KERNEL_NODE_PARAMS wide = atp::sim::Widen(*params);
  return cuGraphExecKernelNodeSetParams_v2(exec, node, &wide);
}

ATP_API cuGraphExecMemcpyNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                       const CUDA_MEMCPY3D* params, CUcontext) {
  ATP_CALL(kNeedsContext, cost::kCall);
  return SetFrom(call, exec, node, params);
}

ATP_API cuGraphExecMemsetNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                       const CUDA_MEMSET_NODE_PARAMS* params, CUcontext) {
  ATP_CALL(kNeedsContext, cost::kCall);
  return SetFrom(call, exec, node, params);
}

ATP_API cuGraphExecHostNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                     const CUDA_HOST_NODE_PARAMS* params) {
  ATP_CALL(kNeedsInit, cost::kCall);
  return SetFrom(call, exec, node, params);
}

ATP_API cuGraphExecNodeSetParams(CUgraphExec exec, CUgraphNode handle, CUgraphNodeParams* params) {
  ATP_CALL(kNeedsContext, cost::kCall);
  GraphNode* node = OwnNode(call, exec, handle);
  if (!node || !params || params->type != NodeType(*node)) return CUDA_ERROR_INVALID_VALUE;
  Task task;
  const CUresult result = ToTask(call, params, &task);
  return result == CUDA_SUCCESS ? ReplaceTask(call.driver, node, std::move(task)) : result;
}

ATP_API cuGraphExecChildGraphNodeSetParams(CUgraphExec exec, CUgraphNode handle,
                                           CUgraph graph_handle) {
  ATP_CALL(kNeedsContext, cost::kCall);
  GraphNode* node = OwnNode(call, exec, handle);
  const Graph* graph = call.driver.graphs.Get(graph_handle);
  auto* child = node ? std::get_if<ChildTask>(&node->task) : nullptr;
  if (!child || !graph) return CUDA_ERROR_INVALID_VALUE;
  CUgraphExecUpdateResult result;
  const GraphNode* wrong;
  if (!SameShape(*child->graph, *graph, &result, &wrong)) return CUDA_ERROR_INVALID_VALUE;
  TakeTasks(call.driver, child->graph.get(), *graph);
  return CUDA_SUCCESS;
}

ATP_API cuGraphExecEventRecordNodeSetEvent(CUgraphExec exec, CUgraphNode handle,
                                           CUevent event_handle) {
  ATP_CALL(kNeedsInit, cost::kCall);
  GraphNode* node = OwnNode(call, exec, handle);
  Event* event = call.driver.events.Get(event_handle);
  if (!node || !event) return CUDA_ERROR_INVALID_VALUE;
  return ReplaceTask(call.driver, node, RecordTask{event->self});
}

ATP_API cuGraphExecEventWaitNodeSetEvent(CUgraphExec exec, CUgraphNode handle,
                                         CUevent event_handle) {
  ATP_CALL(kNeedsInit, cost::kCall);
  GraphNode* node = OwnNode(call, exec, handle);
  Event* event = call.driver.events.Get(event_handle);
  if (!node || !event) return CUDA_ERROR_INVALID_VALUE;
  return ReplaceTask(call.driver, node, WaitTask{event->self});
}

ATP_API cuGraphNodeSetEnabled(CUgraphExec exec, CUgraphNode handle, unsigned enabled) {
  ATP_CALL(kNeedsInit, cost::kCall);
  GraphNode* node = OwnNode(call, exec, handle);
  if (!node) return CUDA_ERROR_INVALID_VALUE;
  const CUgraphNodeType type = NodeType(*node);
  const bool can = type == CU_GRAPH_NODE_TYPE_KERNEL || type == CU_GRAPH_NODE_TYPE_MEMCPY ||
                   type == CU_GRAPH_NODE_TYPE_MEMSET;
  if (!can) return CUDA_ERROR_INVALID_VALUE;
  node->enabled = enabled != 0;
  return CUDA_SUCCESS;
}

ATP_API cuGraphNodeGetEnabled(CUgraphExec exec, CUgraphNode handle, unsigned* enabled) {
  ATP_CALL(kNeedsInit, cost::kCall);
  const GraphNode* node = OwnNode(call, exec, handle);
  if (!node || !enabled) return CUDA_ERROR_INVALID_VALUE;
  *enabled = node->enabled;
  return CUDA_SUCCESS;
}
