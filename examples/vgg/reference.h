// SPDX-License-Identifier: Apache-2.0
// VGG-19 in plain loops on the CPU, for comparison: direct convolutions, nothing unfolded.
#pragma once

#include <algorithm>
#include <vector>

#include "examples/support/random.h"
#include "examples/vgg/config.h"

namespace example {

class VggReference {
 public:
  using Values = std::vector<float>;

  explicit VggReference(const VggConfig& config) : c_(config), shapes_(VggLayers(config)) {
    for (size_t l = 0; l < shapes_.size(); ++l) {
      const VggLayer& s = shapes_[l];
      Layer layer;
      layer.weights.resize(s.weights());
      for (size_t i = 0; i < s.weights(); ++i) {
        layer.weights[i] = Uniform(VggSeed(config, l), uint32_t(i), s.scale());
      }
      layer.bias.assign(s.out, 0.0f);
      layer.weights_velocity.assign(s.weights(), 0.0f);
      layer.bias_velocity.assign(s.out, 0.0f);
      layers_.push_back(layer);
    }
  }

  // Returns the loss and leaves the gradients.
  float ForwardBackward(const Values& images, const std::vector<int>& labels);
  void Update(const Momentum& step);
  const Values& Weights(size_t l) const { return layers_[l].weights; }
  const Values& Gradient(size_t l) const { return layers_[l].weights_gradient; }

 private:
  struct Layer {
    Values weights, bias, weights_gradient, bias_gradient, weights_velocity, bias_velocity;
    Values input, output, pooled;
  };

  // Index of the pixel that `tap` sees from `pixel`, or -1 outside the image.
  static int Seen(int pixel, int tap, int size) {
    const int y = pixel / size + tap / 3 - 1, x = pixel % size + tap % 3 - 1;
    return y >= 0 && y < size && x >= 0 && x < size ? y * size + x : -1;
  }
  // Calls f(weight, input, output) for every product of the layer: the same for all three passes.
  template <typename F>
  void ForEachProduct(const VggLayer& s, const F& f) const;
  void Forward(Layer* layer, const VggLayer& s, const Values& in) const;
  Values Backward(Layer* layer, const VggLayer& s, Values d) const;

  VggConfig c_;
  std::vector<VggLayer> shapes_;
  std::vector<Layer> layers_;
};

template <typename F>
void VggReference::ForEachProduct(const VggLayer& s, const F& f) const {
  const int pixels = int(s.pixels());
  for (int b = 0; b < c_.batch; ++b) {
    for (int o = 0; o < s.out; ++o) {
      for (int i = 0; i < s.in; ++i) {
        if (!s.convolution) {
          f(size_t(i) * s.out + o, size_t(b) * s.in + i, size_t(b) * s.out + o);
          continue;
        }
        for (int p = 0; p < pixels; ++p) {
          for (int tap = 0; tap < kTaps; ++tap) {
            const int seen = Seen(p, tap, s.size);
            if (seen < 0) continue;
            f((size_t(o) * s.in + i) * kTaps + tap, (size_t(b) * s.in + i) * pixels + seen,
              (size_t(b) * s.out + o) * pixels + p);
          }
        }
      }
    }
  }
}

inline void VggReference::Forward(Layer* a, const VggLayer& s, const Values& in) const {
  a->input = in;
  a->output.assign(s.pixels() * s.out * c_.batch, 0.0f);
  ForEachProduct(
      s, [&](size_t w, size_t i, size_t o) { a->output[o] += a->weights[w] * a->input[i]; });
  for (size_t i = 0; i < a->output.size(); ++i) {
    a->output[i] += a->bias[i / s.pixels() % s.out];
    if (s.rectified) a->output[i] = std::max(a->output[i], 0.0f);
  }
  a->pooled = a->output;
  if (!s.pooled) return;
  const size_t half = s.size / 2;
  a->pooled.resize(a->output.size() / 4);
  for (size_t i = 0; i < a->pooled.size(); ++i) {
    const float* corner = &a->output[i / (half * half) * s.pixels() +
                                     2 * (i / half % half) * s.size + 2 * (i % half)];
    a->pooled[i] =
        std::max(std::max(corner[0], corner[1]), std::max(corner[s.size], corner[s.size + 1]));
  }
}

// Takes the gradient of the output, leaves the gradients of weights and bias, returns that of the
// input.
inline VggReference::Values VggReference::Backward(Layer* a, const VggLayer& s, Values d) const {
  if (s.pooled) {
    Values whole(a->output.size(), 0.0f);
    const size_t half = s.size / 2;
    for (size_t i = 0; i < d.size(); ++i) {
      const size_t corner =
          i / (half * half) * s.pixels() + 2 * (i / half % half) * s.size + 2 * (i % half);
      for (size_t at : {corner, corner + 1, corner + s.size, corner + s.size + 1}) {
        if (a->output[at] != a->pooled[i]) continue;
        whole[at] = d[i];
        break;
      }
    }
    d = std::move(whole);
  }
  a->bias_gradient.assign(s.out, 0.0f);
  for (size_t i = 0; i < d.size(); ++i) {
    if (s.rectified && a->output[i] <= 0) d[i] = 0;
    a->bias_gradient[i / s.pixels() % s.out] += d[i];
  }
  a->weights_gradient.assign(s.weights(), 0.0f);
  Values d_input(a->input.size(), 0.0f);
  ForEachProduct(s, [&](size_t w, size_t i, size_t o) {
    a->weights_gradient[w] += d[o] * a->input[i];
    d_input[i] += d[o] * a->weights[w];
  });
  return d_input;
}

inline float VggReference::ForwardBackward(const Values& images, const std::vector<int>& labels) {
  for (size_t l = 0; l < layers_.size(); ++l) {
    Forward(&layers_[l], shapes_[l], l == 0 ? images : layers_[l - 1].pooled);
  }
  Values d = layers_.back().output;
  double loss = 0;
  for (int b = 0; b < c_.batch; ++b) {
    float* row = &d[size_t(b) * c_.classes];
    const float top = *std::max_element(row, row + c_.classes);
    double sum = 0;
    for (int v = 0; v < c_.classes; ++v) sum += std::exp(row[v] - top);
    loss += std::log(sum) - (row[labels[b]] - top);
    for (int v = 0; v < c_.classes; ++v) {
      row[v] = float(std::exp(row[v] - top) / sum - (v == labels[b])) / float(c_.batch);
    }
  }
  for (size_t l = layers_.size(); l-- > 0;) d = Backward(&layers_[l], shapes_[l], std::move(d));
  return float(loss / c_.batch);
}

inline void VggReference::Update(const Momentum& step) {
  const auto update = [&](Values* weights, const Values& gradient, Values* velocity) {
    for (size_t i = 0; i < weights->size(); ++i) {
      (*velocity)[i] = step.keep * (*velocity)[i] + gradient[i];
      (*weights)[i] -= step.learning_rate * (*velocity)[i];
    }
  };
  for (Layer& a : layers_) {
    update(&a.weights, a.weights_gradient, &a.weights_velocity);
    update(&a.bias, a.bias_gradient, &a.bias_velocity);
  }
}

}  // namespace example
