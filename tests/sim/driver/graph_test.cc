// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <cstring>
#include <thread>

#include "tests/sim/driver/driver_test_support.h"

namespace atp::sim {
namespace {

constexpr int kCount = 256;

class Graphs : public DriverTest {
 protected:
  void SetUp() override {
    DriverTest::SetUp();
    ASSERT_CUDA(cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING));
    ASSERT_CUDA(cuGraphCreate(&graph_, 0));
    buffer_ = Alloc(kCount * sizeof(int));
    ASSERT_CUDA(cuMemsetD32(buffer_, 0, kCount));
  }
  CUgraphNode AddIncrement(CUgraph graph, std::vector<CUgraphNode> after = {}) {
    CUgraphNode node = nullptr;
    void* arguments[] = {&buffer_, &count_};
    CUDA_KERNEL_NODE_PARAMS params{};
    params.func = Function("Increment");
    params.gridDimX = 2;
    params.gridDimY = params.gridDimZ = 1;
    params.blockDimX = 128;
    params.blockDimY = params.blockDimZ = 1;
    params.kernelParams = arguments;
    EXPECT_CUDA(cuGraphAddKernelNode(&node, graph, after.data(), after.size(), &params));
    return node;
  }
  CUgraphNode AddSet(CUgraph graph, unsigned value) {
    CUgraphNode node = nullptr;
    CUDA_MEMSET_NODE_PARAMS params{};
    params.dst = buffer_;
    params.elementSize = 4;
    params.value = value;
    params.width = kCount;
    params.height = 1;
    EXPECT_CUDA(cuGraphAddMemsetNode(&node, graph, nullptr, 0, &params, context_));
    return node;
  }
  CUgraphExec Instantiate(CUgraph graph) {
    CUgraphExec exec = nullptr;
    EXPECT_CUDA(cuGraphInstantiate(&exec, graph, 0));
    return exec;
  }
  void LaunchAndWait(CUgraphExec exec) {
    ASSERT_CUDA(cuGraphLaunch(exec, stream_));
    ASSERT_CUDA(cuStreamSynchronize(stream_));
  }
  int First() { return ReadInts(buffer_, 1)[0]; }

  CUstream stream_ = nullptr;
  CUgraph graph_ = nullptr;
  CUdeviceptr buffer_ = 0;
  int count_ = kCount;
};

TEST_F(Graphs, NodesRunInOrderOfTheirEdgesNotOfTheirCreation) {
  const CUgraphNode increment = AddIncrement(graph_);
  const CUgraphNode set = AddSet(graph_, 10);
  ASSERT_CUDA(cuGraphAddDependencies(graph_, &set, &increment, nullptr, 1));
  const CUgraphExec exec = Instantiate(graph_);
  LaunchAndWait(exec);
  EXPECT_EQ(ReadInts(buffer_, kCount), std::vector<int>(kCount, 11));
  LaunchAndWait(exec);
  EXPECT_EQ(First(), 11);
  EXPECT_CUDA(cuGraphExecDestroy(exec));
  EXPECT_CUDA(cuGraphDestroy(graph_));
}

TEST_F(Graphs, ACycleCannotBeInstantiated) {
  const CUgraphNode first = AddIncrement(graph_);
  const CUgraphNode second = AddIncrement(graph_, {first});
  ASSERT_CUDA(cuGraphAddDependencies(graph_, &second, &first, nullptr, 1));
  CUgraphExec exec = nullptr;
  EXPECT_RESULT(CUDA_ERROR_INVALID_VALUE, cuGraphInstantiate(&exec, graph_, 0));
}

TEST_F(Graphs, TheStructureCanBeAskedFor) {
  const CUgraphNode first = AddIncrement(graph_);
  const CUgraphNode second = AddIncrement(graph_, {first});
  size_t count = 0;
  ASSERT_CUDA(cuGraphGetNodes(graph_, nullptr, &count));
  EXPECT_EQ(count, 2u);
  CUgraphNode roots[3] = {second, second, second};
  count = 3;
  ASSERT_CUDA(cuGraphGetRootNodes(graph_, roots, &count));
  EXPECT_EQ(count, 1u);
  EXPECT_EQ(roots[0], first);
  EXPECT_EQ(roots[1], nullptr);
  CUgraphNode from = nullptr, to = nullptr;
  count = 1;
  ASSERT_CUDA(cuGraphGetEdges(graph_, &from, &to, nullptr, &count));
  EXPECT_EQ(from, first);
  EXPECT_EQ(to, second);
  CUgraphNodeType type;
  ASSERT_CUDA(cuGraphNodeGetType(first, &type));
  EXPECT_EQ(type, CU_GRAPH_NODE_TYPE_KERNEL);
  CUgraphNode dependent = nullptr;
  count = 1;
  ASSERT_CUDA(cuGraphNodeGetDependentNodes(first, &dependent, nullptr, &count));
  EXPECT_EQ(dependent, second);
  ASSERT_CUDA(cuGraphDestroyNode(first));
  count = 0;
  ASSERT_CUDA(cuGraphNodeGetDependencies(second, nullptr, nullptr, &count));
  EXPECT_EQ(count, 0u);
}

TEST_F(Graphs, CopiesHostFunctionsAndChildrenRun) {
  CUgraph child = nullptr;
  ASSERT_CUDA(cuGraphCreate(&child, 0));
  AddIncrement(child);
  const CUgraphNode set = AddSet(graph_, 5);
  CUgraphNode node = nullptr, copy = nullptr, host = nullptr;
  ASSERT_CUDA(cuGraphAddChildGraphNode(&node, graph_, &set, 1, child));
  std::vector<int> back(kCount);
  CUDA_MEMCPY3D params{};
  params.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  params.srcDevice = buffer_;
  params.dstMemoryType = CU_MEMORYTYPE_HOST;
  params.dstHost = back.data();
  params.WidthInBytes = kCount * sizeof(int);
  params.Height = params.Depth = 1;
  ASSERT_CUDA(cuGraphAddMemcpyNode(&copy, graph_, &node, 1, &params, context_));
  static int seen;
  seen = 0;
  CUDA_HOST_NODE_PARAMS host_params{
      [](void* values) { seen = static_cast<int*>(values)[kCount - 1]; }, back.data()};
  ASSERT_CUDA(cuGraphAddHostNode(&host, graph_, &copy, 1, &host_params));
  ASSERT_CUDA(cuGraphDestroy(child));  // the node has its own copy
  LaunchAndWait(Instantiate(graph_));
  EXPECT_EQ(seen, 6);
}

TEST_F(Graphs, ParametersOfNodesCanBeReadAndChanged) {
  const CUgraphNode node = AddIncrement(graph_);
  CUDA_KERNEL_NODE_PARAMS params{};
  ASSERT_CUDA(cuGraphKernelNodeGetParams(node, &params));
  EXPECT_EQ(params.gridDimX, 2u);
  EXPECT_EQ(*static_cast<CUdeviceptr*>(params.kernelParams[0]), buffer_);
  const CUgraphExec exec = Instantiate(graph_);
  CUdeviceptr other = Alloc(kCount * sizeof(int));
  ASSERT_CUDA(cuMemsetD32(other, 100, kCount));
  void* arguments[] = {&other, &count_};
  params.kernelParams = arguments;
  ASSERT_CUDA(cuGraphExecKernelNodeSetParams(exec, node, &params));
  LaunchAndWait(exec);
  EXPECT_EQ(First(), 0);
  EXPECT_EQ(ReadInts(other, 1)[0], 101);
  ASSERT_CUDA(cuGraphNodeSetEnabled(exec, node, 0));
  LaunchAndWait(exec);
  EXPECT_EQ(ReadInts(other, 1)[0], 101);
}

TEST_F(Graphs, AnUpdateTakesParametersOfAGraphOfTheSameShape) {
  AddSet(graph_, 1);
  const CUgraphExec exec = Instantiate(graph_);
  CUgraph same = nullptr, other = nullptr;
  ASSERT_CUDA(cuGraphCreate(&same, 0));
  ASSERT_CUDA(cuGraphCreate(&other, 0));
  AddSet(same, 2);
  AddIncrement(other);
  CUgraphExecUpdateResultInfo info;
  ASSERT_CUDA(cuGraphExecUpdate(exec, same, &info));
  EXPECT_EQ(info.result, CU_GRAPH_EXEC_UPDATE_SUCCESS);
  LaunchAndWait(exec);
  EXPECT_EQ(First(), 2);
  EXPECT_RESULT(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, cuGraphExecUpdate(exec, other, &info));
  EXPECT_EQ(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED);
  AddSet(same, 3);
  EXPECT_RESULT(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, cuGraphExecUpdate(exec, same, &info));
  EXPECT_EQ(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
}

TEST_F(Graphs, ACloneIsIndependent) {
  const CUgraphNode node = AddSet(graph_, 1);
  CUgraph clone = nullptr;
  ASSERT_CUDA(cuGraphClone(&clone, graph_));
  CUgraphNode found = nullptr;
  ASSERT_CUDA(cuGraphNodeFindInClone(&found, node, clone));
  EXPECT_NE(found, node);
  ASSERT_CUDA(cuGraphDestroy(graph_));
  LaunchAndWait(Instantiate(clone));
  EXPECT_EQ(First(), 1);
}

TEST_F(Graphs, MemoryOfAGraphLivesAsLongAsTheGraph) {
  CUDA_MEM_ALLOC_NODE_PARAMS allocation{};
  allocation.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  allocation.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  allocation.bytesize = 1 << 20;
  CUgraphNode alloc = nullptr, set = nullptr, release = nullptr;
  ASSERT_CUDA(cuGraphAddMemAllocNode(&alloc, graph_, nullptr, 0, &allocation));
  ASSERT_NE(allocation.dptr, 0u);
  CUDA_MEMSET_NODE_PARAMS params{};
  params.dst = allocation.dptr;
  params.elementSize = 1;
  params.width = 1 << 20;
  params.height = 1;
  ASSERT_CUDA(cuGraphAddMemsetNode(&set, graph_, &alloc, 1, &params, context_));
  ASSERT_CUDA(cuGraphAddMemFreeNode(&release, graph_, &set, 1, allocation.dptr));
  const CUgraphExec exec = Instantiate(graph_);
  LaunchAndWait(exec);
  LaunchAndWait(exec);
  const auto bytes = [&](CUgraphMem_attribute attribute) {
    cuuint64_t value = 0;
    EXPECT_CUDA(cuDeviceGetGraphMemAttribute(device_, attribute, &value));
    return value;
  };
  EXPECT_EQ(bytes(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT), 1u << 20);
  EXPECT_CUDA(cuGraphExecDestroy(exec));
  EXPECT_CUDA(cuGraphDestroy(graph_));
  EXPECT_CUDA(cuDeviceGraphMemTrim(device_));
  EXPECT_EQ(bytes(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT), 0u);
  EXPECT_EQ(bytes(CU_GRAPH_MEM_ATTR_USED_MEM_HIGH), 1u << 20);
  cuuint64_t none = 0;
  EXPECT_CUDA(cuDeviceSetGraphMemAttribute(device_, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, &none));
  EXPECT_EQ(bytes(CU_GRAPH_MEM_ATTR_USED_MEM_HIGH), 0u);
  EXPECT_RESULT(CUDA_ERROR_INVALID_VALUE,
                cuDeviceSetGraphMemAttribute(device_, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &none));
  CUdeviceptr base = 0;
  EXPECT_RESULT(CUDA_ERROR_NOT_FOUND, cuMemGetAddressRange(&base, nullptr, allocation.dptr));
}

TEST_F(Graphs, UserObjectsAreDestroyedWithTheirLastGraph) {
  static int destroyed;
  destroyed = 0;
  CUuserObject object = nullptr;
  ASSERT_CUDA(cuUserObjectCreate(
      &object, &destroyed, [](void* count) { ++*static_cast<int*>(count); }, 1,
      CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
  ASSERT_CUDA(cuGraphRetainUserObject(graph_, object, 1, CU_GRAPH_USER_OBJECT_MOVE));
  EXPECT_EQ(destroyed, 0);
  ASSERT_CUDA(cuGraphDestroy(graph_));
  EXPECT_EQ(destroyed, 1);
}

// --- capture

TEST_F(Graphs, CaptureMakesNodesInsteadOfWork) {
  CUgraph captured = nullptr;
  ASSERT_CUDA(cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_GLOBAL));
  CUstreamCaptureStatus status;
  ASSERT_CUDA(cuStreamIsCapturing(stream_, &status));
  EXPECT_EQ(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
  ASSERT_CUDA(cuMemsetD32Async(buffer_, 4, kCount, stream_));
  ASSERT_CUDA(Launch("Increment", kCount, stream_, buffer_, kCount));
  ASSERT_CUDA(cuStreamEndCapture(stream_, &captured));
  EXPECT_EQ(First(), 0);
  LaunchAndWait(Instantiate(captured));
  EXPECT_EQ(First(), 5);
  size_t count = 0;
  ASSERT_CUDA(cuGraphGetNodes(captured, nullptr, &count));
  EXPECT_EQ(count, 2u);
}

TEST_F(Graphs, StreamsJoinACaptureByEventsAndMustComeBack) {
  CUstream other = nullptr;
  CUevent fork = nullptr, join = nullptr;
  CUgraph captured = nullptr;
  ASSERT_CUDA(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
  ASSERT_CUDA(cuEventCreate(&fork, CU_EVENT_DISABLE_TIMING));
  ASSERT_CUDA(cuEventCreate(&join, CU_EVENT_DISABLE_TIMING));
  for (const bool joined : {true, false}) {
    ASSERT_CUDA(cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_GLOBAL));
    ASSERT_CUDA(cuMemsetD32Async(buffer_, 1, kCount, stream_));
    ASSERT_CUDA(cuEventRecord(fork, stream_));
    ASSERT_CUDA(cuStreamWaitEvent(other, fork, 0));
    ASSERT_CUDA(Launch("Increment", kCount, other, buffer_, kCount));
    if (!joined) {
      EXPECT_RESULT(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, cuStreamEndCapture(stream_, &captured));
      break;
    }
    ASSERT_CUDA(cuEventRecord(join, other));
    EXPECT_RESULT(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, cuStreamEndCapture(other, &captured));
    ASSERT_CUDA(cuStreamWaitEvent(stream_, join, 0));
    ASSERT_CUDA(cuStreamEndCapture(stream_, &captured));
    LaunchAndWait(Instantiate(captured));
    EXPECT_EQ(First(), 2);
  }
  CUstreamCaptureStatus status;
  ASSERT_CUDA(cuStreamIsCapturing(other, &status));
  EXPECT_EQ(status, CU_STREAM_CAPTURE_STATUS_NONE);
}

TEST_F(Graphs, UnsafeCallsInvalidateAGlobalCaptureAlsoFromOtherThreads) {
  CUgraph captured = nullptr;
  CUdeviceptr address = 0;
  CUevent event = nullptr;
  ASSERT_CUDA(cuEventCreate(&event, 0));
  ASSERT_CUDA(cuEventRecord(event, stream_));
  ASSERT_CUDA(cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_GLOBAL));
  EXPECT_RESULT(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuMemAlloc(&address, 16));
  EXPECT_RESULT(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(stream_, &captured));
  ASSERT_CUDA(cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_GLOBAL));
  std::thread([&] {
    EXPECT_RESULT(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuEventQuery(event));
  }).join();
  EXPECT_RESULT(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
                Launch("Increment", kCount, stream_, buffer_, kCount));
  EXPECT_RESULT(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(stream_, &captured));
}

TEST_F(Graphs, ThreadLocalCapturesMindOnlyTheirOwnThread) {
  CUgraph captured = nullptr;
  CUdeviceptr address = 0;
  ASSERT_CUDA(cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  std::thread([&] {
    ASSERT_CUDA(cuCtxSetCurrent(context_));
    EXPECT_CUDA(cuMemAlloc(&address, 16));
  }).join();
  EXPECT_RESULT(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuMemAlloc(&address, 16));
  EXPECT_RESULT(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(stream_, &captured));
}

TEST_F(Graphs, AThreadInRelaxedModeMayDoWhatItLikes) {
  CUgraph captured = nullptr;
  CUdeviceptr address = 0;
  ASSERT_CUDA(cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_GLOBAL));
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  ASSERT_CUDA(cuThreadExchangeStreamCaptureMode(&mode));
  EXPECT_EQ(mode, CU_STREAM_CAPTURE_MODE_GLOBAL);
  EXPECT_CUDA(cuMemAlloc(&address, 16));
  ASSERT_CUDA(cuThreadExchangeStreamCaptureMode(&mode));
  EXPECT_CUDA(cuStreamEndCapture(stream_, &captured));
}

TEST_F(Graphs, APrefetchCannotBeCaptured) {
  const CUdeviceptr managed = AllocManaged(1 << 21);
  CUgraph captured = nullptr;
  ASSERT_CUDA(cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_RELAXED));
  EXPECT_RESULT(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                cuMemPrefetchAsync(managed, 1 << 21, {CU_MEM_LOCATION_TYPE_DEVICE, 0}, 0, stream_));
  EXPECT_RESULT(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(stream_, &captured));
  ASSERT_CUDA(cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_RELAXED));
  EXPECT_RESULT(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuStreamSynchronize(stream_));
  EXPECT_RESULT(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(stream_, &captured));
}

TEST_F(Graphs, TheLegacyStreamDisturbsCapturesOfBlockingStreams) {
  CUstream blocking = nullptr;
  CUgraph captured = nullptr;
  ASSERT_CUDA(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
  EXPECT_RESULT(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                cuStreamBeginCapture(CU_STREAM_LEGACY, CU_STREAM_CAPTURE_MODE_GLOBAL));
  ASSERT_CUDA(cuStreamBeginCapture(blocking, CU_STREAM_CAPTURE_MODE_RELAXED));
  EXPECT_RESULT(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, cuMemsetD32Async(buffer_, 1, kCount, nullptr));
  EXPECT_RESULT(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(blocking, &captured));
}

TEST_F(Graphs, EventsOfOutsideCannotBeWaitedForInside) {
  CUevent event = nullptr;
  CUgraph captured = nullptr;
  ASSERT_CUDA(cuEventCreate(&event, 0));
  ASSERT_CUDA(cuEventRecord(event, stream_));
  ASSERT_CUDA(cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_RELAXED));
  EXPECT_RESULT(CUDA_ERROR_STREAM_CAPTURE_ISOLATION, cuStreamWaitEvent(stream_, event, 0));
  EXPECT_RESULT(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(stream_, &captured));
}

TEST_F(Graphs, APictureOfAGraphHasItsNodesAndEdges) {
  CUgraph graph = nullptr;
  CUgraphNode first = nullptr, second = nullptr;
  const std::string path = TemporaryFile("dot");
  ASSERT_CUDA(cuGraphCreate(&graph, 0));
  ASSERT_CUDA(cuGraphAddEmptyNode(&first, graph, nullptr, 0));
  ASSERT_CUDA(cuGraphAddEmptyNode(&second, graph, &first, 1));
  ASSERT_CUDA(cuGraphDebugDotPrint(graph, path.c_str(), 0));
  const std::string text = ReadText(path);
  EXPECT_EQ(text.find("digraph"), 0u) << text;
  EXPECT_NE(text.find("n0 -> n1;"), std::string::npos) << text;
  EXPECT_EQ(text.find("n1 -> n0;"), std::string::npos) << text;
  EXPECT_RESULT(CUDA_ERROR_OPERATING_SYSTEM,
                cuGraphDebugDotPrint(graph, "/no/such/folder/file", 0));
  EXPECT_CUDA(cuGraphDestroy(graph));
  remove(path.c_str());
}

}  // namespace
}  // namespace atp::sim
