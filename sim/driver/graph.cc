// SPDX-License-Identifier: Apache-2.0
#include "sim/driver/graph.h"

#include <algorithm>

#include "sim/driver/capture.h"
#include "sim/driver/driver.h"
#include "sim/driver/pool.h"

namespace atp::sim {

GraphNode* AddNode(Driver& driver, Graph& graph, Task task, std::vector<GraphNode*> dependencies) {
  auto node = std::make_unique<GraphNode>();
  node->graph = &graph;
  node->task = std::move(task);
  node->dependencies = std::move(dependencies);
  GraphNode* raw = node.get();
  graph.nodes.push_back(std::move(node));
  return driver.nodes.Add(raw);
}

void RemoveNode(Driver& driver, GraphNode* node) {
  Graph& graph = *node->graph;
  for (const auto& other : graph.nodes) std::erase(other->dependencies, node);
  if (const auto* child = std::get_if<ChildTask>(&node->task))
    driver.graphs.Remove(child->graph.get());
  driver.nodes.Remove(node);
  std::erase_if(graph.nodes, [node](const auto& owned) { return owned.get() == node; });
}

std::unique_ptr<Graph> CloneGraph(Driver& driver, const Graph& graph,
                                  std::map<const GraphNode*, GraphNode*>* node_of) {
  auto clone = std::make_unique<Graph>();
  std::map<const GraphNode*, GraphNode*> copies;
  for (const auto& node : graph.nodes) {
    Task task = node->task;
    if (auto* child = std::get_if<ChildTask>(&task)) {
      child->graph = CloneGraph(driver, *child->graph, node_of);
      child->graph->is_child = true;
      driver.graphs.Add(child->graph.get());
    }
    GraphNode* copy = AddNode(driver, *clone, std::move(task), {});
    copy->original = node.get();
    copy->enabled = node->enabled;
    copy->attributes = node->attributes;
    copies[node.get()] = copy;
  }
  for (const auto& node : graph.nodes) {
    for (const GraphNode* dependency : node->dependencies)
      copies[node.get()]->dependencies.push_back(copies[dependency]);
  }
  if (node_of) node_of->insert(copies.begin(), copies.end());
  return clone;
}

void DestroyGraph(Driver& driver, Graph* graph) {
  while (!graph->nodes.empty()) RemoveNode(driver, graph->nodes.back().get());
  for (const auto& [object, count] : graph->objects) ReleaseUserObject(driver, object, count);
  driver.graphs.Remove(graph);
  delete graph;
}

void ReleaseUserObject(Driver& driver, UserObject* object, unsigned count) {
  object->references -= std::min(count, object->references);
  if (object->references > 0) return;
  driver.user_objects.Remove(object);
  driver.doomed_objects.push_back(object);  // its destructor runs without the lock
}

std::vector<GraphNode*> TopologicalOrder(const Graph& graph) {
  std::map<const GraphNode*, size_t> missing;
  for (const auto& node : graph.nodes) missing[node.get()] = node->dependencies.size();
  std::vector<GraphNode*> order;
  // Always the first node in order of creation that is ready: graphs made in order keep it.
  std::map<const GraphNode*, std::vector<GraphNode*>> dependents;
  std::map<GraphNode*, size_t> index;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    index[graph.nodes[i].get()] = i;
    for (const GraphNode* dependency : graph.nodes[i]->dependencies)
      dependents[dependency].push_back(graph.nodes[i].get());
  }
  std::set<std::pair<size_t, GraphNode*>> ready;
  for (const auto& node : graph.nodes) {
    if (missing[node.get()] == 0) ready.insert({index[node.get()], node.get()});
  }
  while (!ready.empty()) {
    GraphNode* node = ready.begin()->second;
    ready.erase(ready.begin());
    order.push_back(node);
    for (GraphNode* dependent : dependents[node]) {
      if (--missing[dependent] == 0) ready.insert({index[dependent], dependent});
    }
  }
  if (order.size() != graph.nodes.size()) order.clear();
  return order;
}

CUgraphNodeType NodeType(const GraphNode& node) {
  struct Type {
    CUgraphNodeType operator()(const KernelTask&) { return CU_GRAPH_NODE_TYPE_KERNEL; }
    CUgraphNodeType operator()(const CopyTask&) { return CU_GRAPH_NODE_TYPE_MEMCPY; }
    CUgraphNodeType operator()(const SetTask&) { return CU_GRAPH_NODE_TYPE_MEMSET; }
    CUgraphNodeType operator()(const HostTask&) { return CU_GRAPH_NODE_TYPE_HOST; }
    CUgraphNodeType operator()(const RecordTask&) { return CU_GRAPH_NODE_TYPE_EVENT_RECORD; }
    CUgraphNodeType operator()(const WaitTask&) { return CU_GRAPH_NODE_TYPE_WAIT_EVENT; }
    CUgraphNodeType operator()(const ValueTask&) { return CU_GRAPH_NODE_TYPE_BATCH_MEM_OP; }
    CUgraphNodeType operator()(const HintTask&) { return CU_GRAPH_NODE_TYPE_EMPTY; }
    CUgraphNodeType operator()(const EmptyTask&) { return CU_GRAPH_NODE_TYPE_EMPTY; }
    CUgraphNodeType operator()(const ChildTask&) { return CU_GRAPH_NODE_TYPE_GRAPH; }
    CUgraphNodeType operator()(const GraphAllocTask&) { return CU_GRAPH_NODE_TYPE_MEM_ALLOC; }
    CUgraphNodeType operator()(const FreeTask&) { return CU_GRAPH_NODE_TYPE_MEM_FREE; }
  };
  return std::visit(Type{}, node.task);
}

CUresult AllocateForGraph(Driver& driver, Lane lane, Stream& stream, GraphAllocTask* task) {
  uint64_t address = 0;
  Pool& pool = *stream.context->device->default_pool;
  const CUresult result = PoolAllocate(driver, lane, pool, stream, task->params.bytesize, &address);
  if (result != CUDA_SUCCESS) return result;
  Allocation* allocation = driver.memory().Find(address);
  allocation->of_graph = true;
  NoteGraphMemory(driver, allocation->device);
  task->params.dptr = address;
  task->memory = std::shared_ptr<void>(allocation, [&driver, lane, address](void*) {
    Allocation* mine = driver.memory().Find(address);
    if (mine && mine->begin == address) PoolFree(driver, lane, mine, nullptr);
  });
  return CUDA_SUCCESS;
}

CUresult RunNodes(Call& call, Stream& stream, const std::vector<GraphNode*>& order) {
  for (const GraphNode* node : order) {
    if (!node->enabled) continue;
    call.machine().SpendCall(call.lane(), cost::kGraphNode);
    if (const auto* child = std::get_if<ChildTask>(&node->task)) {
      const CUresult result = RunNodes(call, stream, TopologicalOrder(*child->graph));
      if (result != CUDA_SUCCESS) return result;
      continue;
    }
    const CUresult result = Submit(call, stream, node->task);
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

CUresult LaunchGraph(Call& call, GraphExec& exec, Stream& stream) {
  if (IsCapturing(stream)) {
    ChildTask child;
    child.graph = CloneGraph(call.driver, *exec.graph, nullptr);
    child.graph->is_child = true;
    call.driver.graphs.Add(child.graph.get());
    return CaptureTask(call, stream, std::move(child));
  }
  return RunNodes(call, stream, exec.order);
}

}  // namespace atp::sim
