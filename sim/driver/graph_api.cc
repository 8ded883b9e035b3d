// SPDX-License-Identifier: Apache-2.0
// Graphs as a whole: creation, structure, copies, user objects.
#include <algorithm>
#include <cstdio>

#include "sim/driver/driver.h"
#include "sim/driver/graph.h"

namespace atp::sim {
namespace {

// The protocol of all queries that return nodes: without an array the number, with one at most so
// many, the rest null.
CUresult StoreNodes(const std::vector<GraphNode*>& nodes, CUgraphNode* out, size_t* count) {
  if (!count) return CUDA_ERROR_INVALID_VALUE;
  if (!out) {
    *count = nodes.size();
    return CUDA_SUCCESS;
  }
  for (size_t i = 0; i < *count; ++i)
    out[i] = i < nodes.size() ? reinterpret_cast<CUgraphNode>(nodes[i]) : nullptr;
  *count = std::min(*count, nodes.size());
  return CUDA_SUCCESS;
}

std::vector<GraphNode*> Dependents(const GraphNode& node) {
  std::vector<GraphNode*> found;
  for (const auto& other : node.graph->nodes) {
    if (std::count(other->dependencies.begin(), other->dependencies.end(), &node))
      found.push_back(other.get());
  }
  return found;
}

CUresult ChangeEdges(Call& call, CUgraph handle, const CUgraphNode* from, const CUgraphNode* to,
                     size_t count, bool add) {
  Graph* graph = call.driver.graphs.Get(handle);
  if (!graph || (count && (!from || !to))) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; ++i) {
    GraphNode* first = call.driver.nodes.Get(from[i]);
    GraphNode* second = call.driver.nodes.Get(to[i]);
    if (!first || !second || first->graph != graph || second->graph != graph || first == second)
      return CUDA_ERROR_INVALID_VALUE;
    auto& edges = second->dependencies;
    const bool there = std::count(edges.begin(), edges.end(), first) != 0;
    if (there == add) return CUDA_ERROR_INVALID_VALUE;
    if (add) {
      edges.push_back(first);
    } else {
      std::erase(edges, first);
    }
  }
  return CUDA_SUCCESS;
}

CUresult GetEdges(Call& call, CUgraph handle, CUgraphNode* from, CUgraphNode* to, size_t* count) {
  const Graph* graph = call.driver.graphs.Get(handle);
  if (!graph || !count || (from == nullptr) != (to == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  size_t found = 0;
  for (const auto& node : graph->nodes) {
    for (GraphNode* dependency : node->dependencies) {
      if (from && found < *count) {
        from[found] = reinterpret_cast<CUgraphNode>(dependency);
        to[found] = reinterpret_cast<CUgraphNode>(node.get());
      }
      ++found;
    }
  }
  *count = from ? std::min(*count, found) : found;
  return CUDA_SUCCESS;
}

}  // namespace
}  // namespace atp::sim

ATP_API cuGraphCreate(CUgraph* graph, unsigned flags) {
  ATP_CALL(kNeedsInit, cost::kCall);
  if (!graph || flags) return CUDA_ERROR_INVALID_VALUE;
  *graph = reinterpret_cast<CUgraph>(call.driver.graphs.Add(new Graph));
  return CUDA_SUCCESS;
}

ATP_API cuGraphDestroy(CUgraph handle) {
  ATP_CALL(kNeedsInit, cost::kCall);
  Graph* graph = call.driver.graphs.Get(handle);
  if (!graph || graph->is_child) return CUDA_ERROR_INVALID_VALUE;
  DestroyGraph(call.driver, graph);
  return CUDA_SUCCESS;
}

ATP_API cuGraphClone(CUgraph* clone, CUgraph handle) {
  ATP_CALL(kNeedsInit, cost::kCall);
  const Graph* graph = call.driver.graphs.Get(handle);
  if (!graph || !clone) return CUDA_ERROR_INVALID_VALUE;
  *clone = reinterpret_cast<CUgraph>(
      call.driver.graphs.Add(CloneGraph(call.driver, *graph, nullptr).release()));
  return CUDA_SUCCESS;
}

ATP_API cuGraphNodeFindInClone(CUgraphNode* found, CUgraphNode original, CUgraph handle) {
  ATP_CALL(kNeedsInit, cost::kCall);
  const Graph* clone = call.driver.graphs.Get(handle);
  if (!found || !clone) return CUDA_ERROR_INVALID_VALUE;
  for (const auto& node : clone->nodes) {
    if (node->original != reinterpret_cast<const GraphNode*>(original)) continue;
    *found = reinterpret_cast<CUgraphNode>(node.get());
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_VALUE;
}

ATP_API cuGraphDestroyNode(CUgraphNode handle) {
  ATP_CALL(kNeedsInit, cost::kCall);
  GraphNode* node = call.driver.nodes.Get(handle);
  if (!node) return CUDA_ERROR_INVALID_VALUE;
  RemoveNode(call.driver, node);
  return CUDA_SUCCESS;
}

ATP_API cuGraphNodeGetType(CUgraphNode handle, CUgraphNodeType* type) {
  ATP_CALL(kNeedsInit, cost::kCall);
  const GraphNode* node = call.driver.nodes.Get(handle);
  if (!node || !type) return CUDA_ERROR_INVALID_VALUE;
  *type = NodeType(*node);
  return CUDA_SUCCESS;
}

ATP_API cuGraphGetNodes(CUgraph handle, CUgraphNode* nodes, size_t* count) {
  ATP_CALL(kNeedsInit, cost::kCall);
  const Graph* graph = call.driver.graphs.Get(handle);
  if (!graph) return CUDA_ERROR_INVALID_VALUE;
  std::vector<GraphNode*> all;
  for (const auto& node : graph->nodes) all.push_back(node.get());
  return StoreNodes(all, nodes, count);
}

ATP_API cuGraphGetRootNodes(CUgraph handle, CUgraphNode* nodes, size_t* count) {
  ATP_CALL(kNeedsInit, cost::kCall);
  const Graph* graph = call.driver.graphs.Get(handle);
  if (!graph) return CUDA_ERROR_INVALID_VALUE;
  std::vector<GraphNode*> roots;
  for (const auto& node : graph->nodes) {
    if (node->dependencies.empty()) roots.push_back(node.get());
  }
  return StoreNodes(roots, nodes, count);
}

ATP_API cuGraphGetEdges_v2(CUgraph graph, CUgraphNode* from, CUgraphNode* to,
                           CUgraphEdgeData* edges, size_t* count) {
  ATP_CALL(kNeedsInit, cost::kCall);
  const CUresult result = GetEdges(call, graph, from, to, count);
  if (result == CUDA_SUCCESS && from && edges) std::fill(edges, edges + *count, CUgraphEdgeData{});
  return result;
}

ATP_API cuGraphGetEdges(CUgraph graph, CUgraphNode* from, CUgraphNode* to, size_t* count) {
  return cuGraphGetEdges_v2(graph, from, to, nullptr, count);
}

ATP_API cuGraphNodeGetDependencies_v2(CUgraphNode handle, CUgraphNode* nodes,
                                      CUgraphEdgeData* edges, size_t* count) {
  ATP_CALL(kNeedsInit, cost::kCall);
  const GraphNode* node = call.driver.nodes.Get(handle);
  if (!node) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = StoreNodes(node->dependencies, nodes, count);
  if (result == CUDA_SUCCESS && nodes && edges) std::fill(edges, edges + *count, CUgraphEdgeData{});
  return result;
}

ATP_API cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode* nodes, size_t* count) {
  return cuGraphNodeGetDependencies_v2(node, nodes, nullptr, count);
}

ATP_API cuGraphNodeGetDependentNodes_v2(CUgraphNode handle, CUgraphNode* nodes,
                                        CUgraphEdgeData* edges, size_t* count) {
  ATP_CALL(kNeedsInit, cost::kCall);
  const GraphNode* node = call.driver.nodes.Get(handle);
  if (!node) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = StoreNodes(Dependents(*node), nodes, count);
  if (result == CUDA_SUCCESS && nodes && edges) std::fill(edges, edges + *count, CUgraphEdgeData{});
  return result;
}

ATP_API cuGraphNodeGetDependentNodes(CUgraphNode node, CUgraphNode* nodes, size_t* count) {
  return cuGraphNodeGetDependentNodes_v2(node, nodes, nullptr, count);
}

ATP_API cuGraphAddDependencies(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                               size_t count) {
  ATP_CALL(kNeedsInit, cost::kCall);
  return ChangeEdges(call, graph, from, to, count, /*add=*/true);
}

ATP_API cuGraphAddDependencies_v2(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                  const CUgraphEdgeData*, size_t count) {
  ATP_CALL(kNeedsInit, cost::kCall);
  return ChangeEdges(call, graph, from, to, count, /*add=*/true);
}

ATP_API cuGraphRemoveDependencies(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                  size_t count) {
  ATP_CALL(kNeedsInit, cost::kCall);
  return ChangeEdges(call, graph, from, to, count, /*add=*/false);
}

ATP_API cuGraphRemoveDependencies_v2(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                     const CUgraphEdgeData*, size_t count) {
  ATP_CALL(kNeedsInit, cost::kCall);
  return ChangeEdges(call, graph, from, to, count, /*add=*/false);
}

ATP_API cuGraphDebugDotPrint(CUgraph handle, const char* path, unsigned) {
  ATP_CALL(kNeedsInit, cost::kCall);
  const Graph* graph = call.driver.graphs.Get(handle);
  if (!graph || !path) return CUDA_ERROR_INVALID_VALUE;
  FILE* file = std::fopen(path, "w");
  if (!file) return CUDA_ERROR_OPERATING_SYSTEM;
  std::fprintf(file, "digraph graph_0 {\n");
  std::map<const GraphNode*, size_t> index;
  for (const auto& node : graph->nodes) {
    const size_t number = index.size();
    index[node.get()] = number;
    std::fprintf(file, "  n%zu [label=\"%zu: type %d\"];\n", number, number,
                 static_cast<int>(NodeType(*node)));
  }
  for (const auto& node : graph->nodes) {
    for (const GraphNode* dependency : node->dependencies)
      std::fprintf(file, "  n%zu -> n%zu;\n", index[dependency], index[node.get()]);
  }
  std::fprintf(file, "}\n");
  std::fclose(file);
  return CUDA_SUCCESS;
}

ATP_API cuUserObjectCreate(CUuserObject* out, void* argument, CUhostFn destroy, unsigned count,
                           unsigned flags) {
  ATP_CALL(kNeedsInit, cost::kCall);
  if (!out || !destroy || count == 0 || flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC)
    return CUDA_ERROR_INVALID_VALUE;
  auto* object = new UserObject{destroy, argument, count};
  *out = reinterpret_cast<CUuserObject>(call.driver.user_objects.Add(object));
  return CUDA_SUCCESS;
}

ATP_API cuUserObjectRetain(CUuserObject handle, unsigned count) {
  ATP_CALL(kNeedsInit, cost::kCall);
  UserObject* object = call.driver.user_objects.Get(handle);
  if (!object || count == 0) return CUDA_ERROR_INVALID_VALUE;
  object->references += count;
  return CUDA_SUCCESS;
}

ATP_API cuUserObjectRelease(CUuserObject handle, unsigned count) {
  ATP_CALL(kNeedsInit, cost::kCall);
  UserObject* object = call.driver.user_objects.Get(handle);
  if (!object || count == 0) return CUDA_ERROR_INVALID_VALUE;
  ReleaseUserObject(call.driver, object, count);
  return CUDA_SUCCESS;
}

ATP_API cuGraphRetainUserObject(CUgraph graph_handle, CUuserObject handle, unsigned count,
                                unsigned flags) {
  ATP_CALL(kNeedsInit, cost::kCall);
  Graph* graph = call.driver.graphs.Get(graph_handle);
  UserObject* object = call.driver.user_objects.Get(handle);
  if (!graph || !object || count == 0) return CUDA_ERROR_INVALID_VALUE;
  if (!(flags & CU_GRAPH_USER_OBJECT_MOVE)) object->references += count;
  graph->objects[object] += count;
  return CUDA_SUCCESS;
}

ATP_API cuGraphReleaseUserObject(CUgraph graph_handle, CUuserObject handle, unsigned count) {
  ATP_CALL(kNeedsInit, cost::kCall);
  Graph* graph = call.driver.graphs.Get(graph_handle);
  UserObject* object = call.driver.user_objects.Get(handle);
  if (!graph || !object || count == 0 || graph->objects[object] < count)
    return CUDA_ERROR_INVALID_VALUE;
  if ((graph->objects[object] -= count) == 0) graph->objects.erase(object);
  ReleaseUserObject(call.driver, object, count);
  return CUDA_SUCCESS;
}
