// SPDX-License-Identifier: Apache-2.0
// Graphs made, changed and launched in every way; prints what memory holds afterwards, which must
// not depend on whether a preload library is there.
//   graph_paths PTX CASE
#include <cuda.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <sstream>
#include <vector>

namespace {

constexpr size_t kBytes = 2u << 20;
constexpr unsigned kCount = kBytes / 4;
constexpr int kBuffers = 6;

void Check(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  const char* name = "?";
  cuGetErrorName(result, &name);
  printf("FAIL %s: %s\n", what, name);
  exit(1);
}
#define CHECK(call) Check(call, #call)

struct Program {
  CUfunction bump;
  CUstream stream;
  CUdeviceptr buffer[kBuffers];

  CUDA_KERNEL_NODE_PARAMS Bump(int index) {
    addresses_.push_back(new CUdeviceptr(buffer[index]));  // lives as long as the process
    pointers_.push_back(new void* [2] { addresses_.back(), &count_ });
    CUDA_KERNEL_NODE_PARAMS params = {};
    params.func = bump;
    params.gridDimX = kCount / 256;
    params.gridDimY = params.gridDimZ = params.blockDimY = params.blockDimZ = 1;
    params.blockDimX = 256;
    params.kernelParams = pointers_.back();
    return params;
  }
  // The same with the arguments in one buffer.
  CUDA_KERNEL_NODE_PARAMS PackedBump(int index) {
    struct Arguments {
      CUdeviceptr address;
      unsigned count;
    };
    struct Packed {
      Arguments arguments;
      size_t bytes = offsetof(Arguments, count) + sizeof(unsigned);
      void* extra[5] = {};
    };
    auto* packed = new Packed{{buffer[index], kCount}};  // lives as long as the process
    void* const list[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed->arguments,
                          CU_LAUNCH_PARAM_BUFFER_SIZE, &packed->bytes, CU_LAUNCH_PARAM_END};
    std::copy(std::begin(list), std::end(list), packed->extra);
    CUDA_KERNEL_NODE_PARAMS params = Bump(index);
    params.kernelParams = nullptr;
    params.extra = packed->extra;
    return params;
  }
  CUDA_MEMCPY3D Copy(int from, int to) const {
    CUDA_MEMCPY3D params = {};
    params.srcMemoryType = params.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    params.srcDevice = buffer[from];
    params.dstDevice = buffer[to];
    params.srcPitch = params.dstPitch = 4096;
    params.srcHeight = params.dstHeight = kBytes / 4096;
    params.WidthInBytes = 4096;
    params.Height = kBytes / 4096;
    params.Depth = 1;
    return params;
  }
  CUDA_MEMSET_NODE_PARAMS Set(int index, unsigned value, unsigned element, bool rows) const {
    CUDA_MEMSET_NODE_PARAMS params = {};
    params.dst = buffer[index];
    params.value = value;
    params.elementSize = element;
    params.width = rows ? 1000 / element : kBytes / element;
    params.height = rows ? 300 : 1;
    params.pitch = rows ? 4096 : 0;
    return params;
  }
  CUgraphNode Add(CUgraph graph, CUgraphNode after, const CUDA_KERNEL_NODE_PARAMS& params) const {
    CUgraphNode node;
    CHECK(cuGraphAddKernelNode(&node, graph, &after, after != nullptr, &params));
    return node;
  }
  CUgraphNode Add(CUgraph graph, CUgraphNode after, const CUDA_MEMCPY3D& params) const {
    CUgraphNode node;
    CUcontext context;
    cuCtxGetCurrent(&context);
    CHECK(cuGraphAddMemcpyNode(&node, graph, &after, after != nullptr, &params, context));
    return node;
  }
  CUgraphNode Add(CUgraph graph, CUgraphNode after, const CUDA_MEMSET_NODE_PARAMS& params) const {
    CUgraphNode node;
    CUcontext context;
    cuCtxGetCurrent(&context);
    CHECK(cuGraphAddMemsetNode(&node, graph, &after, after != nullptr, &params, context));
    return node;
  }
  void Launch(CUgraphExec graph, int times = 1) const {
    for (int i = 0; i < times; ++i) CHECK(cuGraphLaunch(graph, stream));
    CHECK(cuStreamSynchronize(stream));
  }
  void Show(const char* when) const {
    printf("%s:", when);
    for (CUdeviceptr address : buffer) {
      std::vector<unsigned> values(kCount);
      CHECK(cuMemcpyDtoH(values.data(), address, kBytes));
      unsigned long long sum = 0;
      for (unsigned value : values) sum = sum * 31 + value;
      printf(" %llu", sum);
    }
    printf("\n");
  }

 private:
  unsigned count_ = kCount;
  std::vector<CUdeviceptr*> addresses_;
  std::vector<void**> pointers_;
};

CUgraph NewGraph() {
  CUgraph graph;
  CHECK(cuGraphCreate(&graph, 0));
  return graph;
}

CUgraphExec Instantiate(CUgraph graph) {
  CUgraphExec runnable;
  CHECK(cuGraphInstantiate(&runnable, graph, 0));
  return runnable;
}

// Kernels, copies and sets of every element size, in one and two dimensions, over all buffers.
void Kinds(Program& p) {
  CUgraph graph = NewGraph();
  CUgraphNode last = p.Add(graph, nullptr, p.Set(0, 3, 4, false));
  last = p.Add(graph, last, p.Set(1, 5, 2, false));
  last = p.Add(graph, last, p.Set(2, 7, 1, false));
  last = p.Add(graph, last, p.Set(0, 9, 4, true));
  last = p.Add(graph, last, p.Set(1, 11, 2, true));
  last = p.Add(graph, last, p.Set(2, 13, 1, true));
  for (int i = 0; i < 3; ++i) last = p.Add(graph, last, p.Bump(i));
  for (int i = 0; i < 3; ++i) last = p.Add(graph, last, p.Copy(i, i + 3));
  for (int i = 3; i < 6; ++i) last = p.Add(graph, last, p.Bump(i));
  const CUgraphExec runnable = Instantiate(graph);
  p.Launch(runnable, 3);
  p.Show("launched");
  // What the graph becomes later is not what was instantiated.
  const CUDA_KERNEL_NODE_PARAMS other = p.Bump(0);
  CHECK(cuGraphKernelNodeSetParams(last, &other));
  p.Launch(runnable);
  p.Show("graph changed");
  CHECK(cuGraphDestroy(graph));
  p.Launch(runnable);
  p.Show("graph destroyed");
  CHECK(cuGraphExecDestroy(runnable));
}

// An order of creation that is not the order of execution, and branches.
void Order(Program& p) {
  CUgraph graph = NewGraph();
  const CUgraphNode third = p.Add(graph, nullptr, p.Copy(0, 1));
  const CUgraphNode first = p.Add(graph, nullptr, p.Set(0, 40, 4, false));
  const CUgraphNode second = p.Add(graph, first, p.Bump(0));
  CHECK(cuGraphAddDependencies(graph, &second, &third, nullptr, 1));
  CUgraphNode join;
  const CUgraphNode left = p.Add(graph, third, p.Bump(1));
  const CUgraphNode right = p.Add(graph, third, p.Copy(0, 2));
  const CUgraphNode both[] = {left, right};
  CHECK(cuGraphAddEmptyNode(&join, graph, both, 2));
  CUgraphNode last = p.Add(graph, join, p.Copy(1, 3));
  last = p.Add(graph, last, p.Copy(2, 4));
  p.Add(graph, last, p.Bump(5));
  p.Launch(Instantiate(graph), 2);
  p.Show("launched");
}

void Changes(Program& p) {
  CUgraph graph = NewGraph();
  CUcontext context;
  cuCtxGetCurrent(&context);
  CUgraphNode all[kBuffers];
  CUgraphNode last = nullptr;
  for (int i = 0; i < kBuffers; ++i) last = all[i] = p.Add(graph, last, p.Bump(i));
  const CUgraphNode copy = p.Add(graph, last, p.Copy(0, 1));
  const CUgraphNode set = p.Add(graph, copy, p.Set(2, 99, 4, false));
  const CUgraphExec runnable = Instantiate(graph);
  p.Launch(runnable);
  p.Show("as made");
  const CUDA_KERNEL_NODE_PARAMS kernel = p.Bump(5);
  CHECK(cuGraphExecKernelNodeSetParams(runnable, all[0], &kernel));
  p.Launch(runnable);
  p.Show("kernel changed");
  const CUDA_MEMCPY3D other_copy = p.Copy(5, 4);
  CHECK(cuGraphExecMemcpyNodeSetParams(runnable, copy, &other_copy, context));
  p.Launch(runnable);
  p.Show("copy changed");
  const CUDA_MEMSET_NODE_PARAMS other_set = p.Set(3, 77, 4, false);
  CHECK(cuGraphExecMemsetNodeSetParams(runnable, set, &other_set, context));
  p.Launch(runnable);
  p.Show("set changed");
  CHECK(cuGraphNodeSetEnabled(runnable, all[1], 0));
  CHECK(cuGraphNodeSetEnabled(runnable, set, 0));
  p.Launch(runnable);
  p.Show("nodes disabled");
  CHECK(cuGraphNodeSetEnabled(runnable, all[1], 1));
  p.Launch(runnable);
  p.Show("node enabled");
  CUgraphNodeParams any = {};
  any.type = CU_GRAPH_NODE_TYPE_KERNEL;
  any.kernel.func = kernel.func;
  any.kernel.gridDimX = kernel.gridDimX / 2;
  any.kernel.gridDimY = any.kernel.gridDimZ = any.kernel.blockDimY = any.kernel.blockDimZ = 1;
  any.kernel.blockDimX = kernel.blockDimX;
  any.kernel.kernelParams = kernel.kernelParams;
  CHECK(cuGraphExecNodeSetParams(runnable, all[2], &any));
  p.Launch(runnable);
  p.Show("any node changed");
}

void Packed(Program& p) {
  CUgraph graph = NewGraph();
  CUgraphNode first = nullptr, last = nullptr;
  for (int i = 0; i < kBuffers; ++i) {
    last = p.Add(graph, last, p.PackedBump(i));
    if (i == 0) first = last;
  }
  const CUgraphExec runnable = Instantiate(graph);
  p.Launch(runnable, 2);
  p.Show("as made");
  const CUDA_KERNEL_NODE_PARAMS other = p.PackedBump(5);
  CHECK(cuGraphExecKernelNodeSetParams(runnable, first, &other));
  p.Launch(runnable, 2);
  p.Show("kernel changed");
}

void Updates(Program& p) {
  CUgraph first = NewGraph(), second = NewGraph();
  CUgraphNode last = nullptr, others = nullptr, kept = nullptr;
  for (int i = 0; i < kBuffers; ++i) {
    last = p.Add(first, last, p.Bump(i));
    if (i == 0) kept = last;
    others = p.Add(second, others, p.Bump(i / 2));
  }
  const CUgraphExec runnable = Instantiate(first);
  p.Launch(runnable);
  p.Show("as made");
  CUgraphExecUpdateResultInfo info;
  CHECK(cuGraphExecUpdate(runnable, second, &info));
  p.Launch(runnable);
  p.Show("updated");
  CHECK(cuGraphExecUpdate(runnable, first, &info));
  p.Launch(runnable);
  p.Show("updated back");
  CHECK(cuGraphExecUpdate(runnable, second, &info));
  const CUDA_KERNEL_NODE_PARAMS kernel = p.Bump(5);
  CHECK(cuGraphExecKernelNodeSetParams(runnable, kept, &kernel));
  p.Launch(runnable);
  p.Show("updated and changed by a node of the first");
}

void Children(Program& p) {
  CUgraph inner = NewGraph(), middle = NewGraph(), outer = NewGraph();
  CUgraphNode node, last = p.Add(inner, nullptr, p.Bump(4));
  p.Add(inner, last, p.Copy(4, 5));
  last = p.Add(middle, nullptr, p.Bump(2));
  CHECK(cuGraphAddChildGraphNode(&node, middle, &last, 1, inner));
  p.Add(middle, node, p.Bump(3));
  last = p.Add(outer, nullptr, p.Bump(0));
  CHECK(cuGraphAddChildGraphNode(&node, outer, &last, 1, middle));
  p.Add(outer, node, p.Copy(5, 1));
  const CUgraphExec runnable = Instantiate(outer);
  p.Launch(runnable, 2);
  p.Show("launched");
  CUgraph other = NewGraph();
  CUgraph other_inner = NewGraph();
  last = p.Add(other_inner, nullptr, p.Bump(1));
  p.Add(other_inner, last, p.Copy(4, 5));
  CUgraphNode inside;
  last = p.Add(other, nullptr, p.Bump(2));
  CHECK(cuGraphAddChildGraphNode(&inside, other, &last, 1, other_inner));
  p.Add(other, inside, p.Bump(3));
  CHECK(cuGraphExecChildGraphNodeSetParams(runnable, node, other));
  p.Launch(runnable, 2);
  p.Show("child changed");
}

// A copy node reads pageable memory when it runs, not when it is launched.
void Pageable(Program& p) {
  static std::vector<unsigned> host(kCount, 1);
  CUgraph graph = NewGraph();
  CUDA_MEMCPY3D from_host = p.Copy(0, 0);
  from_host.srcMemoryType = CU_MEMORYTYPE_HOST;
  from_host.srcHost = host.data();
  CUgraphNode last = p.Add(graph, nullptr, from_host);
  for (int i = 0; i < kBuffers; ++i) last = p.Add(graph, last, p.Bump(i));
  const CUgraphExec runnable = Instantiate(graph);
  CHECK(cuLaunchHostFunc(
      p.stream, [](void*) { std::fill(host.begin(), host.end(), 1000); }, nullptr));
  p.Launch(runnable);
  p.Show("host memory changed in stream order");
}

void Recorded(Program& p) {
  CUgraph graph = NewGraph(), outer;
  CUgraphNode last = nullptr;
  for (int i = 0; i < kBuffers; ++i) last = p.Add(graph, last, p.Bump(i));
  const CUgraphExec runnable = Instantiate(graph);
  CHECK(cuStreamBeginCapture(p.stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  CHECK(cuGraphLaunch(runnable, p.stream));
  CHECK(cuStreamEndCapture(p.stream, &outer));
  p.Show("recorded only");
  p.Launch(Instantiate(outer));
  p.Show("launched");
  CUDA_GRAPH_INSTANTIATE_PARAMS params = {};
  CUgraphExec third;
  CHECK(cuGraphInstantiateWithParams(&third, outer, &params));
  p.Launch(third);
  p.Show("launched once more");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  std::stringstream ptx;
  ptx << std::ifstream(argv[1]).rdbuf();
  CUcontext context;
  CUmodule module;
  Program program;
  CHECK(cuInit(0));
  CHECK(cuDevicePrimaryCtxRetain(&context, 0));
  CHECK(cuCtxSetCurrent(context));
  CHECK(cuModuleLoadData(&module, ptx.str().c_str()));
  CHECK(cuModuleGetFunction(&program.bump, module, "Bump"));
  CHECK(cuStreamCreate(&program.stream, CU_STREAM_NON_BLOCKING));
  for (int i = 0; i < kBuffers; ++i) {
    CHECK(cuMemAlloc(&program.buffer[i], kBytes));
    CHECK(cuMemsetD32(program.buffer[i], static_cast<unsigned>(i * 100), kCount));
  }
  CHECK(cuCtxSynchronize());
  const struct {
    const char* name;
    void (*run)(Program&);
  } kCases[] = {{"kinds", Kinds},       {"order", Order},       {"changes", Changes},
                {"updates", Updates},   {"children", Children}, {"pageable", Pageable},
                {"recorded", Recorded}, {"packed", Packed}};
  for (const auto& one : kCases) {
    if (strcmp(argv[2], one.name) == 0) one.run(program);
  }
  return 0;
}
