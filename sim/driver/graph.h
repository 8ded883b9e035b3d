// SPDX-License-Identifier: Apache-2.0
// Graphs: nodes that hold a task each, edges, and executable copies. Entry points are in
// graph_api.cc, graph_node_api.cc and graph_exec_api.cc. Under the driver's lock.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "sim/driver/task.h"

namespace atp::sim {

class Call;

struct UserObject {
  CUhostFn destroy = nullptr;
  void* argument = nullptr;
  unsigned references = 0;
};

struct GraphNode {
  Graph* graph = nullptr;
  Task task;
  std::vector<GraphNode*> dependencies;
  const GraphNode* original = nullptr;  // the node that this one was cloned from
  bool enabled = true;
  std::map<int, CUkernelNodeAttrValue> attributes;
  std::vector<void*> param_pointers;  // what a query of a kernel node gives out
};

struct Graph {
  std::vector<std::unique_ptr<GraphNode>> nodes;  // in order of creation
  std::map<UserObject*, unsigned> objects;
  bool is_child = false;  // belongs to a child node; not the program's to destroy
};

struct GraphExec {
  std::unique_ptr<Graph> graph;                    // an own copy
  std::map<const GraphNode*, GraphNode*> node_of;  // original node -> ours
  std::vector<GraphNode*> order;                   // topological, stable
  Context* context = nullptr;
  unsigned long long flags = 0;
};

// Adds a node; the driver knows its handle from then on.
GraphNode* AddNode(Driver& driver, Graph& graph, Task task, std::vector<GraphNode*> dependencies);
void RemoveNode(Driver& driver, GraphNode* node);
// A deep copy. `node_of`, when given, receives original -> copy.
std::unique_ptr<Graph> CloneGraph(Driver& driver, const Graph& graph,
                                  std::map<const GraphNode*, GraphNode*>* node_of);
void DestroyGraph(Driver& driver, Graph* graph);
// Nodes so that each comes after what it depends on; empty when there is a cycle (and nodes).
std::vector<GraphNode*> TopologicalOrder(const Graph& graph);
CUgraphNodeType NodeType(const GraphNode& node);

// Backs a memory allocation node, and gives its memory back.
CUresult AllocateForGraph(Driver& driver, Lane lane, Stream& stream, GraphAllocTask* task);

// An allocation node has been made on a device: the high mark may have risen.
void NoteGraphMemory(Driver& driver, int index);

// Runs an executable graph into a stream.
CUresult LaunchGraph(Call& call, GraphExec& exec, Stream& stream);
// Submits the nodes of a graph, children included, in order. Branches run one after another.
CUresult RunNodes(Call& call, Stream& stream, const std::vector<GraphNode*>& order);

// Drops references to a user object; with the last one its destructor is due.
void ReleaseUserObject(Driver& driver, UserObject* object, unsigned count);

}  // namespace atp::sim
