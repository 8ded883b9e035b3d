// SPDX-License-Identifier: Apache-2.0
#include "policy/synthetic/training.h"

namespace atp::policy {
namespace {

// One layer as the two directions see it: what forward keeps for backward, and its weights.
struct Layer {
  std::vector<uint32_t> weights;
  std::vector<uint32_t> saved;  // the last one is its output
};

class Training {
 public:
  Training(const TrainingShape& shape, SyntheticBuilder* builder) : shape_(shape), b_(*builder) {}

  void Run() {
    const SyntheticOptions& o = b_.options();
    for (uint32_t i = 0; i < o.layers; ++i) {
      layers_.push_back({});
      const std::string id = "layer" + std::to_string(i);
      layers_[i].weights.push_back(b_.Weight(id + ".weight", o.weight));
      if (shape_.attention) layers_[i].weights.push_back(b_.Weight(id + ".projection", o.weight));
      for (uint32_t w : layers_[i].weights) {
        gradients_.push_back(b_.Gradient(id + ".gradient" + std::to_string(w), o.weight));
      }
    }
    for (size_t pass = 0; pass < shape_.passes.size(); ++pass) {
      if (shape_.passes.size() > 1) pass_ = ".pass" + std::to_string(pass);
      scale_ = shape_.passes[pass];
      Forward();
      Backward(pass > 0 && shape_.accumulate);
    }
    if (shape_.optimizer) Optimizer();
  }

 private:
  Bytes ActivationBytes() const { return Bytes(double(b_.options().activation) * scale_); }

  void Forward() {
    input_ = b_.Add("input" + pass_, ActivationBytes(), "input", true);
    for (uint32_t i = 0; i < layers_.size(); ++i) {
      layers_[i].saved.clear();
      std::vector<uint32_t> in{i == 0 ? input_ : layers_[i - 1].saved.back()};
      if (shape_.skip > 0 && i > shape_.skip)
        in.push_back(layers_[i - 1 - shape_.skip].saved.back());
      shape_.attention ? ForwardAttention(i, in) : ForwardPlain(i, in);
    }
  }

  void ForwardPlain(uint32_t i, std::vector<uint32_t> in) {
    const std::string id = "layer" + std::to_string(i) + pass_;
    const uint32_t out = b_.Activation(id + ".out", ActivationBytes());
    in.push_back(layers_[i].weights[0]);
    b_.Launch("forward:" + id, in, {out}, 1, ActivationBytes() / 8);
    layers_[i].saved.push_back(out);
  }

  void ForwardAttention(uint32_t i, const std::vector<uint32_t>& in) {
    const std::string id = "layer" + std::to_string(i) + pass_;
    const Bytes bytes = ActivationBytes();
    const uint32_t qkv = b_.Activation(id + ".qkv", 3 * bytes / 4);
    const uint32_t scores = b_.Activation(id + ".scores", bytes);
    const uint32_t softmax = b_.Activation(id + ".softmax", bytes);
    const uint32_t out = b_.Activation(id + ".out", bytes / 4);
    std::vector<uint32_t> reads = in;
    reads.push_back(layers_[i].weights[0]);
    b_.Launch("forward:" + id + ".qkv", reads, {qkv}, 1);
    b_.Launch("forward:" + id + ".scores", {qkv}, {scores}, 0.5);
    b_.Launch("forward:" + id + ".softmax", {scores}, {softmax}, 0);
    b_.Launch("forward:" + id + ".out", {softmax, qkv, layers_[i].weights[1]}, {out}, 1);
    layers_[i].saved = {qkv, softmax, out};
  }

  void Backward(bool accumulate) {
    uint32_t gradient = b_.Gradient("loss" + pass_, ActivationBytes());
    b_.Launch("loss" + pass_, {layers_.back().saved.back()}, {gradient}, 0);
    size_t weight_gradient = gradients_.size();
    for (size_t i = layers_.size(); i-- > 0;) {
      const Layer& layer = layers_[i];
      const std::string id = "layer" + std::to_string(i) + pass_;
      std::vector<uint32_t> reads = layer.saved;
      reads.push_back(i == 0 ? input_ : layers_[i - 1].saved.back());
      reads.push_back(gradient);
      reads.insert(reads.end(), layer.weights.begin(), layer.weights.end());
      const uint32_t next = b_.Gradient(id + ".gradient_in", ActivationBytes());
      std::vector<uint32_t> writes{next};
      weight_gradient -= layer.weights.size();
      for (size_t w = 0; w < layer.weights.size(); ++w) {
        const uint32_t g = gradients_[weight_gradient + w];
        writes.push_back(g);
        if (accumulate) reads.push_back(g);
      }
      b_.Launch("backward:" + id, reads, writes, 2, ActivationBytes() / 8);
      gradient = next;
    }
  }

  void Optimizer() {
    size_t g = 0;
    for (size_t i = 0; i < layers_.size(); ++i) {
      for (uint32_t w : layers_[i].weights) {
        const std::string id = "optimizer:layer" + std::to_string(i);
        const uint32_t first = b_.Weight(id + ".moment1", b_.options().weight);
        const uint32_t second = b_.Weight(id + ".moment2", b_.options().weight);
        b_.Launch(id, {gradients_[g++], w, first, second}, {w, first, second}, 0);
      }
    }
  }

  const TrainingShape shape_;
  SyntheticBuilder& b_;
  std::vector<Layer> layers_;
  std::vector<uint32_t> gradients_;
  std::string pass_;
  double scale_ = 1;
  uint32_t input_ = 0;
};

}  // namespace

void AddTraining(const TrainingShape& shape, SyntheticBuilder* builder) {
  Training(shape, builder).Run();
}

}  // namespace atp::policy
