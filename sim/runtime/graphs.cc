// SPDX-License-Identifier: Apache-2.0
// Graphs: life, structure, instances. Nodes of each kind are in graph_nodes.cc, launching in
// stream_order/capture.cc.
#include "sim/runtime/context.h"

namespace {

using namespace atp::simrt;  // NOLINT: this file only forwards calls

static_assert(sizeof(cudaGraphExecUpdateResultInfo) == sizeof(CUgraphExecUpdateResultInfo));

CUgraphEdgeData* Edges(cudaGraphEdgeData* edges) {
  return reinterpret_cast<CUgraphEdgeData*>(edges);
}

const CUgraphEdgeData* Edges(const cudaGraphEdgeData* edges) {
  return reinterpret_cast<const CUgraphEdgeData*>(edges);
}

}  // namespace

extern "C" {

cudaError_t cudaGraphCreate(cudaGraph_t* graph, unsigned flags) {
  return WithContext([&](const DriverCalls& cu) { return cu.GraphCreate(graph, flags); });
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  return WithContext([&](const DriverCalls& cu) { return cu.GraphDestroy(graph); });
}

cudaError_t cudaGraphClone(cudaGraph_t* clone, cudaGraph_t graph) {
  return WithContext([&](const DriverCalls& cu) { return cu.GraphClone(clone, graph); });
}

cudaError_t cudaGraphNodeFindInClone(cudaGraphNode_t* found, cudaGraphNode_t node,
                                     cudaGraph_t clone) {
  return WithContext(
      [&](const DriverCalls& cu) { return cu.GraphNodeFindInClone(found, node, clone); });
}

cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, cudaGraphNodeType* type) {
  return WithContext([&](const DriverCalls& cu) {
    return cu.GraphNodeGetType(node, reinterpret_cast<CUgraphNodeType*>(type));
  });
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  return WithContext([&](const DriverCalls& cu) { return cu.GraphGetNodes(graph, nodes, count); });
}

cudaError_t cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  return WithContext(
      [&](const DriverCalls& cu) { return cu.GraphGetRootNodes(graph, nodes, count); });
}

cudaError_t cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t* from, cudaGraphNode_t* to,
                              cudaGraphEdgeData* edges, size_t* count) {
  return WithContext([&](const DriverCalls& cu) {
    return cu.GraphGetEdges(graph, from, to, Edges(edges), count);
  });
}

cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t* dependencies,
                                         cudaGraphEdgeData* edges, size_t* count) {
  return WithContext([&](const DriverCalls& cu) {
    return cu.GraphNodeGetDependencies(node, dependencies, Edges(edges), count);
  });
}

cudaError_t cudaGraphNodeGetDependentNodes(cudaGraphNode_t node, cudaGraphNode_t* dependents,
                                           cudaGraphEdgeData* edges, size_t* count) {
  return WithContext([&](const DriverCalls& cu) {
    return cu.GraphNodeGetDependentNodes(node, dependents, Edges(edges), count);
  });
}

cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t* from,
                                     const cudaGraphNode_t* to, const cudaGraphEdgeData* edges,
                                     size_t count) {
  return WithContext([&](const DriverCalls& cu) {
    return cu.GraphAddDependencies(graph, from, to, Edges(edges), count);
  });
}

cudaError_t cudaGraphRemoveDependencies(cudaGraph_t graph, const cudaGraphNode_t* from,
                                        const cudaGraphNode_t* to, const cudaGraphEdgeData* edges,
                                        size_t count) {
  return WithContext([&](const DriverCalls& cu) {
    return cu.GraphRemoveDependencies(graph, from, to, Edges(edges), count);
  });
}

cudaError_t cudaGraphDestroyNode(cudaGraphNode_t node) {
  return WithContext([&](const DriverCalls& cu) { return cu.GraphDestroyNode(node); });
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* exec, cudaGraph_t graph,
                                          unsigned long long flags) {
  return WithContext(
      [&](const DriverCalls& cu) { return cu.GraphInstantiateWithFlags(exec, graph, flags); });
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph,
                                 unsigned long long flags) {
  return cudaGraphInstantiateWithFlags(exec, graph, flags);
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  return WithContext([&](const DriverCalls& cu) { return cu.GraphExecDestroy(exec); });
}

cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph,
                                cudaGraphExecUpdateResultInfo* result) {
  return WithContext([&](const DriverCalls& cu) {
    return cu.GraphExecUpdate(exec, graph, reinterpret_cast<CUgraphExecUpdateResultInfo*>(result));
  });
}

cudaError_t cudaGraphExecGetFlags(cudaGraphExec_t exec, unsigned long long* flags) {
  return WithContext([&](const DriverCalls& cu) {
    cuuint64_t value = 0;
    const CUresult result = cu.GraphExecGetFlags(exec, &value);
    *flags = value;
    return result;
  });
}

cudaError_t cudaGraphNodeSetEnabled(cudaGraphExec_t exec, cudaGraphNode_t node, unsigned enabled) {
  return WithContext(
      [&](const DriverCalls& cu) { return cu.GraphNodeSetEnabled(exec, node, enabled); });
}

cudaError_t cudaGraphNodeGetEnabled(cudaGraphExec_t exec, cudaGraphNode_t node, unsigned* enabled) {
  return WithContext(
      [&](const DriverCalls& cu) { return cu.GraphNodeGetEnabled(exec, node, enabled); });
}

cudaError_t cudaGraphDebugDotPrint(cudaGraph_t graph, const char* path, unsigned flags) {
  return WithContext(
      [&](const DriverCalls& cu) { return cu.GraphDebugDotPrint(graph, path, flags); });
}

cudaError_t cudaUserObjectCreate(cudaUserObject_t* object, void* pointer, cudaHostFn_t destroy,
                                 unsigned references, unsigned flags) {
  return WithContext([&](const DriverCalls& cu) {
    return cu.UserObjectCreate(object, pointer, destroy, references, flags);
  });
}

cudaError_t cudaUserObjectRetain(cudaUserObject_t object, unsigned count) {
  return WithContext([&](const DriverCalls& cu) { return cu.UserObjectRetain(object, count); });
}

cudaError_t cudaUserObjectRelease(cudaUserObject_t object, unsigned count) {
  return WithContext([&](const DriverCalls& cu) { return cu.UserObjectRelease(object, count); });
}

cudaError_t cudaGraphRetainUserObject(cudaGraph_t graph, cudaUserObject_t object, unsigned count,
                                      unsigned flags) {
  return WithContext(
      [&](const DriverCalls& cu) { return cu.GraphRetainUserObject(graph, object, count, flags); });
}

cudaError_t cudaGraphReleaseUserObject(cudaGraph_t graph, cudaUserObject_t object, unsigned count) {
  return WithContext(
      [&](const DriverCalls& cu) { return cu.GraphReleaseUserObject(graph, object, count); });
}

}  // extern "C"
