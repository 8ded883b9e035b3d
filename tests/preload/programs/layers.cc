// SPDX-License-Identifier: Apache-2.0
// A program of layers: each pass launches Bump(values, count) once for every layer, in order.
//   layers PTX MEMORY LAUNCH
// MEMORY: how the layers' memory is got. LAUNCH: how a pass is submitted. Prints the time of each
// pass on the device, and at the end a checksum of all layers: "ms 1.25", "sum 123".
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace {

constexpr size_t kLayers = 12, kBytes = 2u << 20, kPasses = 6;
constexpr unsigned kCount = kBytes / 4;

void Check(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  const char* name = "?";
  cuGetErrorName(result, &name);
  printf("FAIL %s: %s\n", what, name);
  exit(result == CUDA_ERROR_OUT_OF_MEMORY ? 2 : 1);
}
#define CHECK(call) Check(call, #call)

// --- memory

CUmemAllocationProp OnDevice() {
  CUmemAllocationProp prop = {};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
  return prop;
}

void MapNew(CUdeviceptr address, size_t bytes) {
  const CUmemAllocationProp prop = OnDevice();
  CUmemAccessDesc access = {};
  access.location = prop.location;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  CUmemGenericAllocationHandle handle;
  CHECK(cuMemCreate(&handle, bytes, &prop, 0));
  CHECK(cuMemMap(address, bytes, 0, handle, 0));
  CHECK(cuMemSetAccess(address, bytes, &access, 1));
  CHECK(cuMemRelease(handle));  // the mapping keeps it
}

std::vector<CUdeviceptr> Layers(const std::string& way, CUstream stream) {
  std::vector<CUdeviceptr> layers(kLayers);
  CUdeviceptr range = 0;
  if (way == "range") CHECK(cuMemAddressReserve(&range, size_t{1} << 30, 0, 0, 0));
  CUmemoryPool pool = nullptr;
  if (way == "pool") {
    CUmemPoolProps props = {};
    props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    props.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
    CHECK(cuMemPoolCreate(&pool, &props));
  }
  for (size_t i = 0; i < kLayers; ++i) {
    if (way == "plain") CHECK(cuMemAlloc(&layers[i], kBytes));
    if (way == "async") CHECK(cuMemAllocAsync(&layers[i], kBytes, stream));
    if (way == "pool") CHECK(cuMemAllocFromPoolAsync(&layers[i], kBytes, pool, stream));
    if (way == "range") layers[i] = range + i * kBytes;
    if (way == "ranges") CHECK(cuMemAddressReserve(&layers[i], kBytes, 0, 0, 0));
    if (way == "range" || way == "ranges") MapNew(layers[i], kBytes);
    CHECK(cuMemsetD32Async(layers[i], static_cast<unsigned>(i), kCount, stream));
  }
  return layers;
}

// --- launches

struct Kernel {
  CUfunction function;
  std::string way;
  void Launch(CUdeviceptr layer, CUstream stream) const {
    unsigned count = kCount;
    void* arguments[] = {&layer, &count};
    if (way == "ex") return LaunchEx(arguments, stream);
    if (way == "packed") return LaunchPacked(layer, stream);
    CHECK(cuLaunchKernel(function, kCount / 256, 1, 1, 256, 1, 1, 0, stream, arguments, nullptr));
  }
  void LaunchEx(void** arguments, CUstream stream) const {
    CUlaunchConfig config = {};
    config.gridDimX = kCount / 256;
    config.gridDimY = config.gridDimZ = config.blockDimY = config.blockDimZ = 1;
    config.blockDimX = 256;
    config.hStream = stream;
    CHECK(cuLaunchKernelEx(&config, function, arguments, nullptr));
  }
  void LaunchPacked(CUdeviceptr layer, CUstream stream) const {
    struct {
      CUdeviceptr layer;
      unsigned count;
    } packed = {layer, kCount};
    size_t bytes = sizeof packed;
    void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                     CU_LAUNCH_PARAM_END};
    CHECK(cuLaunchKernel(function, kCount / 256, 1, 1, 256, 1, 1, 0, stream, nullptr, extra));
  }
  void AddTo(CUgraph graph, CUdeviceptr layer, CUgraphNode* last) const {
    unsigned count = kCount;
    void* arguments[] = {&layer, &count};
    CUDA_KERNEL_NODE_PARAMS params = {};
    params.func = function;
    params.gridDimX = kCount / 256;
    params.gridDimY = params.gridDimZ = params.blockDimY = params.blockDimZ = 1;
    params.blockDimX = 256;
    params.kernelParams = arguments;
    CUgraphNode node;
    CHECK(cuGraphAddKernelNode(&node, graph, last, *last != nullptr, &params));
    *last = node;
  }
};

CUgraph Captured(const Kernel& kernel, const std::vector<CUdeviceptr>& layers, CUstream stream) {
  CUgraph graph;
  CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  for (CUdeviceptr layer : layers) kernel.Launch(layer, stream);
  CHECK(cuStreamEndCapture(stream, &graph));
  return graph;
}

CUgraph OfNodes(const Kernel& kernel, const std::vector<CUdeviceptr>& layers) {
  CUgraph graph;
  CUgraphNode last = nullptr;
  CHECK(cuGraphCreate(&graph, 0));
  for (CUdeviceptr layer : layers) kernel.AddTo(graph, layer, &last);
  return graph;
}

// The second half of the layers in a child graph.
CUgraph WithChild(const Kernel& kernel, const std::vector<CUdeviceptr>& layers) {
  const std::vector<CUdeviceptr> first(layers.begin(), layers.begin() + kLayers / 2);
  const std::vector<CUdeviceptr> second(layers.begin() + kLayers / 2, layers.end());
  CUgraph graph, child = OfNodes(kernel, second);
  CUgraphNode last = nullptr, node;
  CHECK(cuGraphCreate(&graph, 0));
  for (CUdeviceptr layer : first) kernel.AddTo(graph, layer, &last);
  CHECK(cuGraphAddChildGraphNode(&node, graph, &last, 1, child));
  return graph;
}

CUgraphExec Instantiate(CUgraph graph) {
  CUgraphExec runnable;
  CHECK(cuGraphInstantiate(&runnable, graph, 0));
  return runnable;
}

// Made for the layers in reverse, then told to take them in order.
CUgraphExec Updated(const Kernel& kernel, const std::vector<CUdeviceptr>& layers, CUstream stream) {
  const std::vector<CUdeviceptr> reversed(layers.rbegin(), layers.rend());
  const CUgraphExec runnable = Instantiate(OfNodes(kernel, reversed));
  CUgraphExecUpdateResultInfo info;
  CHECK(cuGraphExecUpdate(runnable, Captured(kernel, layers, stream), &info));
  return runnable;
}

// Ends with a host function, which cannot be launched by itself in our place.
CUgraph WithHostNode(const Kernel& kernel, const std::vector<CUdeviceptr>& layers) {
  static int calls = 0;
  CUgraph graph = OfNodes(kernel, layers);
  CUDA_HOST_NODE_PARAMS params = {[](void* count) { ++*static_cast<int*>(count); }, &calls};
  CUgraphNode node;
  CHECK(cuGraphAddHostNode(&node, graph, nullptr, 0, &params));
  return graph;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 3;
  const std::string memory = argv[2], launch = argv[3];
  std::stringstream ptx;
  ptx << std::ifstream(argv[1]).rdbuf();
  CUdevice device;
  CUcontext context;
  CUmodule module;
  CUstream stream;
  Kernel kernel;
  CUevent begin, end;
  CHECK(cuInit(0));
  CHECK(cuDeviceGet(&device, 0));
  CHECK(cuDevicePrimaryCtxRetain(&context, device));
  CHECK(cuCtxSetCurrent(context));
  kernel.way = launch;
  if (launch == "library") {  // as NVIDIA's runtime has its kernels since 12.0
    CUlibrary library;
    CUkernel of_library;
    CHECK(cuLibraryLoadData(&library, ptx.str().c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0));
    CHECK(cuLibraryGetKernel(&of_library, library, "Bump"));
    kernel.function = reinterpret_cast<CUfunction>(of_library);
  } else {
    CHECK(cuModuleLoadData(&module, ptx.str().c_str()));
    CHECK(cuModuleGetFunction(&kernel.function, module, "Bump"));
  }
  CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CHECK(cuEventCreate(&begin, 0));
  CHECK(cuEventCreate(&end, 0));
  const std::vector<CUdeviceptr> layers = Layers(memory, stream);
  CUgraphExec graph = nullptr;
  if (launch == "captured") graph = Instantiate(Captured(kernel, layers, stream));
  if (launch == "nodes") graph = Instantiate(OfNodes(kernel, layers));
  if (launch == "child") graph = Instantiate(WithChild(kernel, layers));
  if (launch == "updated") graph = Updated(kernel, layers, stream);
  if (launch == "host") graph = Instantiate(WithHostNode(kernel, layers));
  for (size_t pass = 0; pass < kPasses; ++pass) {
    CHECK(cuEventRecord(begin, stream));
    if (graph != nullptr) {
      CHECK(cuGraphLaunch(graph, stream));
    } else {
      for (CUdeviceptr layer : layers) kernel.Launch(layer, stream);
    }
    CHECK(cuEventRecord(end, stream));
    CHECK(cuStreamSynchronize(stream));
    float ms = 0;
    CHECK(cuEventElapsedTime(&ms, begin, end));
    printf("ms %.4f\n", static_cast<double>(ms));
  }
  unsigned long long sum = 0;
  std::vector<unsigned> values(kCount);
  for (CUdeviceptr layer : layers) {
    CHECK(cuMemcpyDtoH(values.data(), layer, kBytes));
    for (unsigned value : values) sum = sum * 31 + value;
  }
  printf("sum %llu\n", sum);
  return 0;
}
