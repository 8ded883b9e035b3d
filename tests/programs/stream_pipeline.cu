// SPDX-License-Identifier: Apache-2.0
// Pipeline over four streams: pinned host memory, copies in, a kernel, copies out, pieces in flight
// at once.
#include "tests/programs/program.h"

using namespace program;  // NOLINT

constexpr int kStreams = 4, kPieces = 16, kPiece = 1 << 14;

__global__ void Work(const int* in, int* out, int piece) {
  COUNT_LAUNCH();
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = in[i] * 3 + piece;
}

int main() {
  const size_t bytes = kPiece * sizeof(int);
  int *host_in, *host_out;
  CUDA_OK(cudaMallocHost(&host_in, kPieces * bytes));
  CUDA_OK(cudaHostAlloc(&host_out, kPieces * bytes, cudaHostAllocDefault));
  for (int i = 0; i < kPieces * kPiece; ++i) host_in[i] = i ^ 0x55;
  cudaStream_t streams[kStreams];
  cudaEvent_t done[kStreams];
  std::vector<Buffer<int>*> in, out;
  for (int s = 0; s < kStreams; ++s) {
    CUDA_OK(cudaStreamCreateWithFlags(&streams[s], cudaStreamNonBlocking));
    CUDA_OK(cudaEventCreate(&done[s]));
    in.push_back(new Buffer<int>(kPiece));
    out.push_back(new Buffer<int>(kPiece));
  }
  CUDA_OK(cudaDeviceSynchronize());  // the buffers' first fill is in the default stream
  for (int p = 0; p < kPieces; ++p) {
    const int s = p % kStreams;
    CUDA_OK(cudaMemcpyAsync(in[s]->get(), host_in + p * kPiece, bytes, cudaMemcpyHostToDevice,
                            streams[s]));
    Work<<<kPiece / 256, 256, 0, streams[s]>>>(in[s]->get(), out[s]->get(), p);
    CUDA_OK(cudaMemcpyAsync(host_out + p * kPiece, out[s]->get(), bytes, cudaMemcpyDeviceToHost,
                            streams[s]));
    CUDA_OK(cudaEventRecord(done[s], streams[s]));
  }
  for (int s = 0; s < kStreams; ++s) {
    CUDA_OK(cudaEventSynchronize(done[s]));
    EXPECT(cudaEventQuery(done[s]) == cudaSuccess);
    EXPECT(cudaStreamQuery(streams[s]) == cudaSuccess);
  }
  float ms = -1;
  CUDA_OK(cudaEventElapsedTime(&ms, done[0], done[kStreams - 1]));
  std::vector<int> result(host_out, host_out + kPieces * kPiece);
  for (int i = 0; i < kPieces * kPiece; ++i) EXPECT(result[i] == (i ^ 0x55) * 3 + i / kPiece);
  for (int s = 0; s < kStreams; ++s) {
    delete in[s];
    delete out[s];
    CUDA_OK(cudaEventDestroy(done[s]));
    CUDA_OK(cudaStreamDestroy(streams[s]));
  }
  CUDA_OK(cudaFreeHost(host_in));
  CUDA_OK(cudaFreeHost(host_out));
  return Finish(result, kPieces);
}
