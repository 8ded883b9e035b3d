// SPDX-License-Identifier: Apache-2.0
// The decoder on the device: its tensors, one cudaMalloc each, and the way of one token through it.
// The caches of keys and values are allocated for the whole context and fill place by place. With
// experts, the host reads the gate of each layer and launches the chosen ones only.
#pragma once

#include <vector>

#include "examples/decode/kernels.cuh"
#include "examples/support/device.h"

namespace example {

class DecodeModel {
 public:
  DecodeModel(const DecodeConfig& config, DeviceMemory* memory);

  // The token at `place` of each sequence goes in, the next one comes out, on the device.
  void Step(int place);
  std::vector<int> Tokens() const { return ReadBack(tokens_, config_.batch); }
  std::vector<float> Logits() const { return ReadBack(logits_, size_t(config_.batch) * kTokens); }

 private:
  const float* W(int layer, size_t which) const {
    return matrices_[kDecodeLayers + layer * PerDecodeLayer(config_) + which];
  }
  void Multiply(const float* matrix, int rows, int columns, const float* in, float* out,
                const Finish& finish = {}) {
    MultiplyVectors<<<rows, kRowThreads>>>(reinterpret_cast<const float4*>(matrix),
                                           reinterpret_cast<const float4*>(in), out, columns / 4,
                                           config_.batch, finish);
  }
  void Attention(int layer, int place);
  void FeedForward(int layer, int expert, const Finish& add);
  void ChosenExperts(int layer);

  DecodeConfig config_;
  std::vector<float*> matrices_, keys_, values_;
  float *x_, *norm_, *qkv_, *scores_, *heads_, *wide_, *gate_, *logits_;
  int* tokens_;
};

inline DecodeModel::DecodeModel(const DecodeConfig& config, DeviceMemory* memory)
    : config_(config) {
  const size_t b = config.batch, w = config.width;
  const std::vector<DecodeMatrix> list = DecodeMatrices(config);
  for (const DecodeMatrix& m : list) {
    matrices_.push_back(memory->Allocate<float>(m.name, m.count()));
  }
  for (int l = 0; l < config.layers; ++l) {
    keys_.push_back(memory->Allocate<float>("keys", config.context * b * w));
    values_.push_back(memory->Allocate<float>("values", config.context * b * w));
  }
  x_ = memory->Allocate<float>("x", b * w);
  norm_ = memory->Allocate<float>("norm", b * w);
  qkv_ = memory->Allocate<float>("qkv", b * 3 * w);
  scores_ = memory->Allocate<float>("scores", b * config.heads * config.context);
  heads_ = memory->Allocate<float>("heads", b * w);
  wide_ = memory->Allocate<float>("wide", b * config.wide());
  gate_ = memory->Allocate<float>("gate", b * ExpertsOf(config));
  logits_ = memory->Allocate<float>("logits", b * kTokens);
  tokens_ = memory->Allocate<int>("tokens", b);
  for (size_t m = 0; m < list.size(); ++m) {
    Initialise<<<Blocks(list[m].count(), kFlatThreads), kFlatThreads>>>(
        matrices_[m], list[m].count(), DecodeSeed(config, m), list[m].scale(), 0);
  }
  const size_t filled = config.prompt * b * w;
  for (int l = 0; l < config.layers && filled > 0; ++l) {
    for (const bool values : {false, true}) {
      Initialise<<<Blocks(filled, kFlatThreads), kFlatThreads>>>(
          values ? values_[l] : keys_[l], filled, PromptSeed(config, l, values), 1.0f, 0);
    }
  }
  CHECK_CUDA(cudaMemset(tokens_, 0, b * sizeof(int)));
  CHECK_CUDA(cudaGetLastError());
}

inline void DecodeModel::Attention(int layer, int place) {
  const int b = config_.batch, w = config_.width;
  RmsNormalise<<<b, kRowThreads>>>(x_, norm_, w);
  Multiply(W(layer, kToQkv), 3 * w, w, norm_, qkv_);
  AppendToCache<<<Blocks(b * w, kFlatThreads), kFlatThreads>>>(qkv_, keys_[layer], values_[layer],
                                                               place, b, w);
  AttendCache<<<dim3(config_.heads, b), kRowThreads>>>(qkv_, keys_[layer], values_[layer], scores_,
                                                       heads_, place + 1, config_.context,
                                                       config_.head_width());
  Finish add;
  add.add = true;
  Multiply(W(layer, kFromHeads), w, w, heads_, x_, add);
}

inline void DecodeModel::FeedForward(int layer, int expert, const Finish& add) {
  const int w = config_.width, wide = config_.wide();
  Finish rectify;
  rectify.rectify = true;
  Multiply(W(layer, kExperts + 2 * expert), wide, w, norm_, wide_, rectify);
  Multiply(W(layer, kExperts + 2 * expert + 1), w, wide, wide_, x_, add);
}

inline void DecodeModel::ChosenExperts(int layer) {
  Multiply(W(layer, kGate), config_.experts, config_.width, norm_, gate_);
  const std::vector<float> gate = ReadBack(gate_, size_t(config_.batch) * config_.experts);
  std::vector<Finish> adds(config_.experts);
  std::vector<bool> used(config_.experts);
  for (Finish& add : adds) {
    add.add = true;
    for (float& scale : add.scale) scale = 0;
  }
  for (int b = 0; b < config_.batch; ++b) {
    for (const Share& share : Route(config_, layer, &gate[size_t(b) * config_.experts])) {
      adds[share.expert].scale[b] = share.weight;
      used[share.expert] = true;
    }
  }
  for (int e = 0; e < config_.experts; ++e) {
    if (used[e]) FeedForward(layer, e, adds[e]);
  }
}

inline void DecodeModel::Step(int place) {
  const int b = config_.batch, w = config_.width;
  EmbedTokens<<<b, kRowThreads>>>(tokens_, matrices_[kTokenTable],
                                  matrices_[kPlaceTable] + size_t(place) * w, x_, w);
  for (int l = 0; l < config_.layers; ++l) {
    Attention(l, place);
    RmsNormalise<<<b, kRowThreads>>>(x_, norm_, w);
    if (config_.experts > 0) {
      ChosenExperts(l);
    } else {
      Finish add;
      add.add = true;
      FeedForward(l, 0, add);
    }
  }
  RmsNormalise<<<b, kRowThreads>>>(x_, norm_, w);
  Multiply(matrices_[kHeadMatrix], kTokens, w, norm_, logits_);
  Draw<<<1, b>>>(logits_, tokens_, config_.seed, place);
  CHECK_CUDA(cudaGetLastError());
}

}  // namespace example
