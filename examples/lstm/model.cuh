// SPDX-License-Identifier: Apache-2.0
// The LSTM on the device: its tensors, one cudaMalloc each (what a layer keeps of a time step for
// the backward pass is one tensor), and one training step with truncated back-propagation in time.
#pragma once

#include <vector>

#include "examples/lstm/config.h"
#include "examples/support/blocks.cuh"
#include "examples/support/device.h"
#include "examples/support/gemm.cuh"

namespace example {

__device__ inline float Sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }

// Row n of `out` is row tokens[n * stride] of the table.
__global__ void Lookup(const int* tokens, int stride, const float* table, float* out, int width) {
  const int n = blockIdx.x;
  for (int i = threadIdx.x; i < width; i += blockDim.x) {
    out[size_t(n) * width + i] = table[size_t(tokens[n * stride]) * width + i];
  }
}

// One block a symbol: it collects the gradients of the rows where the symbol occurs.
__global__ void LookupBackward(const int* tokens, int stride, const float* d, float* d_table,
                               int rows, int width, bool first) {
  const int symbol = blockIdx.x;
  for (int i = threadIdx.x; i < width; i += blockDim.x) {
    float sum = first ? 0.0f : d_table[size_t(symbol) * width + i];
    for (int n = 0; n < rows; ++n) {
      if (tokens[n * stride] == symbol) sum += d[size_t(n) * width + i];
    }
    d_table[size_t(symbol) * width + i] = sum;
  }
}

__global__ void AccumulateColumns(const float* in, float* out, int rows, int columns, bool first) {
  const int c = blockIdx.x * blockDim.x + threadIdx.x;
  if (c >= columns) return;
  float sum = first ? 0.0f : out[c];
  for (int n = 0; n < rows; ++n) sum += in[size_t(n) * columns + c];
  out[c] = sum;
}

// What a layer keeps of a time step: activated gates, cell and state of each row.
struct LstmStep {
  float *gates, *cell, *state;
};

__global__ void LstmCell(LstmStep now, const float* cell_before, int rows, int width) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= rows * width) return;
  float* gates = now.gates + size_t(i / width) * kGates * width + i % width;
  const float in = Sigmoid(gates[0]), forget = Sigmoid(gates[width]);
  const float candidate = tanhf(gates[2 * width]), out = Sigmoid(gates[3 * width]);
  const float cell = forget * cell_before[i] + in * candidate;
  gates[0] = in;
  gates[width] = forget;
  gates[2 * width] = candidate;
  gates[3 * width] = out;
  now.cell[i] = cell;
  now.state[i] = out * tanhf(cell);
}

// From the gradient of the state and that of the cell (from the step after): the gradient of the
// gates before activation, and of the cell of the step before.
__global__ void LstmCellBackward(LstmStep now, const float* cell_before, const float* d_state,
                                 float* d_cell, float* d_gates, int rows, int width) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= rows * width) return;
  const size_t at = size_t(i / width) * kGates * width + i % width;
  const float in = now.gates[at], forget = now.gates[at + width];
  const float candidate = now.gates[at + 2 * width], out = now.gates[at + 3 * width];
  const float curved = tanhf(now.cell[i]);
  const float d = d_cell[i] + d_state[i] * out * (1.0f - curved * curved);
  d_gates[at] = d * candidate * in * (1.0f - in);
  d_gates[at + width] = d * cell_before[i] * forget * (1.0f - forget);
  d_gates[at + 2 * width] = d * in * (1.0f - candidate * candidate);
  d_gates[at + 3 * width] = d_state[i] * curved * out * (1.0f - out);
  d_cell[i] = d * forget;
}

class LstmModel {
 public:
  LstmModel(const LstmConfig& config, DeviceMemory* memory);

  // tokens[b * sequence + t] is followed by targets[t * batch + b].
  void ForwardBackward(const int* tokens, const int* targets);
  void Update(const Momentum& step);
  float Loss() const;  // blocks until the step is done
  const std::vector<LstmParameter>& parameters() const { return list_; }
  std::vector<float> Weights(size_t p) const { return Read(weights_[p], p); }
  std::vector<float> Gradient(size_t p) const { return Read(gradients_[p], p); }

 private:
  float* W(int l, int which) const { return weights_[kLstmLayers + l * kPerLstmLayer + which]; }
  float* G(int l, int which) const { return gradients_[kLstmLayers + l * kPerLstmLayer + which]; }
  const LstmStep& Kept(int l, int t) const { return t < 0 ? before_ : steps_[l][t]; }
  const float* InputOf(int l, int t) const { return l == 0 ? inputs_[t] : steps_[l - 1][t].state; }
  void Forward(int l, int t);
  void Backward(int l, int t);
  std::vector<float> Read(const float* values, size_t parameter) const;

  LstmConfig config_;
  std::vector<LstmParameter> list_;
  std::vector<float*> weights_, gradients_, velocities_;
  std::vector<std::vector<LstmStep>> steps_;  // of each layer, each time step
  std::vector<float*> inputs_;                // embedded tokens of each time step
  LstmStep before_;                           // zeros: what precedes the first step
  float *logits_, *losses_, *loss_;
  // Gradients. Those of states and cells, one for each layer, go from step to step.
  std::vector<float*> d_states_, d_cells_;
  float *d_gates_, *d_input_;
};

inline LstmModel::LstmModel(const LstmConfig& config, DeviceMemory* memory)
    : config_(config), list_(LstmParameters(config)) {
  const size_t h = config.hidden, rows = config.batch, cells = rows * h;
  for (const LstmParameter& p : list_) {
    weights_.push_back(memory->Allocate<float>(p.name, p.count));
    gradients_.push_back(memory->Allocate<float>(p.name + ".gradient", p.count));
    velocities_.push_back(memory->Allocate<float>(p.name + ".velocity", p.count));
  }
  const auto keep = [&](const std::string& name) {
    float* all = memory->Allocate<float>(name, cells * (kGates + 2));
    return LstmStep{all, all + cells * kGates, all + cells * (kGates + 1)};
  };
  steps_.resize(config.layers);
  for (int l = 0; l < config.layers; ++l) {
    for (int t = 0; t < config.sequence; ++t) {
      steps_[l].push_back(keep("layer" + std::to_string(l) + ".step" + std::to_string(t)));
    }
    d_states_.push_back(memory->Allocate<float>("d_state", cells));
    d_cells_.push_back(memory->Allocate<float>("d_cell", cells));
  }
  for (int t = 0; t < config.sequence; ++t) {
    inputs_.push_back(memory->Allocate<float>("input" + std::to_string(t), cells));
  }
  before_ = keep("before");
  const size_t tokens = rows * config.sequence;
  logits_ = memory->Allocate<float>("logits", tokens * kSymbols);
  losses_ = memory->Allocate<float>("losses", tokens);
  loss_ = memory->Allocate<float>("loss", 1);
  d_gates_ = memory->Allocate<float>("d_gates", cells * kGates);
  d_input_ = memory->Allocate<float>("d_input", cells);
  for (size_t p = 0; p < list_.size(); ++p) {
    Initialise<<<Blocks(list_[p].count, kFlatThreads), kFlatThreads>>>(
        weights_[p], list_[p].count, LstmSeed(config, p), list_[p].scale, 0);
    CHECK_CUDA(cudaMemset(velocities_[p], 0, list_[p].count * sizeof(float)));
  }
  CHECK_CUDA(cudaMemset(before_.gates, 0, cells * (kGates + 2) * sizeof(float)));
  CHECK_CUDA(cudaGetLastError());
}

inline void LstmModel::Forward(int l, int t) {
  const int h = config_.hidden, rows = config_.batch;
  const LstmStep &now = Kept(l, t), &before = Kept(l, t - 1);
  RunGemm<false, false>(InputOf(l, t), W(l, kFromInput), now.gates, rows, kGates * h, h,
                        W(l, kGateBias));
  RunGemm<false, false>(before.state, W(l, kFromState), now.gates, rows, kGates * h, h, nullptr,
                        now.gates);
  LstmCell<<<Blocks(rows * h, kFlatThreads), kFlatThreads>>>(now, before.cell, rows, h);
}

// d_states_[l] holds the gradient of the layer's state at t from all that follows.
inline void LstmModel::Backward(int l, int t) {
  const int h = config_.hidden, rows = config_.batch;
  const bool first = t + 1 == config_.sequence;
  const LstmStep &now = Kept(l, t), &before = Kept(l, t - 1);
  LstmCellBackward<<<Blocks(rows * h, kFlatThreads), kFlatThreads>>>(
      now, before.cell, d_states_[l], d_cells_[l], d_gates_, rows, h);
  float *from_input = G(l, kFromInput), *from_state = G(l, kFromState);
  RunGemm<true, false>(InputOf(l, t), d_gates_, from_input, h, kGates * h, rows, nullptr,
                       first ? nullptr : from_input);
  RunGemm<true, false>(before.state, d_gates_, from_state, h, kGates * h, rows, nullptr,
                       first ? nullptr : from_state);
  AccumulateColumns<<<Blocks(kGates * h, kFlatThreads), kFlatThreads>>>(d_gates_, G(l, kGateBias),
                                                                        rows, kGates * h, first);
  RunGemm<false, true>(d_gates_, W(l, kFromState), d_states_[l], rows, h, kGates * h);
  if (l > 0) {
    RunGemm<false, true>(d_gates_, W(l, kFromInput), d_states_[l - 1], rows, h, kGates * h, nullptr,
                         d_states_[l - 1]);
  } else {
    RunGemm<false, true>(d_gates_, W(l, kFromInput), d_input_, rows, h, kGates * h);
  }
}

inline void LstmModel::ForwardBackward(const int* tokens, const int* targets) {
  const int h = config_.hidden, rows = config_.batch, steps = config_.sequence;
  const int last = config_.layers - 1, total = rows * steps;
  for (int t = 0; t < steps; ++t) {
    Lookup<<<rows, kRowThreads>>>(tokens + t, steps, weights_[kEmbedding], inputs_[t], h);
    for (int l = 0; l <= last; ++l) Forward(l, t);
    float* logits = logits_ + size_t(t) * rows * kSymbols;
    RunGemm<false, false>(Kept(last, t).state, weights_[kOutput], logits, rows, kSymbols, h);
    CrossEntropy<<<rows, kRowThreads>>>(logits, targets + size_t(t) * rows,
                                        losses_ + size_t(t) * rows, total, kSymbols);
  }
  Mean<<<1, kRowThreads>>>(losses_, loss_, total);
  for (int l = 0; l <= last; ++l) {
    CHECK_CUDA(cudaMemsetAsync(d_states_[l], 0, size_t(rows) * h * sizeof(float)));
    CHECK_CUDA(cudaMemsetAsync(d_cells_[l], 0, size_t(rows) * h * sizeof(float)));
  }
  for (int t = steps - 1; t >= 0; --t) {
    const float* d_logits = logits_ + size_t(t) * rows * kSymbols;
    RunGemm<true, false>(Kept(last, t).state, d_logits, gradients_[kOutput], h, kSymbols, rows,
                         nullptr, t + 1 == steps ? nullptr : gradients_[kOutput]);
    RunGemm<false, true>(d_logits, weights_[kOutput], d_states_[last], rows, h, kSymbols, nullptr,
                         d_states_[last]);
    for (int l = last; l >= 0; --l) Backward(l, t);
    LookupBackward<<<kSymbols, kRowThreads>>>(tokens + t, steps, d_input_, gradients_[kEmbedding],
                                              rows, h, t + 1 == steps);
  }
  CHECK_CUDA(cudaGetLastError());
}

inline void LstmModel::Update(const Momentum& step) {
  for (size_t p = 0; p < list_.size(); ++p) {
    MomentumUpdate<<<Blocks(list_[p].count, kFlatThreads), kFlatThreads>>>(
        weights_[p], gradients_[p], velocities_[p], list_[p].count, step);
  }
  CHECK_CUDA(cudaGetLastError());
}

inline float LstmModel::Loss() const { return ReadBack(loss_, 1)[0]; }

inline std::vector<float> LstmModel::Read(const float* values, size_t parameter) const {
  return ReadBack(values, list_[parameter].count);
}

}  // namespace example
