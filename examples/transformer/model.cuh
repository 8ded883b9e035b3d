// SPDX-License-Identifier: Apache-2.0
// The transformer on the device: its tensors, one cudaMalloc each, and one training step.
#pragma once

#include <vector>

#include "examples/support/device.h"
#include "examples/support/gemm.cuh"
#include "examples/transformer/attention.cuh"
#include "examples/transformer/config.h"
#include "examples/transformer/kernels.cuh"
#include "examples/transformer/offload.cuh"

namespace example {

class Model {
 public:
  // `offload`, where given, has the moments that are not to stay on the device.
  Model(const Config& config, DeviceMemory* memory, MomentOffload* offload = nullptr);

  // Forward, loss and backward for one batch; returns nothing, so that the caller decides when to
  // wait.
  void Forward(const int* tokens, const int* targets);  // the loss alone, for an evaluation
  void ForwardBackward(const int* tokens, const int* targets);
  void Update(const AdamW& adam, int step);
  // The same step, each parameter updated as soon as its gradient is there.
  void Step(const int* tokens, const int* targets, const AdamW& adam, int step);
  // The parameters in the order in which Step updates them.
  static std::vector<size_t> UpdateOrder(const Config& config);
  // Length of the sequences of the steps to come, at most that of the configuration.
  void SetSequence(int sequence) { config_.sequence = sequence; }

  // Blocks until the step is done.
  float Loss() const;
  std::vector<float> Weights(size_t parameter) const {
    return Read(weights_[parameter], parameter);
  }
  std::vector<float> Gradient(size_t parameter) const {
    return Read(gradients_[parameter], parameter);
  }
  float* gradient(size_t parameter) { return gradients_[parameter]; }  // on the device
  const std::vector<ParameterShape>& shapes() const { return shapes_; }

 private:
  struct Layer {  // what the backward pass needs of the forward pass
    float *input, *norm1, *mean1, *inverse1, *qkv, *attention, *mixed;
    float *middle, *norm2, *mean2, *inverse2, *up, *gelu;
  };

  float* W(int layer, int parameter) const {
    return weights_[kLayers + layer * kPerLayer + parameter];
  }
  float* G(int layer, int parameter) const {
    return gradients_[kLayers + layer * kPerLayer + parameter];
  }
  std::vector<float> Read(const float* values, size_t parameter) const;
  void AllocateMoments(const ParameterShape& shape, DeviceMemory* memory);
  void AllocateActivations(DeviceMemory* memory);
  void ForwardLayer(int l, float* output);
  void BackwardHead();
  void BackwardLayer(int l);
  void BackwardEmbedding(const int* tokens);
  void UpdateOne(size_t parameter, const AdamW& adam, int step);
  void Norm(const float* in, const float* gain, const float* shift, float* out, float* mean,
            float* inverse);
  void NormBackward(const float* in, const float* gain, const float* mean, const float* inverse,
                    float* d_gain, float* d_shift);
  void ColumnSums(const float* in, float* out, int columns);
  AttentionShape Shape() const;

  Config config_;
  const int places_;  // rows of the table of positions
  std::vector<ParameterShape> shapes_;
  MomentOffload* const offload_;
  std::vector<float*> weights_, gradients_, first_, second_;
  std::vector<Layer> layers_;
  float *final_input_, *final_norm_, *final_mean_, *final_inverse_, *logits_, *losses_, *loss_;
  // Gradients of activations; the same ones serve every layer.
  float *d_residual_, *d_norm_, *d_wide_, *d_qkv_, *d_mixed_, *d_scores_;
};

inline Model::Model(const Config& config, DeviceMemory* memory, MomentOffload* offload)
    : config_(config),
      places_(config.sequence),
      shapes_(ParameterShapes(config)),
      offload_(offload) {
  for (size_t i = 0; i < shapes_.size(); ++i) {
    const ParameterShape& s = shapes_[i];
    weights_.push_back(memory->Allocate<float>(s.name, s.count));
    gradients_.push_back(memory->Allocate<float>(s.name + ".gradient", s.count));
    if (offload_ == nullptr) AllocateMoments(s, memory);
  }
  AllocateActivations(memory);
  if (offload_ != nullptr) {
    offload_->Choose(shapes_, UpdateOrder(config), memory->bytes());
    for (size_t i = 0; i < shapes_.size(); ++i) {
      AllocateMoments(shapes_[i], offload_->Takes(i) ? nullptr : memory);
    }
    offload_->Allocate(shapes_, memory);
  }
  for (size_t i = 0; i < shapes_.size(); ++i) {
    const ParameterShape& s = shapes_[i];
    Initialise<<<Blocks(s.count, kFlatThreads), kFlatThreads>>>(
        weights_[i], s.count, ParameterSeed(config, i), s.scale, s.initial);
    if (first_[i] == nullptr) continue;
    CHECK_CUDA(cudaMemset(first_[i], 0, s.count * sizeof(float)));
    CHECK_CUDA(cudaMemset(second_[i], 0, s.count * sizeof(float)));
  }
  CHECK_CUDA(cudaGetLastError());
}

// Without memory: they are offloaded.
inline void Model::AllocateMoments(const ParameterShape& s, DeviceMemory* memory) {
  const auto moment = [&](const char* name) {
    return memory == nullptr ? nullptr : memory->Allocate<float>(s.name + name, s.count);
  };
  first_.push_back(moment(".first_moment"));
  second_.push_back(moment(".second_moment"));
}

inline void Model::AllocateActivations(DeviceMemory* memory) {
  const size_t n = config_.tokens(), w = config_.width;
  const size_t scores = size_t(config_.batch) * config_.heads * config_.sequence * config_.sequence;
  for (int l = 0; l < config_.layers; ++l) {
    const std::string at = "layer" + std::to_string(l) + ".";
    const auto make = [&](const char* name, size_t count) {
      return memory->Allocate<float>(at + name, count);
    };
    Layer layer;
    layer.input = make("input", n * w);
    layer.norm1 = make("norm1", n * w);
    layer.mean1 = make("mean1", n);
    layer.inverse1 = make("inverse1", n);
    layer.qkv = make("qkv_out", n * 3 * w);
    layer.attention = make("attention", scores);
    layer.mixed = make("mixed", n * w);
    layer.middle = make("middle", n * w);
    layer.norm2 = make("norm2", n * w);
    layer.mean2 = make("mean2", n);
    layer.inverse2 = make("inverse2", n);
    layer.up = make("up_out", n * 4 * w);
    layer.gelu = make("gelu", n * 4 * w);
    layers_.push_back(layer);
  }
  final_input_ = memory->Allocate<float>("final_input", n * w);
  final_norm_ = memory->Allocate<float>("final_norm", n * w);
  final_mean_ = memory->Allocate<float>("final_mean", n);
  final_inverse_ = memory->Allocate<float>("final_inverse", n);
  logits_ = memory->Allocate<float>("logits", n * kVocabulary);
  losses_ = memory->Allocate<float>("losses", n);
  loss_ = memory->Allocate<float>("loss", 1);
  d_residual_ = memory->Allocate<float>("d_residual", n * w);
  d_norm_ = memory->Allocate<float>("d_norm", n * w);
  d_wide_ = memory->Allocate<float>("d_wide", n * 4 * w);
  d_qkv_ = memory->Allocate<float>("d_qkv", n * 3 * w);
  d_mixed_ = memory->Allocate<float>("d_mixed", n * w);
  d_scores_ = memory->Allocate<float>("d_scores", scores);
}

inline AttentionShape Model::Shape() const {
  const int head_width = config_.head_width();
  return {config_.sequence, config_.heads, head_width, 1.0f / sqrtf(float(head_width))};
}

inline void Model::Norm(const float* in, const float* gain, const float* shift, float* out,
                        float* mean, float* inverse) {
  Normalise<<<config_.tokens(), kRowThreads>>>(in, gain, shift, out, mean, inverse, config_.width);
}

// From d_norm_, adds to d_residual_.
inline void Model::NormBackward(const float* in, const float* gain, const float* mean,
                                const float* inverse, float* d_gain, float* d_shift) {
  const int n = config_.tokens(), w = config_.width;
  NormaliseBackwardParameters<<<Blocks(w, kFlatThreads), kFlatThreads>>>(in, mean, inverse, d_norm_,
                                                                         d_gain, d_shift, n, w);
  NormaliseBackward<<<n, kRowThreads>>>(in, gain, mean, inverse, d_norm_, d_residual_, w);
}

inline void Model::ColumnSums(const float* in, float* out, int columns) {
  SumColumns<<<Blocks(columns, kFlatThreads), kFlatThreads>>>(in, out, config_.tokens(), columns);
}

inline void Model::ForwardLayer(int l, float* output) {
  const int n = config_.tokens(), w = config_.width;
  const Layer& a = layers_[l];
  const dim3 queries(config_.sequence, config_.heads, config_.batch);
  Norm(a.input, W(l, kNorm1Gain), W(l, kNorm1Shift), a.norm1, a.mean1, a.inverse1);
  RunGemm<false, false>(a.norm1, W(l, kQkv), a.qkv, n, 3 * w, w);
  Attend<<<queries, kRowThreads>>>(a.qkv, a.attention, a.mixed, Shape());
  RunGemm<false, false>(a.mixed, W(l, kProjection), a.middle, n, w, w, W(l, kProjectionBias),
                        a.input);
  Norm(a.middle, W(l, kNorm2Gain), W(l, kNorm2Shift), a.norm2, a.mean2, a.inverse2);
  RunGemm<false, false>(a.norm2, W(l, kUp), a.up, n, 4 * w, w, W(l, kUpBias));
  const size_t wide = size_t(n) * 4 * w;
  Gelu<<<Blocks(wide, kFlatThreads), kFlatThreads>>>(a.up, a.gelu, wide);
  RunGemm<false, false>(a.gelu, W(l, kDown), output, n, w, 4 * w, W(l, kDownBias), a.middle);
}

// Takes the gradient of the layer's output in d_residual_ and leaves that of its input there.
inline void Model::BackwardLayer(int l) {
  const int n = config_.tokens(), w = config_.width;
  const Layer& a = layers_[l];
  const dim3 queries(config_.sequence, config_.heads, config_.batch);
  const size_t wide = size_t(n) * 4 * w;

  ColumnSums(d_residual_, G(l, kDownBias), w);
  RunGemm<true, false>(a.gelu, d_residual_, G(l, kDown), 4 * w, w, n);
  RunGemm<false, true>(d_residual_, W(l, kDown), d_wide_, n, 4 * w, w);
  GeluBackward<<<Blocks(wide, kFlatThreads), kFlatThreads>>>(a.up, d_wide_, wide);
  ColumnSums(d_wide_, G(l, kUpBias), 4 * w);
  RunGemm<true, false>(a.norm2, d_wide_, G(l, kUp), w, 4 * w, n);
  RunGemm<false, true>(d_wide_, W(l, kUp), d_norm_, n, w, 4 * w);
  NormBackward(a.middle, W(l, kNorm2Gain), a.mean2, a.inverse2, G(l, kNorm2Gain),
               G(l, kNorm2Shift));

  ColumnSums(d_residual_, G(l, kProjectionBias), w);
  RunGemm<true, false>(a.mixed, d_residual_, G(l, kProjection), w, w, n);
  RunGemm<false, true>(d_residual_, W(l, kProjection), d_mixed_, n, w, w);
  AttendBackwardQueries<<<queries, kRowThreads>>>(a.qkv, a.attention, d_mixed_, d_scores_, d_qkv_,
                                                  Shape());
  AttendBackwardKeys<<<queries, kRowThreads>>>(a.qkv, a.attention, d_mixed_, d_scores_, d_qkv_,
                                               Shape());
  RunGemm<true, false>(a.norm1, d_qkv_, G(l, kQkv), w, 3 * w, n);
  RunGemm<false, true>(d_qkv_, W(l, kQkv), d_norm_, n, w, 3 * w);
  NormBackward(a.input, W(l, kNorm1Gain), a.mean1, a.inverse1, G(l, kNorm1Gain), G(l, kNorm1Shift));
}

inline void Model::Forward(const int* tokens, const int* targets) {
  const int n = config_.tokens(), w = config_.width, last = config_.layers - 1;
  Embed<<<n, kRowThreads>>>(tokens, weights_[kTokenEmbedding], weights_[kPositionEmbedding],
                            layers_[0].input, config_.sequence, w);
  for (int l = 0; l <= last; ++l) {
    ForwardLayer(l, l == last ? final_input_ : layers_[l + 1].input);
  }
  Norm(final_input_, weights_[kFinalGain], weights_[kFinalShift], final_norm_, final_mean_,
       final_inverse_);
  RunGemm<false, false>(final_norm_, weights_[kHead], logits_, n, kVocabulary, w);
  CrossEntropy<<<n, kRowThreads>>>(logits_, targets, losses_, n, kVocabulary);
  Mean<<<1, kRowThreads>>>(losses_, loss_, n);
  CHECK_CUDA(cudaGetLastError());
}

inline void Model::BackwardHead() {
  const int n = config_.tokens(), w = config_.width;
  RunGemm<true, false>(final_norm_, logits_, gradients_[kHead], w, kVocabulary, n);
  RunGemm<false, true>(logits_, weights_[kHead], d_norm_, n, w, kVocabulary);
  CHECK_CUDA(cudaMemsetAsync(d_residual_, 0, size_t(n) * w * sizeof(float)));
  NormBackward(final_input_, weights_[kFinalGain], final_mean_, final_inverse_,
               gradients_[kFinalGain], gradients_[kFinalShift]);
}

inline void Model::BackwardEmbedding(const int* tokens) {
  const int n = config_.tokens(), w = config_.width;
  EmbedBackwardTokens<<<kVocabulary, kRowThreads>>>(tokens, d_residual_,
                                                    gradients_[kTokenEmbedding], n, w);
  EmbedBackwardPositions<<<places_, kRowThreads>>>(d_residual_, gradients_[kPositionEmbedding],
                                                   config_.batch, config_.sequence, w);
  CHECK_CUDA(cudaGetLastError());
}

inline AdamStep MakeStep(const AdamW& adam, int step, bool decays) {
  AdamStep s;
  s.rate = adam.learning_rate / (1.0f - std::pow(adam.beta1, float(step)));
  s.keep = decays ? 1.0f - adam.learning_rate * adam.decay : 1.0f;
  s.root = 1.0f / std::sqrt(1.0f - std::pow(adam.beta2, float(step)));
  s.beta1 = adam.beta1;
  s.beta2 = adam.beta2;
  s.epsilon = adam.epsilon;
  return s;
}

inline void Model::UpdateOne(size_t i, const AdamW& adam, int step) {
  const size_t count4 = shapes_[i].count / 4;
  const bool away = first_[i] == nullptr;
  const auto [first, second] = away ? offload_->Take(i) : std::pair{first_[i], second_[i]};
  AdamUpdate<<<Blocks(count4, kFlatThreads), kFlatThreads>>>(
      reinterpret_cast<float4*>(weights_[i]), reinterpret_cast<const float4*>(gradients_[i]),
      reinterpret_cast<float4*>(first), reinterpret_cast<float4*>(second), count4,
      MakeStep(adam, step, shapes_[i].decays));
  if (away) offload_->Give(i);
}

inline void Model::Update(const AdamW& adam, int step) {
  for (size_t i = 0; i < shapes_.size(); ++i) UpdateOne(i, adam, step);
  CHECK_CUDA(cudaGetLastError());
}

inline void Model::ForwardBackward(const int* tokens, const int* targets) {
  Forward(tokens, targets);
  BackwardHead();
  for (int l = config_.layers - 1; l >= 0; --l) BackwardLayer(l);
  BackwardEmbedding(tokens);
}

inline std::vector<size_t> Model::UpdateOrder(const Config& config) {
  std::vector<size_t> order = {kHead, kFinalGain, kFinalShift};
  for (size_t l = config.layers; l-- > 0;) {
    for (size_t p = 0; p < kPerLayer; ++p) order.push_back(kLayers + l * kPerLayer + p);
  }
  order.insert(order.end(), {kTokenEmbedding, kPositionEmbedding});
  return order;
}

inline void Model::Step(const int* tokens, const int* targets, const AdamW& adam, int step) {
  Forward(tokens, targets);
  BackwardHead();
  for (const size_t p : {kHead, kFinalGain, kFinalShift}) UpdateOne(p, adam, step);
  for (int l = config_.layers - 1; l >= 0; --l) {
    BackwardLayer(l);
    for (size_t p = 0; p < kPerLayer; ++p) UpdateOne(kLayers + l * kPerLayer + p, adam, step);
  }
  BackwardEmbedding(tokens);
  for (const size_t p : {kTokenEmbedding, kPositionEmbedding}) UpdateOne(p, adam, step);
  CHECK_CUDA(cudaGetLastError());
}

inline float Model::Loss() const { return ReadBack(loss_, 1)[0]; }

inline std::vector<float> Model::Read(const float* values, size_t parameter) const {
  return ReadBack(values, shapes_[parameter].count);
}

}  // namespace example
