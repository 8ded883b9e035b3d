// SPDX-License-Identifier: Apache-2.0
// Graphs: one captured from streams that fork and join, launched often; one built node by node,
// then updated.
#include "tests/programs/program.h"

using namespace program;  // NOLINT

constexpr int kCount = 10000, kLaunches = 5;

__global__ void ScaleBy(const float* in, float* out, float factor) {
  COUNT_LAUNCH();
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < kCount) out[i] = in[i] * factor;
}

__global__ void AddTo(float* sum, const float* a, const float* b) {
  COUNT_LAUNCH();
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < kCount) sum[i] += a[i] + b[i];
}

// sum += 2 x + 3 x, the two products in parallel branches.
void RunCaptured(float* x, float* a, float* b, float* sum) {
  cudaStream_t main_stream, side;
  cudaEvent_t fork, join;
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  CUDA_OK(cudaStreamCreateWithFlags(&main_stream, cudaStreamNonBlocking));
  CUDA_OK(cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking));
  CUDA_OK(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
  CUDA_OK(cudaEventCreateWithFlags(&join, cudaEventDisableTiming));
  CUDA_OK(cudaStreamBeginCapture(main_stream, cudaStreamCaptureModeGlobal));
  CUDA_OK(cudaEventRecord(fork, main_stream));
  CUDA_OK(cudaStreamWaitEvent(side, fork, 0));
  ScaleBy<<<Blocks(kCount, 256), 256, 0, main_stream>>>(x, a, 2.0f);
  ScaleBy<<<Blocks(kCount, 256), 256, 0, side>>>(x, b, 3.0f);
  CUDA_OK(cudaEventRecord(join, side));
  CUDA_OK(cudaStreamWaitEvent(main_stream, join, 0));
  AddTo<<<Blocks(kCount, 256), 256, 0, main_stream>>>(sum, a, b);
  CUDA_OK(cudaStreamEndCapture(main_stream, &graph));
  size_t nodes = 0;
  CUDA_OK(cudaGraphGetNodes(graph, nullptr, &nodes));
  EXPECT(nodes == 3);
  CUDA_OK(cudaGraphInstantiate(&exec, graph, 0));
  for (int i = 0; i < kLaunches; ++i) CUDA_OK(cudaGraphLaunch(exec, main_stream));
  CUDA_OK(cudaStreamSynchronize(main_stream));
  CUDA_OK(cudaGraphExecDestroy(exec));
  CUDA_OK(cudaGraphDestroy(graph));
  CUDA_OK(cudaEventDestroy(fork));
  CUDA_OK(cudaEventDestroy(join));
  CUDA_OK(cudaStreamDestroy(main_stream));
  CUDA_OK(cudaStreamDestroy(side));
}

// Set, copy, kernel; then the kernel's factor is changed in the instance.
void RunBuilt(const std::vector<float>& host, float* in, float* out, std::vector<float>* result) {
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  cudaGraphNode_t set, copy, kernel, back;
  CUDA_OK(cudaGraphCreate(&graph, 0));
  cudaMemsetParams set_params = {};
  set_params.dst = out;
  set_params.elementSize = 4;
  set_params.width = kCount;
  set_params.height = 1;
  CUDA_OK(cudaGraphAddMemsetNode(&set, graph, nullptr, 0, &set_params));
  CUDA_OK(cudaGraphAddMemcpyNode1D(&copy, graph, &set, 1, in, host.data(), kCount * sizeof(float),
                                   cudaMemcpyHostToDevice));
  float factor = 4.0f;
  void* arguments[] = {&in, &out, &factor};
  cudaKernelNodeParams params = {};
  params.func = reinterpret_cast<void*>(ScaleBy);
  params.gridDim = Blocks(kCount, 256);
  params.blockDim = 256;
  params.kernelParams = arguments;
  CUDA_OK(cudaGraphAddKernelNode(&kernel, graph, &copy, 1, &params));
  result->assign(kCount, 0);
  CUDA_OK(cudaGraphAddMemcpyNode1D(&back, graph, &kernel, 1, result->data(), out,
                                   kCount * sizeof(float), cudaMemcpyDeviceToHost));
  CUDA_OK(cudaGraphInstantiate(&exec, graph, 0));
  CUDA_OK(cudaGraphLaunch(exec, nullptr));
  CUDA_OK(cudaDeviceSynchronize());
  for (int i = 0; i < kCount; ++i) EXPECT((*result)[i] == host[i] * 4.0f);
  factor = 5.0f;
  CUDA_OK(cudaGraphExecKernelNodeSetParams(exec, kernel, &params));
  CUDA_OK(cudaGraphLaunch(exec, nullptr));
  CUDA_OK(cudaDeviceSynchronize());
  CUDA_OK(cudaGraphExecDestroy(exec));
  CUDA_OK(cudaGraphDestroy(graph));
}

int main() {
  Random random(18);
  std::vector<float> x(kCount);
  for (float& v : x) v = float(random.Below(1000));
  Buffer<float> device_x(x), a(kCount), b(kCount), sum(std::vector<float>(kCount, 1.0f));
  RunCaptured(device_x.get(), a.get(), b.get(), sum.get());
  auto result = sum.Download();
  for (int i = 0; i < kCount; ++i) EXPECT(result[i] == 1.0f + kLaunches * 5.0f * x[i]);
  std::vector<float> built;
  RunBuilt(x, a.get(), b.get(), &built);
  for (int i = 0; i < kCount; ++i) EXPECT(built[i] == x[i] * 5.0f);
  return Finish(result, 3 * kLaunches + 2);
}
