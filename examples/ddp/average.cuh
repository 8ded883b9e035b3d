// SPDX-License-Identifier: Apache-2.0
// Averages arrays over the ranks of a job: each rank copies a piece into a buffer that the others
// have opened by its IPC handle, and all add the pieces up in the order of ranks, so that every
// rank gets the same bits. Two buffers in turns: a rank waits once a piece.
#pragma once

#include <algorithm>

#include "examples/ddp/meeting.h"
#include "examples/support/blocks.cuh"
#include "examples/support/device.h"

namespace example {

struct Pieces {
  const float* of[kMostRanks];
};

__global__ void MeanOfPieces(Pieces pieces, int ranks, float* out, size_t count) {
  const size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= count) return;
  float sum = 0;
  for (int r = 0; r < ranks; ++r) sum += pieces.of[r][i];
  out[i] = sum / ranks;
}

class Average {
 public:
  Average(Meeting* meeting, DeviceMemory* memory, size_t piece_bytes)
      : meeting_(meeting), piece_(piece_bytes / sizeof(float)) {
    for (int s = 0; s < kStages; ++s) {
      mine_[s] = memory->Allocate<float>("exchange", piece_);
      CHECK_CUDA(cudaIpcGetMemHandle(&meeting->mine().stages[s], mine_[s]));
    }
    meeting->Barrier();
    for (int r = 0; r < meeting->ranks(); ++r) {
      for (int s = 0; s < kStages; ++s) {
        void* opened = mine_[s];
        if (r != meeting->rank()) {
          CHECK_CUDA(cudaIpcOpenMemHandle(&opened, meeting->of(r).stages[s],
                                          cudaIpcMemLazyEnablePeerAccess));
        }
        stages_[s].of[r] = static_cast<const float*>(opened);
      }
    }
  }

  void operator()(float* values, size_t count) {
    for (size_t at = 0; at < count; at += piece_) {
      const size_t piece = std::min(piece_, count - at);
      const int stage = pieces_++ % kStages;
      CHECK_CUDA(cudaMemcpyAsync(mine_[stage], values + at, piece * sizeof(float),
                                 cudaMemcpyDeviceToDevice));
      CHECK_CUDA(cudaStreamSynchronize(nullptr));
      meeting_->Barrier();
      MeanOfPieces<<<Blocks(piece, kFlatThreads), kFlatThreads>>>(stages_[stage], meeting_->ranks(),
                                                                  values + at, piece);
    }
    CHECK_CUDA(cudaGetLastError());
  }

  // Nobody frees a buffer that another rank may be reading.
  void Close() {
    CHECK_CUDA(cudaDeviceSynchronize());
    meeting_->Barrier();
    for (int r = 0; r < meeting_->ranks(); ++r) {
      if (r == meeting_->rank()) continue;
      for (Pieces& stage : stages_) {
        CHECK_CUDA(cudaIpcCloseMemHandle(const_cast<float*>(stage.of[r])));
      }
    }
    meeting_->Barrier();
  }

 private:
  Meeting* meeting_;
  const size_t piece_;  // values
  float* mine_[kStages] = {};
  Pieces stages_[kStages] = {};
  unsigned pieces_ = 0;
};

}  // namespace example
