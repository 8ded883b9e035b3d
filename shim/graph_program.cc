// SPDX-License-Identifier: Apache-2.0
#include "shim/graph_program.h"

#include <string.h>

#include <algorithm>
#include <mutex>
#include <new>

#include "shim/functions.h"
#include "shim/own_calls.h"
#include "shim/resolve.h"

namespace atp::shim {
namespace {

constinit std::mutex mutex;
using Table = std::unordered_map<CUgraphExec, std::shared_ptr<GraphProgram>>;
Table& Programs() {  // never destroyed: hooks may run until the very end
  static Table* programs = new Table;
  return *programs;
}

std::vector<CUgraphNode> NodesOf(CUgraph graph) {
  size_t count = 0;
  if (real().cuGraphGetNodes(graph, nullptr, &count) != CUDA_SUCCESS) return {};
  std::vector<CUgraphNode> nodes(count);
  if (count != 0 && real().cuGraphGetNodes(graph, nodes.data(), &count) != CUDA_SUCCESS) return {};
  return nodes;
}

// One more form of the call with each edition of the driver; null edge data is refused by the newer
// one when an edge carries some.
std::vector<CUgraphNode> DependenciesOf(CUgraphNode node, bool* known) {
  size_t count = 0;
  std::vector<CUgraphNode> nodes;
  std::vector<CUgraphEdgeData> edges;
  const auto ask = [&](CUgraphNode* out) {
    if (real().cuGraphNodeGetDependencies_v2 != nullptr) {
      return real().cuGraphNodeGetDependencies_v2(node, out, out ? edges.data() : nullptr, &count);
    }
    return real().cuGraphNodeGetDependencies(node, out, &count);
  };
  *known = ask(nullptr) == CUDA_SUCCESS;
  nodes.resize(count);
  edges.resize(count);
  if (*known && count != 0) *known = ask(nodes.data()) == CUDA_SUCCESS;
  return nodes;
}

// Nodes so that each comes after what it depends on, otherwise in order of creation. False: not
// told.
bool Sort(std::vector<CUgraphNode>* nodes) {
  std::unordered_map<CUgraphNode, size_t> index;
  for (size_t i = 0; i < nodes->size(); ++i) index[(*nodes)[i]] = i;
  std::vector<std::vector<size_t>> next(nodes->size());
  std::vector<size_t> waits(nodes->size());
  for (size_t i = 0; i < nodes->size(); ++i) {
    bool known = false;
    for (CUgraphNode dependency : DependenciesOf((*nodes)[i], &known)) {
      next[index[dependency]].push_back(i);
      ++waits[i];
    }
    if (!known) return false;
  }
  std::vector<CUgraphNode> sorted;
  std::vector<size_t> ready;
  for (size_t i = nodes->size(); i-- > 0;) {
    if (waits[i] == 0) ready.push_back(i);
  }
  while (!ready.empty()) {
    const size_t i = ready.back();
    ready.pop_back();
    sorted.push_back((*nodes)[i]);
    for (size_t k = next[i].size(); k-- > 0;) {
      if (--waits[next[i][k]] == 0) ready.push_back(next[i][k]);
    }
  }
  if (sorted.size() != nodes->size()) return false;
  *nodes = std::move(sorted);
  return true;
}

// What a launch of the kernel would need as attributes; false: what it cannot have.
bool ReadAttributes(CUgraphNode node, GraphStep* step) {
  if (real().cuGraphKernelNodeGetAttribute == nullptr) return false;
  CUlaunchAttributeValue value = {};
  const auto ask = [&](CUlaunchAttributeID id) {
    memset(&value, 0, sizeof value);
    return real().cuGraphKernelNodeGetAttribute(node, id, &value) == CUDA_SUCCESS;
  };
  if (ask(CU_LAUNCH_ATTRIBUTE_COOPERATIVE)) step->cooperative = value.cooperative != 0;
  if (ask(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) &&
      value.clusterDim.x * value.clusterDim.y * value.clusterDim.z > 1) {
    step->cluster[0] = value.clusterDim.x;
    step->cluster[1] = value.clusterDim.y;
    step->cluster[2] = value.clusterDim.z;
  }
  const bool by_device = ask(CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE) &&
                         value.deviceUpdatableKernelNode.deviceUpdatable != 0;
  return !by_device;
}

// The host end of a copy is read when the copy runs; a copy issued by itself reads pageable memory
// when it is issued.
bool ReadsWhenItRuns(CUmemorytype type, const void* host) {
  if (type != CU_MEMORYTYPE_HOST) return true;
  unsigned kind = 0;
  return real().cuPointerGetAttribute(&kind, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                      reinterpret_cast<uintptr_t>(host)) == CUDA_SUCCESS;
}

const char* ReadSteps(CUgraph graph, std::vector<GraphStep>* steps);

// Why the node cannot be launched by itself, or null.
const char* ReadStep(CUgraphNode node, GraphStep* step) {
  constexpr const char* kUnread = "a node's parameters are not told";
  step->node = node;
  if (real().cuGraphNodeGetType(node, &step->type) != CUDA_SUCCESS) return kUnread;
  switch (step->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: {
      CUDA_KERNEL_NODE_PARAMS params = {};
      if (real().cuGraphKernelNodeGetParams_v2 == nullptr ||
          real().cuGraphKernelNodeGetParams_v2(node, &params) != CUDA_SUCCESS ||
          !TakeKernel(params, step)) {
        return kUnread;
      }
      return ReadAttributes(node, step) ? nullptr : "a kernel node may be changed by the device";
    }
    case CU_GRAPH_NODE_TYPE_MEMCPY: {
      CUDA_MEMCPY3D copy = {};
      if (real().cuGraphMemcpyNodeGetParams(node, &copy) != CUDA_SUCCESS) return kUnread;
      return TakeCopy(copy, step) ? nullptr : "a copy node has an end in pageable memory";
    }
    case CU_GRAPH_NODE_TYPE_MEMSET:
      return real().cuGraphMemsetNodeGetParams(node, &step->set) == CUDA_SUCCESS ? nullptr
                                                                                 : kUnread;
    case CU_GRAPH_NODE_TYPE_EMPTY:
      return nullptr;
    case CU_GRAPH_NODE_TYPE_GRAPH: {
      CUgraph child = nullptr;
      if (real().cuGraphChildGraphNodeGetGraph(node, &child) != CUDA_SUCCESS) return kUnread;
      return ReadSteps(child, &step->child);
    }
    default:
      return "it has nodes other than kernels, copies and sets";
  }
}

const char* ReadSteps(CUgraph graph, std::vector<GraphStep>* steps) {
  std::vector<CUgraphNode> nodes = NodesOf(graph);
  const char* why = Sort(&nodes) ? nullptr : "its edges are not told";
  steps->reserve(nodes.size());
  for (CUgraphNode node : nodes) {
    steps->emplace_back();
    const char* not_alone = ReadStep(node, &steps->back());
    if (why == nullptr) why = not_alone;
  }
  return why;
}

void IndexSteps(std::vector<GraphStep>* steps, GraphProgram* program) {
  for (GraphStep& step : *steps) {
    program->step_of[step.node] = &step;
    IndexSteps(&step.child, program);
  }
}

}  // namespace

bool TakeKernel(const CUDA_KERNEL_NODE_PARAMS& params, GraphStep* step) {
  step->kernel = params;
  step->kernel.kernelParams = step->kernel.extra = nullptr;
  step->arguments.clear();
  step->pointers.clear();
  if (params.func == nullptr) step->kernel.func = reinterpret_cast<CUfunction>(params.kern);
  const FunctionInfo& info = FunctionOf(step->kernel.func);
  if (!info.known) return false;
  const PackedArguments packed = params.kernelParams == nullptr && params.extra != nullptr
                                     ? ReadExtra(params.extra)
                                     : PackedArguments{};
  size_t bytes = 0;
  for (const Parameter& p : info.parameters) {
    bytes = std::max<size_t>(bytes, p.offset + p.bytes);
  }
  if (params.kernelParams == nullptr && packed.bytes < bytes) return false;
  step->arguments.resize((bytes + 7) / 8);
  char* buffer = reinterpret_cast<char*>(step->arguments.data());
  for (size_t i = 0; i < info.parameters.size(); ++i) {
    const Parameter& p = info.parameters[i];
    const void* from = params.kernelParams != nullptr
                           ? params.kernelParams[i]
                           : static_cast<const char*>(packed.buffer) + p.offset;
    memcpy(buffer + p.offset, from, p.bytes);
    step->pointers.push_back(buffer + p.offset);
  }
  step->kernel.kernelParams = step->pointers.data();
  return true;
}

bool TakeCopy(const CUDA_MEMCPY3D& params, GraphStep* step) {
  step->copy = params;
  return ReadsWhenItRuns(params.srcMemoryType, params.srcHost) &&
         ReadsWhenItRuns(params.dstMemoryType, params.dstHost);
}

bool TakeParams(const CUgraphNodeParams& params, GraphStep* step) {
  switch (params.type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: {
      const auto& k = params.kernel;
      return TakeKernel({k.func, k.gridDimX, k.gridDimY, k.gridDimZ, k.blockDimX, k.blockDimY,
                         k.blockDimZ, k.sharedMemBytes, k.kernelParams, k.extra, k.kern, k.ctx},
                        step);
    }
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      return TakeCopy(params.memcpy.copyParams, step);
    case CU_GRAPH_NODE_TYPE_MEMSET: {
      const auto& s = params.memset;
      step->set = {s.dst, s.pitch, s.value, s.elementSize, s.width, s.height};
      return true;
    }
    default:
      return false;
  }
}

std::shared_ptr<GraphProgram> ReadGraph(CUgraph graph) {
  Relaxed relaxed;
  auto program = std::make_shared<GraphProgram>();
  if (real().cuGraphGetNodes == nullptr) {
    program->why_whole = "the driver does not tell its nodes";
    return program;
  }
  program->why_whole = ReadSteps(graph, &program->steps);
  IndexSteps(&program->steps, program.get());
  return program;
}

void NoteGraph(CUgraphExec exec, std::shared_ptr<GraphProgram> program) {
  std::lock_guard lock(mutex);
  Programs()[exec] = std::move(program);
}

std::shared_ptr<GraphProgram> ProgramOf(CUgraphExec exec) {
  std::lock_guard lock(mutex);
  const auto found = Programs().find(exec);
  return found != Programs().end() ? found->second : nullptr;
}

void ForgetGraph(CUgraphExec exec) {
  std::lock_guard lock(mutex);
  Programs().erase(exec);
}

// How the driver pairs the nodes of both graphs is not told, so a later change by a node of the
// older one is not understood.
void UpdateGraph(CUgraphExec exec, CUgraph graph) {
  if (ProgramOf(exec) != nullptr) NoteGraph(exec, ReadGraph(graph));
}

void ResetGraphsAfterFork() { new (&mutex) std::mutex; }

}  // namespace atp::shim
