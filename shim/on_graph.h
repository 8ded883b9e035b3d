// SPDX-License-Identifier: Apache-2.0
// Bodies of the hooks of executable graphs: what they do is remembered when they are made and
// changed, and looked at when they are launched.
#pragma once

#include <cstddef>

#include "shim/capture.h"
#include "shim/graph_launch.h"
#include "shim/graph_program.h"
#include "shim/managed.h"
#include "shim/owing.h"
#include "shim/resolve.h"
#include "shim/settings.h"

namespace atp::shim {

inline bool GraphsSeen() {
  return Settings().policy == Policy::kLearned && !Settings().Disabled(kDisableGraphs);
}

template <HookId id>
CUresult OnGraphLaunch(CUgraphExec graph, CUstream stream) {
  if (Owing()) [[unlikely]] {
    LaunchView view;
    view.stream = stream;
    view.per_thread = Row<id>::kPerThread;
    view.capturing = CaptureOpen() && IsCapturing(stream, view.per_thread);
    const CUresult refused = LoopPay(&view);
    if (refused != CUDA_SUCCESS) return refused;
  }
  if (!Watching() || !GraphsSeen()) return Row<id>::Real()(graph, stream);
  return LaunchGraph(graph, stream, Row<id>::kPerThread, Row<id>::Real());
}

// Every way to make one: the result first, the graph second.
template <HookId id, typename... More>
CUresult OnGraphInstantiate(CUgraphExec* exec, CUgraph graph, More... more) {
  const CUresult result = Row<id>::Real()(exec, graph, more...);
  if (result == CUDA_SUCCESS && exec != nullptr && GraphsSeen()) NoteGraph(*exec, ReadGraph(graph));
  return result;
}

template <HookId id>
CUresult OnGraphExecDestroy(CUgraphExec exec) {
  const CUresult result = Row<id>::Real()(exec);
  if (result == CUDA_SUCCESS) ForgetGraph(exec);
  return result;
}

template <HookId id, typename... More>
CUresult OnGraphExecUpdate(CUgraphExec exec, CUgraph graph, More... more) {
  const CUresult result = Row<id>::Real()(exec, graph, more...);
  if (result == CUDA_SUCCESS) UpdateGraph(exec, graph);
  return result;
}

template <HookId id>
CUresult OnExecKernelParams(CUgraphExec exec, CUgraphNode node,
                            const CUDA_KERNEL_NODE_PARAMS* params) {
  const CUresult result = Row<id>::Real()(exec, node, params);
  if (result != CUDA_SUCCESS || params == nullptr) return result;
  ChangeStep(exec, node, [&](GraphStep* step) { return TakeKernel(*params, step); });
  return result;
}

template <HookId id>
CUresult OnExecKernelParamsV1(CUgraphExec exec, CUgraphNode node,
                              const CUDA_KERNEL_NODE_PARAMS_v1* params) {
  const CUresult result = Row<id>::Real()(exec, node, params);
  if (result != CUDA_SUCCESS || params == nullptr) return result;
  CUDA_KERNEL_NODE_PARAMS wide = {};  // the older structure is the beginning of the newer one
  static_assert(offsetof(CUDA_KERNEL_NODE_PARAMS, kern) == sizeof(CUDA_KERNEL_NODE_PARAMS_v1));
  __builtin_memcpy(static_cast<void*>(&wide), params, sizeof *params);
  ChangeStep(exec, node, [&](GraphStep* step) { return TakeKernel(wide, step); });
  return result;
}

template <HookId id>
CUresult OnExecCopyParams(CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D* params,
                          CUcontext context) {
  const CUresult result = Row<id>::Real()(exec, node, params, context);
  if (result != CUDA_SUCCESS || params == nullptr) return result;
  ChangeStep(exec, node, [&](GraphStep* step) { return TakeCopy(*params, step); });
  return result;
}

template <HookId id>
CUresult OnExecSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS* params,
                         CUcontext context) {
  const CUresult result = Row<id>::Real()(exec, node, params, context);
  if (result != CUDA_SUCCESS || params == nullptr) return result;
  ChangeStep(exec, node, [&](GraphStep* step) { return step->set = *params, true; });
  return result;
}

template <HookId id>
CUresult OnExecChildParams(CUgraphExec exec, CUgraphNode node, CUgraph child) {
  const CUresult result = Row<id>::Real()(exec, node, child);
  if (result == CUDA_SUCCESS) ChangeStep(exec, node, [](GraphStep*) { return false; });
  return result;
}

template <HookId id>
CUresult OnExecNodeParams(CUgraphExec exec, CUgraphNode node, CUgraphNodeParams* params) {
  const CUresult result = Row<id>::Real()(exec, node, params);
  if (result == CUDA_SUCCESS) {
    ChangeStep(exec, node, [&](GraphStep* step) { return TakeParams(*params, step); });
  }
  return result;
}

template <HookId id>
CUresult OnNodeSetEnabled(CUgraphExec exec, CUgraphNode node, unsigned enabled) {
  const CUresult result = Row<id>::Real()(exec, node, enabled);
  if (result != CUDA_SUCCESS) return result;
  ChangeStep(exec, node, [&](GraphStep* step) { return step->enabled = enabled != 0, true; });
  return result;
}

}  // namespace atp::shim
