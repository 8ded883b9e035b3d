// SPDX-License-Identifier: Apache-2.0
#include "shim/graph_program.h"

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <set>
#include <thread>

#include "shim/functions.h"
#include "tests/shim/fake_real.h"

namespace atp::shim {
namespace {

// A graph behind the driver's calls: its nodes are numbers, each kernel has two words of arguments.
struct FakeGraph {
  struct Node {
    CUgraphNodeType type = CU_GRAPH_NODE_TYPE_KERNEL;
    std::vector<uintptr_t> after;
    uint64_t words[2] = {};
    CUmemorytype copy_from = CU_MEMORYTYPE_DEVICE;
  };
  std::map<uintptr_t, Node> nodes;  // by number, in order of creation
};
FakeGraph graph;

FakeGraph::Node& NodeOf(CUgraphNode node) {
  return graph.nodes.at(reinterpret_cast<uintptr_t>(node));
}
CUgraphNode Handle(uintptr_t number) { return reinterpret_cast<CUgraphNode>(number); }

class GraphProgramTest : public testing::Test {
 protected:
  GraphProgramTest() {
    FakeReal::Install();
    ForgetFunctions();
    graph = {};
    g_real.cuGraphGetNodes = [](CUgraph, CUgraphNode* nodes, size_t* count) {
      if (nodes == nullptr) return *count = graph.nodes.size(), CUDA_SUCCESS;
      for (const auto& [number, node] : graph.nodes) *nodes++ = Handle(number);
      return CUDA_SUCCESS;
    };
    g_real.cuGraphNodeGetType = [](CUgraphNode node, CUgraphNodeType* type) {
      return *type = NodeOf(node).type, CUDA_SUCCESS;
    };
    g_real.cuGraphNodeGetDependencies = [](CUgraphNode node, CUgraphNode* nodes, size_t* count) {
      const std::vector<uintptr_t>& after = NodeOf(node).after;
      if (nodes == nullptr) return *count = after.size(), CUDA_SUCCESS;
      for (uintptr_t number : after) *nodes++ = Handle(number);
      return CUDA_SUCCESS;
    };
    g_real.cuGraphKernelNodeGetParams_v2 = [](CUgraphNode node, CUDA_KERNEL_NODE_PARAMS* params) {
      static void* pointers[2];
      for (int i = 0; i < 2; ++i) pointers[i] = &NodeOf(node).words[i];
      *params = {};
      params->func = reinterpret_cast<CUfunction>(0x9000);
      params->kernelParams = pointers;
      return CUDA_SUCCESS;
    };
    g_real.cuGraphKernelNodeGetAttribute = [](CUgraphNode, CUkernelNodeAttrID,
                                              CUkernelNodeAttrValue*) { return CUDA_SUCCESS; };
    g_real.cuGraphMemcpyNodeGetParams = [](CUgraphNode node, CUDA_MEMCPY3D* copy) {
      *copy = {};
      copy->srcMemoryType = NodeOf(node).copy_from;
      copy->dstMemoryType = CU_MEMORYTYPE_DEVICE;
      return CUDA_SUCCESS;
    };
    g_real.cuPointerGetAttribute = [](void*, CUpointer_attribute, CUdeviceptr) {
      return CUDA_ERROR_INVALID_VALUE;  // host memory that the driver does not know is pageable
    };
    g_real.cuFuncGetParamInfo = [](CUfunction, size_t index, size_t* offset, size_t* bytes) {
      if (index >= 2) return CUDA_ERROR_INVALID_VALUE;
      *offset = 8 * index;
      *bytes = 8;
      return CUDA_SUCCESS;
    };
  }
  ~GraphProgramTest() override { ForgetFunctions(); }
};

TEST_F(GraphProgramTest, StepsComeAfterWhatTheyDependOnWhateverTheOrderOfCreation) {
  graph.nodes[1].after = {3};
  graph.nodes[2].after = {1, 3};
  graph.nodes[3];
  const auto program = ReadGraph(nullptr);
  ASSERT_EQ(program->steps.size(), 3u);
  EXPECT_EQ(program->why_whole, nullptr);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(program->steps[i].node, Handle(std::vector{3, 1, 2}[i]));
}

TEST_F(GraphProgramTest, ArgumentsAreCopiesThatOutliveTheGraph) {
  graph.nodes[1].words[1] = 77;
  const auto program = ReadGraph(nullptr);
  graph.nodes[1].words[1] = 0;
  const GraphStep& step = program->steps.at(0);
  EXPECT_EQ(*static_cast<uint64_t*>(step.kernel.kernelParams[1]), 77u);
}

TEST_F(GraphProgramTest, WhatCannotBeLaunchedByItselfIsSaid) {
  graph.nodes[1];
  graph.nodes[2].type = CU_GRAPH_NODE_TYPE_HOST;
  EXPECT_NE(ReadGraph(nullptr)->why_whole, nullptr);
  graph.nodes[2].type = CU_GRAPH_NODE_TYPE_MEMCPY;
  EXPECT_EQ(ReadGraph(nullptr)->why_whole, nullptr);
  graph.nodes[2].copy_from = CU_MEMORYTYPE_HOST;
  EXPECT_NE(ReadGraph(nullptr)->why_whole, nullptr) << "pageable memory is read when it runs";
  g_real.cuGraphGetNodes = nullptr;
  EXPECT_NE(ReadGraph(nullptr)->why_whole, nullptr);
}

TEST_F(GraphProgramTest, AChangeReachesItsStepAndOneThatIsNotUnderstoodIsRemembered) {
  const auto exec = reinterpret_cast<CUgraphExec>(0x5000);
  graph.nodes[1];
  NoteGraph(exec, ReadGraph(nullptr));
  ChangeStep(exec, Handle(1), [](GraphStep* step) { return step->enabled = false, true; });
  EXPECT_FALSE(ProgramOf(exec)->steps[0].enabled);
  EXPECT_EQ(ProgramOf(exec)->why_whole, nullptr);
  ChangeStep(exec, Handle(9), [](GraphStep*) { return true; });
  EXPECT_NE(ProgramOf(exec)->why_whole, nullptr);
  UpdateGraph(exec, nullptr);
  EXPECT_EQ(ProgramOf(exec)->why_whole, nullptr) << "read again";
  ForgetGraph(exec);
  EXPECT_EQ(ProgramOf(exec), nullptr);
}

TEST_F(GraphProgramTest, ThreadsMayHaveGraphsOfTheirOwn) {
  graph.nodes[1].type = CU_GRAPH_NODE_TYPE_EMPTY;
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (uintptr_t i = 1; i <= 4; ++i) {
    threads.emplace_back([&, i] {
      for (uintptr_t k = 0; k < 500; ++k) {
        const auto exec = reinterpret_cast<CUgraphExec>(0x10000 * i + k);
        NoteGraph(exec, ReadGraph(nullptr));
        ChangeStep(exec, Handle(1), [](GraphStep* step) { return step->enabled = false, true; });
        const auto program = ProgramOf(exec);
        wrong += program == nullptr || program->steps[0].enabled;
        ForgetGraph(exec);
        wrong += ProgramOf(exec) != nullptr;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace atp::shim
