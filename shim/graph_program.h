// SPDX-License-Identifier: Apache-2.0
// What an executable graph does: a copy of its nodes' parameters, taken when it is made and kept up
// to date by the calls that change it. The driver gives parameters of a graph, not of what was made
// of it, and the program may change or destroy the graph meanwhile.
//
// A graph of which something is not understood is marked so; it is then launched as the program
// asked, and only what is understood of it is seen. Any thread; the table has a lock of its own, a
// program in it is changed only by the thread that may change or launch its graph.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "shim/cuda_abi.h"

namespace atp::shim {

struct GraphStep {
  CUgraphNode node = nullptr;
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  bool enabled = true;

  CUDA_KERNEL_NODE_PARAMS kernel = {};  // kernelParams point into `arguments`
  std::vector<uint64_t> arguments;      // the parameter buffer
  std::vector<void*> pointers;          // into it, one a parameter
  bool cooperative = false;
  unsigned cluster[3] = {};  // 0 = none
  CUDA_MEMCPY3D copy = {};
  CUDA_MEMSET_NODE_PARAMS set = {};
  std::vector<GraphStep> child;  // of a node that is a graph, in order
};

struct GraphProgram {
  std::vector<GraphStep> steps;  // in an order that dependencies allow
  std::unordered_map<CUgraphNode, GraphStep*> step_of;
  const char* why_whole = nullptr;  // not null: it can be launched only as a whole, because of this
};

// Reads a graph; never null.
std::shared_ptr<GraphProgram> ReadGraph(CUgraph graph);
// Copies what a node is told to do from now on. False: it cannot be launched by itself.
bool TakeKernel(const CUDA_KERNEL_NODE_PARAMS& params, GraphStep* step);
bool TakeCopy(const CUDA_MEMCPY3D& params, GraphStep* step);
bool TakeParams(const CUgraphNodeParams& params, GraphStep* step);

// The table.
void NoteGraph(CUgraphExec exec, std::shared_ptr<GraphProgram> program);
std::shared_ptr<GraphProgram> ProgramOf(CUgraphExec exec);  // may be null
void ForgetGraph(CUgraphExec exec);
// The executable graph now does what `graph` does.
void UpdateGraph(CUgraphExec exec, CUgraph graph);
// Changes one step: change(step) says whether it is understood.
template <typename Change>
void ChangeStep(CUgraphExec exec, CUgraphNode node, Change change) {
  const std::shared_ptr<GraphProgram> program = ProgramOf(exec);
  if (program == nullptr) return;
  const auto found = program->step_of.find(node);
  if (found == program->step_of.end() || !change(found->second)) {
    program->why_whole = "a node was changed in a way that is not understood";
  }
}
void ResetGraphsAfterFork();

}  // namespace atp::shim
