// SPDX-License-Identifier: Apache-2.0
// VGG-19 on the device: its tensors, one cudaMalloc each, and one training step. A convolution is
// one matrix product an image, over the unfolded image.
#pragma once

#include <algorithm>
#include <vector>

#include "examples/support/device.h"
#include "examples/support/gemm.cuh"
#include "examples/vgg/kernels.cuh"

namespace example {

class VggModel {
 public:
  VggModel(const VggConfig& config, DeviceMemory* memory);

  float* images() const { return images_; }
  int* labels() const { return labels_; }
  void ForwardBackward();
  void Update(const Momentum& step);
  float Loss() const;  // blocks until the step is done
  const std::vector<VggLayer>& layers() const { return shapes_; }
  std::vector<float> Weights(size_t l) const { return Read(layers_[l].weights, shapes_[l]); }
  std::vector<float> Gradient(size_t l) const {
    return Read(layers_[l].weights_gradient, shapes_[l]);
  }

 private:
  struct Layer {
    float *weights, *weights_gradient, *weights_velocity, *bias, *bias_gradient, *bias_velocity;
    float *output, *pooled;  // pooled: null where no pooling follows
  };

  size_t OutputCount(const VggLayer& s) const { return s.pixels() * s.out * config_.batch; }
  const float* InputOf(size_t l) const;
  void Forward(size_t l);
  void Backward(size_t l);
  void ConvolutionBackward(size_t l, const float* d_output, float* d_input);
  void FullyConnectedBackward(size_t l, const float* d_output, float* d_input);
  std::vector<float> Read(const float* values, const VggLayer& s) const;

  VggConfig config_;
  std::vector<VggLayer> shapes_;
  std::vector<Layer> layers_;
  float *images_, *columns_, *losses_, *loss_;
  int* labels_;
  float* d_[2];  // gradients of activations, in turns
  int current_ = 0;
};

inline VggModel::VggModel(const VggConfig& config, DeviceMemory* memory)
    : config_(config), shapes_(VggLayers(config)) {
  size_t columns = 0, largest = 0;
  for (size_t l = 0; l < shapes_.size(); ++l) {
    const VggLayer& s = shapes_[l];
    const auto make = [&](const char* what, size_t count) {
      return memory->Allocate<float>(s.name + what, count);
    };
    Layer layer;
    layer.weights = make(".weights", s.weights());
    layer.weights_gradient = make(".weights.gradient", s.weights());
    layer.weights_velocity = make(".weights.velocity", s.weights());
    layer.bias = make(".bias", s.out);
    layer.bias_gradient = make(".bias.gradient", s.out);
    layer.bias_velocity = make(".bias.velocity", s.out);
    layer.output = make(".output", OutputCount(s));
    layer.pooled = s.pooled ? make(".pooled", OutputCount(s) / 4) : nullptr;
    layers_.push_back(layer);
    if (s.convolution) columns = std::max(columns, s.depth() * s.pixels());
    largest = std::max(largest, OutputCount(s));
  }
  images_ = memory->Allocate<float>("images",
                                    size_t(config.batch) * kColours * config.image * config.image);
  labels_ = memory->Allocate<int>("labels", config.batch);
  columns_ = memory->Allocate<float>("columns", columns);
  losses_ = memory->Allocate<float>("losses", config.batch);
  loss_ = memory->Allocate<float>("loss", 1);
  for (float*& d : d_) d = memory->Allocate<float>("d_activation", largest);
  for (size_t l = 0; l < shapes_.size(); ++l) {
    const VggLayer& s = shapes_[l];
    Initialise<<<Blocks(s.weights(), kFlatThreads), kFlatThreads>>>(
        layers_[l].weights, s.weights(), VggSeed(config, l), s.scale(), 0);
    CHECK_CUDA(cudaMemset(layers_[l].weights_velocity, 0, s.weights() * sizeof(float)));
    CHECK_CUDA(cudaMemset(layers_[l].bias, 0, s.out * sizeof(float)));
    CHECK_CUDA(cudaMemset(layers_[l].bias_velocity, 0, s.out * sizeof(float)));
  }
  CHECK_CUDA(cudaGetLastError());
}

inline const float* VggModel::InputOf(size_t l) const {
  if (l == 0) return images_;
  const Layer& before = layers_[l - 1];
  return before.pooled ? before.pooled : before.output;
}

inline void VggModel::Forward(size_t l) {
  const VggLayer& s = shapes_[l];
  const Layer& a = layers_[l];
  const float* in = InputOf(l);
  const int pixels = int(s.pixels()), depth = int(s.depth());
  if (s.convolution) {
    const size_t unfolded = s.depth() * s.pixels();
    for (int b = 0; b < config_.batch; ++b) {
      Unfold<<<Blocks(unfolded, kFlatThreads), kFlatThreads>>>(in + size_t(b) * s.in * pixels,
                                                               columns_, s.in, s.size);
      RunGemm<false, false>(a.weights, columns_, a.output + size_t(b) * s.out * pixels, s.out,
                            pixels, depth);
    }
  } else {
    RunGemm<false, false>(in, a.weights, a.output, config_.batch, s.out, depth);
  }
  const size_t count = OutputCount(s);
  BiasRectify<<<Blocks(count, kFlatThreads), kFlatThreads>>>(a.output, a.bias, count, s.out, pixels,
                                                             s.rectified);
  if (a.pooled) {
    Pool<<<Blocks(count / 4, kFlatThreads), kFlatThreads>>>(a.output, a.pooled, count / 4, s.size);
  }
}

// The gradient of the layer's output (after pooling) is in d_[current_]; that of its input will be
// there.
inline void VggModel::Backward(size_t l) {
  const VggLayer& s = shapes_[l];
  const Layer& a = layers_[l];
  const size_t count = OutputCount(s);
  if (a.pooled) {
    PoolBackward<<<Blocks(count / 4, kFlatThreads), kFlatThreads>>>(
        a.output, d_[current_], d_[1 - current_], count / 4, s.size);
    current_ = 1 - current_;
  }
  float *d_output = d_[current_], *d_input = l > 0 ? d_[1 - current_] : nullptr;
  if (s.rectified) {
    RectifyBackward<<<Blocks(count, kFlatThreads), kFlatThreads>>>(a.output, d_output, count);
  }
  BiasGradient<<<s.out, kRowThreads>>>(d_output, a.bias_gradient, config_.batch, s.out, s.pixels());
  if (s.convolution) {
    ConvolutionBackward(l, d_output, d_input);
  } else {
    FullyConnectedBackward(l, d_output, d_input);
  }
  current_ = 1 - current_;
}

inline void VggModel::ConvolutionBackward(size_t l, const float* d_output, float* d_input) {
  const VggLayer& s = shapes_[l];
  const Layer& a = layers_[l];
  const int pixels = int(s.pixels()), depth = int(s.depth());
  const size_t unfolded = s.depth() * s.pixels();
  for (int b = 0; b < config_.batch; ++b) {
    const float* d = d_output + size_t(b) * s.out * pixels;
    Unfold<<<Blocks(unfolded, kFlatThreads), kFlatThreads>>>(InputOf(l) + size_t(b) * s.in * pixels,
                                                             columns_, s.in, s.size);
    RunGemm<false, true>(d, columns_, a.weights_gradient, s.out, depth, pixels, nullptr,
                         b > 0 ? a.weights_gradient : nullptr);
    if (!d_input) continue;
    RunGemm<true, false>(a.weights, d, columns_, depth, pixels, s.out);
    Fold<<<Blocks(size_t(s.in) * pixels, kFlatThreads), kFlatThreads>>>(
        columns_, d_input + size_t(b) * s.in * pixels, s.in, s.size);
  }
}

inline void VggModel::FullyConnectedBackward(size_t l, const float* d_output, float* d_input) {
  const VggLayer& s = shapes_[l];
  const Layer& a = layers_[l];
  RunGemm<true, false>(InputOf(l), d_output, a.weights_gradient, s.in, s.out, config_.batch);
  RunGemm<false, true>(d_output, a.weights, d_input, config_.batch, s.in, s.out);
}

inline void VggModel::ForwardBackward() {
  const size_t last = shapes_.size() - 1;
  for (size_t l = 0; l <= last; ++l) Forward(l);
  float* logits = layers_[last].output;
  CrossEntropy<<<config_.batch, kRowThreads>>>(logits, labels_, losses_, config_.batch,
                                               config_.classes);
  Mean<<<1, kRowThreads>>>(losses_, loss_, config_.batch);
  CHECK_CUDA(cudaMemcpyAsync(d_[0], logits, OutputCount(shapes_[last]) * sizeof(float),
                             cudaMemcpyDeviceToDevice));
  current_ = 0;
  for (size_t l = last + 1; l-- > 0;) Backward(l);
  CHECK_CUDA(cudaGetLastError());
}

inline void VggModel::Update(const Momentum& step) {
  for (size_t l = 0; l < shapes_.size(); ++l) {
    const Layer& a = layers_[l];
    const size_t count = shapes_[l].weights(), out = shapes_[l].out;
    MomentumUpdate<<<Blocks(count, kFlatThreads), kFlatThreads>>>(a.weights, a.weights_gradient,
                                                                  a.weights_velocity, count, step);
    MomentumUpdate<<<Blocks(out, kFlatThreads), kFlatThreads>>>(a.bias, a.bias_gradient,
                                                                a.bias_velocity, out, step);
  }
  CHECK_CUDA(cudaGetLastError());
}

inline float VggModel::Loss() const { return ReadBack(loss_, 1)[0]; }

inline std::vector<float> VggModel::Read(const float* values, const VggLayer& s) const {
  return ReadBack(values, s.weights());
}

}  // namespace example
