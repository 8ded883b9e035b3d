// SPDX-License-Identifier: Apache-2.0
#include "shim/graph_launch.h"

#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "shim/capture.h"
#include "shim/device.h"
#include "shim/graph_program.h"
#include "shim/observation.h"
#include "shim/on_copy.h"
#include "shim/on_launch.h"
#include "shim/on_set.h"
#include "shim/shimlog.h"

namespace atp::shim {
namespace {

uint64_t IdentityOf(const GraphStep& step) {
  return step.type == CU_GRAPH_NODE_TYPE_KERNEL ? FunctionOf(step.kernel.func).identity
                                                : static_cast<uint64_t>(step.type);
}

const char* NameOf(const GraphStep& step) {
  switch (step.type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
      return FunctionOf(step.kernel.func).name;
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      return "memcpy_3d";
    case CU_GRAPH_NODE_TYPE_MEMSET:
      return "memset";
    default:
      return nullptr;
  }
}

// What one node touches.
void Observe(const GraphStep& step, Observation* observation) {
  switch (step.type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: {
      const CUDA_KERNEL_NODE_PARAMS& k = step.kernel;
      ObserveParameters(observation, FunctionOf(k.func), ShapeOf(k), k.kernelParams, nullptr);
      break;
    }
    case CU_GRAPH_NODE_TYPE_MEMCPY: {
      const Sides<CUDA_MEMCPY3D> sides(&step.copy);
      observation->Touch(sides.from.address, sides.from.bytes, true, false);
      observation->Touch(sides.to.address, sides.to.bytes, false, true);
      break;
    }
    case CU_GRAPH_NODE_TYPE_MEMSET: {
      const CUDA_MEMSET_NODE_PARAMS& s = step.set;
      const uint64_t bytes = PitchedExtent(s.pitch, s.width * s.elementSize, s.height);
      observation->Touch(s.dst, bytes, false, true);
      break;
    }
    default:
      break;
  }
}

template <typename Visit>
void ForEachStep(const std::vector<GraphStep>& steps, Visit visit) {
  for (const GraphStep& step : steps) {
    if (!step.enabled) continue;
    visit(step);
    ForEachStep(step.child, visit);
  }
}

// What the graph touches as a whole, each pointer once.
struct Whole {
  uint64_t signature = 0x6E3A;
  std::vector<Touch> touches;
  uint64_t bytes = 0;  // of the allocations touched
};

Whole Gather(const GraphProgram& program, CUstream stream, bool per_thread) {
  Whole whole;
  std::unordered_map<uint64_t, size_t> index;  // by address
  std::unordered_set<const Allocation*> seen;
  ForEachStep(program.steps, [&](const GraphStep& step) {
    Observation node(IdentityOf(step), NameOf(step), stream, per_thread);
    Observe(step, &node);
    whole.signature = (whole.signature ^ node.signature()) * 0x9E3779B97F4A7C15u;
    for (const Touch& touch : node.touches()) {
      if (seen.insert(touch.allocation).second) whole.bytes += touch.allocation->mapped_bytes;
      const uint64_t address = touch.allocation->address + touch.offset;
      const auto [at, fresh] = index.try_emplace(address, whole.touches.size());
      if (fresh) {
        whole.touches.push_back(touch);
        continue;
      }
      Touch& known = whole.touches[at->second];
      // An unknown extent stays unknown.
      known.bytes = known.bytes == 0 || touch.bytes == 0 ? 0 : std::max(known.bytes, touch.bytes);
      known.reads |= touch.reads;
      known.writes |= touch.writes;
    }
  });
  return whole;
}

// --- node by node

CUresult LaunchKernel(const GraphStep& step, CUstream stream, bool per_thread) {
  const CUDA_KERNEL_NODE_PARAMS& k = step.kernel;
  CUlaunchAttribute attributes[2] = {};
  CUlaunchConfig config = {};
  config.gridDimX = k.gridDimX;
  config.gridDimY = k.gridDimY;
  config.gridDimZ = k.gridDimZ;
  config.blockDimX = k.blockDimX;
  config.blockDimY = k.blockDimY;
  config.blockDimZ = k.blockDimZ;
  config.sharedMemBytes = k.sharedMemBytes;
  config.hStream = stream;
  config.attrs = attributes;
  if (step.cooperative) {
    attributes[config.numAttrs].id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
    attributes[config.numAttrs++].value.cooperative = 1;
  }
  if (step.cluster[0] != 0) {
    attributes[config.numAttrs].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    attributes[config.numAttrs++].value.clusterDim = {step.cluster[0], step.cluster[1],
                                                      step.cluster[2]};
  }
  if (config.numAttrs == 0) {
    const auto launch = per_thread ? real().cuLaunchKernel_ptsz : real().cuLaunchKernel;
    return launch(k.func, k.gridDimX, k.gridDimY, k.gridDimZ, k.blockDimX, k.blockDimY, k.blockDimZ,
                  k.sharedMemBytes, stream, k.kernelParams, nullptr);
  }
  const auto launch = per_thread ? real().cuLaunchKernelEx_ptsz : real().cuLaunchKernelEx;
  return launch(&config, k.func, k.kernelParams, nullptr);
}

CUresult LaunchSet(const CUDA_MEMSET_NODE_PARAMS& s, CUstream stream, bool per_thread) {
  const auto value8 = static_cast<unsigned char>(s.value);
  const auto value16 = static_cast<unsigned short>(s.value);
  const RealDriver& d = real();
  switch (s.elementSize) {
    case 1:
      return s.height == 1 ? (per_thread ? d.cuMemsetD8Async_ptsz : d.cuMemsetD8Async)(
                                 s.dst, value8, s.width, stream)
                           : (per_thread ? d.cuMemsetD2D8Async_ptsz : d.cuMemsetD2D8Async)(
                                 s.dst, s.pitch, value8, s.width, s.height, stream);
    case 2:
      return s.height == 1 ? (per_thread ? d.cuMemsetD16Async_ptsz : d.cuMemsetD16Async)(
                                 s.dst, value16, s.width, stream)
                           : (per_thread ? d.cuMemsetD2D16Async_ptsz : d.cuMemsetD2D16Async)(
                                 s.dst, s.pitch, value16, s.width, s.height, stream);
    default:
      return s.height == 1 ? (per_thread ? d.cuMemsetD32Async_ptsz : d.cuMemsetD32Async)(
                                 s.dst, s.value, s.width, stream)
                           : (per_thread ? d.cuMemsetD2D32Async_ptsz : d.cuMemsetD2D32Async)(
                                 s.dst, s.pitch, s.value, s.width, s.height, stream);
  }
}

CUresult LaunchStep(const GraphStep& step, CUstream stream, bool per_thread) {
  switch (step.type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
      return LaunchKernel(step, stream, per_thread);
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      return (per_thread ? real().cuMemcpy3DAsync_v2_ptsz : real().cuMemcpy3DAsync_v2)(&step.copy,
                                                                                       stream);
    case CU_GRAPH_NODE_TYPE_MEMSET:
      return LaunchSet(step.set, stream, per_thread);
    default:
      return CUDA_SUCCESS;
  }
}

CUresult LaunchNodes(const GraphProgram& program, CUstream stream, bool per_thread) {
  CUresult result = CUDA_SUCCESS;
  ForEachStep(program.steps, [&](const GraphStep& step) {
    const bool works = step.type == CU_GRAPH_NODE_TYPE_KERNEL ||
                       step.type == CU_GRAPH_NODE_TYPE_MEMCPY ||
                       step.type == CU_GRAPH_NODE_TYPE_MEMSET;
    if (result != CUDA_SUCCESS || !works) return;
    Observation node(IdentityOf(step), NameOf(step), stream, per_thread);
    Observe(step, &node);
    result = node.Submit(false, [&] { return LaunchStep(step, stream, per_thread); });
  });
  return result;
}

CUresult LaunchWhole(Whole* whole, CUgraphExec exec, CUstream stream, bool per_thread,
                     CUresult (*launch)(CUgraphExec, CUstream)) {
  LaunchView view;
  view.signature = whole->signature;
  view.name = "graph";
  view.stream = stream;
  view.per_thread = per_thread;
  view.touches = whole->touches.data();
  view.touch_count = whole->touches.size();
  const CUresult refused = LoopBeforeLaunch(view);
  if (refused != CUDA_SUCCESS) return refused;
  const CUresult result = launch(exec, stream);
  LoopAfterLaunch(view);
  return result;
}

void SayOnceWhyWhole(const char* why, uint64_t bytes, uint64_t room) {
  static std::atomic<bool> said{false};
  if (said.exchange(true)) return;
  ATP_LOG_WARN(
      "a graph touches %s, more than the room of %s, and is launched as a whole, because %s: its "
      "memory moves on demand",
      HumanBytes(bytes).text(), HumanBytes(room).text(), why);
}

}  // namespace

CUresult LaunchGraph(CUgraphExec exec, CUstream stream, bool per_thread,
                     CUresult (*launch)(CUgraphExec, CUstream)) {
  const std::shared_ptr<GraphProgram> program = ProgramOf(exec);
  const bool recorded = CaptureOpen() && IsCapturing(stream, per_thread);
  if (program == nullptr || recorded) return launch(exec, stream);
  Whole whole = Gather(*program, stream, per_thread);
  const Device* device =
      whole.touches.empty() ? nullptr : DeviceOf(whole.touches[0].allocation->device);
  if (device == nullptr) return launch(exec, stream);
  // A little less than the room, as the loop keeps some of it free.
  const uint64_t room = ManagedRoom(*device) / 8 * 7;
  if (whole.bytes > room) {
    const char* why = program->why_whole;
    if (why == nullptr && ContextsSeen() > 1) why = "the process has several contexts";
    if (why == nullptr) return LaunchNodes(*program, stream, per_thread);
    SayOnceWhyWhole(why, whole.bytes, room);
  }
  return LaunchWhole(&whole, exec, stream, per_thread, launch);
}

}  // namespace atp::shim
