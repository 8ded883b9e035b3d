// SPDX-License-Identifier: Apache-2.0
// The same transformer in plain loops on the CPU, float32, written without looking at how the
// device does it: what
// --check and the tests compare with. Slow; meant for small shapes.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "examples/support/random.h"
#include "examples/transformer/config.h"

namespace example {

class Reference {
 public:
  explicit Reference(const Config& config);

  // Forward and backward; returns the mean loss.
  float ForwardBackward(const std::vector<int>& tokens, const std::vector<int>& targets);
  void Update(const AdamW& adam, int step);
  void SetSequence(int sequence) {
    c_.sequence = sequence;
    n_ = c_.tokens();
  }

  const std::vector<float>& Weights(size_t parameter) const { return weights_[parameter]; }
  const std::vector<float>& Gradient(size_t parameter) const { return gradients_[parameter]; }

 private:
  using Values = std::vector<float>;
  struct Norm {
    Values out, mean, inverse;
  };
  struct Layer {
    Values input, qkv, attention, mixed, middle, up, gelu;
    Norm norm1, norm2;
  };

  const Values& W(int l, int p) const { return weights_[kLayers + l * kPerLayer + p]; }
  Values& G(int l, int p) { return gradients_[kLayers + l * kPerLayer + p]; }

  Values Product(const Values& in, const Values& w, int from, int to) const;
  void ProductBackward(const Values& in, const Values& w, const Values& d_out, int from, int to,
                       Values* d_in, Values* d_w) const;
  Norm Normalise(const Values& in, const Values& gain, const Values& shift) const;
  void NormaliseBackward(const Values& in, const Norm& norm, const Values& gain,
                         const Values& d_out, Values* d_in, Values* d_gain, Values* d_shift) const;
  void Attend(Layer* a) const;
  Values AttendBackward(const Layer& a, const Values& d_mixed) const;
  Values ForwardLayer(int l, const Values& input);
  void BackwardLayer(int l, Values* d);
  float CrossEntropy(Values* logits, const std::vector<int>& targets) const;

  Config c_;
  int n_, w_;
  std::vector<ParameterShape> shapes_;
  std::vector<Values> weights_, gradients_, first_, second_;
  std::vector<Layer> layers_;
};

inline Reference::Reference(const Config& config)
    : c_(config), n_(config.tokens()), w_(config.width), shapes_(ParameterShapes(config)) {
  for (size_t i = 0; i < shapes_.size(); ++i) {
    const ParameterShape& s = shapes_[i];
    Values values(s.count, s.initial);
    for (size_t k = 0; s.scale > 0 && k < s.count; ++k) {
      values[k] = Uniform(ParameterSeed(config, i), static_cast<uint32_t>(k), s.scale);
    }
    weights_.push_back(values);
    gradients_.emplace_back(s.count);
    first_.emplace_back(s.count);
    second_.emplace_back(s.count);
  }
  layers_.resize(config.layers);
}

inline Reference::Values Reference::Product(const Values& in, const Values& w, int from,
                                            int to) const {
  Values out(size_t(n_) * to);
  for (int n = 0; n < n_; ++n) {
    for (int i = 0; i < from; ++i) {
      for (int o = 0; o < to; ++o) out[n * to + o] += in[n * from + i] * w[size_t(i) * to + o];
    }
  }
  return out;
}

inline void Reference::ProductBackward(const Values& in, const Values& w, const Values& d_out,
                                       int from, int to, Values* d_in, Values* d_w) const {
  d_in->assign(size_t(n_) * from, 0);
  d_w->assign(size_t(from) * to, 0);
  for (int n = 0; n < n_; ++n) {
    for (int i = 0; i < from; ++i) {
      float sum = 0;
      for (int o = 0; o < to; ++o) {
        sum += d_out[n * to + o] * w[size_t(i) * to + o];
        (*d_w)[size_t(i) * to + o] += in[n * from + i] * d_out[n * to + o];
      }
      (*d_in)[n * from + i] = sum;
    }
  }
}

inline Reference::Norm Reference::Normalise(const Values& in, const Values& gain,
                                            const Values& shift) const {
  Norm norm{Values(in.size()), Values(n_), Values(n_)};
  for (int n = 0; n < n_; ++n) {
    const float* row = &in[size_t(n) * w_];
    float mean = 0, variance = 0;
    for (int i = 0; i < w_; ++i) mean += row[i] / w_;
    for (int i = 0; i < w_; ++i) variance += (row[i] - mean) * (row[i] - mean) / w_;
    norm.mean[n] = mean;
    norm.inverse[n] = 1.0f / std::sqrt(variance + kNormEpsilon);
    for (int i = 0; i < w_; ++i) {
      norm.out[size_t(n) * w_ + i] = (row[i] - mean) * norm.inverse[n] * gain[i] + shift[i];
    }
  }
  return norm;
}

inline void Reference::NormaliseBackward(const Values& in, const Norm& norm, const Values& gain,
                                         const Values& d_out, Values* d_in, Values* d_gain,
                                         Values* d_shift) const {
  std::fill(d_gain->begin(), d_gain->end(), 0.0f);
  std::fill(d_shift->begin(), d_shift->end(), 0.0f);
  for (int n = 0; n < n_; ++n) {
    float sum = 0, product = 0;
    const auto normal = [&](int i) {
      return (in[size_t(n) * w_ + i] - norm.mean[n]) * norm.inverse[n];
    };
    for (int i = 0; i < w_; ++i) {
      const float d = d_out[size_t(n) * w_ + i];
      (*d_gain)[i] += d * normal(i);
      (*d_shift)[i] += d;
      sum += d * gain[i] / w_;
      product += d * gain[i] * normal(i) / w_;
    }
    for (int i = 0; i < w_; ++i) {
      const float d = d_out[size_t(n) * w_ + i] * gain[i];
      (*d_in)[size_t(n) * w_ + i] += (d - sum - normal(i) * product) * norm.inverse[n];
    }
  }
}

inline void Reference::Attend(Layer* a) const {
  const int t_count = c_.sequence, width = c_.head_width();
  const float scale = 1.0f / std::sqrt(float(width));
  a->attention.assign(size_t(c_.batch) * c_.heads * t_count * t_count, 0);
  a->mixed.assign(size_t(n_) * w_, 0);
  for (int b = 0; b < c_.batch; ++b) {
    for (int h = 0; h < c_.heads; ++h) {
      for (int t = 0; t < t_count; ++t) {
        float* p = &a->attention[((size_t(b) * c_.heads + h) * t_count + t) * t_count];
        const float* q = &a->qkv[(size_t(b) * t_count + t) * 3 * w_ + h * width];
        float total = 0;
        for (int s = 0; s <= t; ++s) {
          const float* k = &a->qkv[(size_t(b) * t_count + s) * 3 * w_ + w_ + h * width];
          for (int i = 0; i < width; ++i) p[s] += q[i] * k[i] * scale;
        }
        const float top = *std::max_element(p, p + t + 1);
        for (int s = 0; s <= t; ++s) total += p[s] = std::exp(p[s] - top);
        for (int s = 0; s <= t; ++s) {
          p[s] /= total;
          const float* v = &a->qkv[(size_t(b) * t_count + s) * 3 * w_ + 2 * w_ + h * width];
          float* out = &a->mixed[(size_t(b) * t_count + t) * w_ + h * width];
          for (int i = 0; i < width; ++i) out[i] += p[s] * v[i];
        }
      }
    }
  }
}

inline Reference::Values Reference::AttendBackward(const Layer& a, const Values& d_mixed) const {
  const int t_count = c_.sequence, width = c_.head_width();
  const float scale = 1.0f / std::sqrt(float(width));
  Values d_qkv(a.qkv.size());
  for (int b = 0; b < c_.batch; ++b) {
    for (int h = 0; h < c_.heads; ++h) {
      for (int t = 0; t < t_count; ++t) {
        const float* p = &a.attention[((size_t(b) * c_.heads + h) * t_count + t) * t_count];
        const float* d = &d_mixed[(size_t(b) * t_count + t) * w_ + h * width];
        const size_t q = (size_t(b) * t_count + t) * 3 * w_ + h * width;
        Values d_p(t + 1);
        float inner = 0;
        for (int s = 0; s <= t; ++s) {
          const size_t v = (size_t(b) * t_count + s) * 3 * w_ + 2 * w_ + h * width;
          for (int i = 0; i < width; ++i) {
            d_p[s] += d[i] * a.qkv[v + i];
            d_qkv[v + i] += p[s] * d[i];
          }
          inner += p[s] * d_p[s];
        }
        for (int s = 0; s <= t; ++s) {
          const size_t k = (size_t(b) * t_count + s) * 3 * w_ + w_ + h * width;
          const float d_score = p[s] * (d_p[s] - inner) * scale;
          for (int i = 0; i < width; ++i) {
            d_qkv[q + i] += d_score * a.qkv[k + i];
            d_qkv[k + i] += d_score * a.qkv[q + i];
          }
        }
      }
    }
  }
  return d_qkv;
}

inline Reference::Values Reference::ForwardLayer(int l, const Values& input) {
  Layer& a = layers_[l];
  a.input = input;
  a.norm1 = Normalise(input, W(l, kNorm1Gain), W(l, kNorm1Shift));
  a.qkv = Product(a.norm1.out, W(l, kQkv), w_, 3 * w_);
  Attend(&a);
  a.middle = Product(a.mixed, W(l, kProjection), w_, w_);
  for (int i = 0; i < n_ * w_; ++i) a.middle[i] += W(l, kProjectionBias)[i % w_] + input[i];
  a.norm2 = Normalise(a.middle, W(l, kNorm2Gain), W(l, kNorm2Shift));
  a.up = Product(a.norm2.out, W(l, kUp), w_, 4 * w_);
  a.gelu.resize(a.up.size());
  for (size_t i = 0; i < a.up.size(); ++i) {
    const float x = a.up[i] += W(l, kUpBias)[i % (4 * w_)];
    a.gelu[i] = 0.5f * x * (1 + std::tanh(0.7978845608f * (x + 0.044715f * x * x * x)));
  }
  Values out = Product(a.gelu, W(l, kDown), 4 * w_, w_);
  for (int i = 0; i < n_ * w_; ++i) out[i] += W(l, kDownBias)[i % w_] + a.middle[i];
  return out;
}

inline void Reference::BackwardLayer(int l, Values* d) {
  Layer& a = layers_[l];
  const auto column_sums = [this](const Values& in, int columns, Values* out) {
    std::fill(out->begin(), out->end(), 0.0f);
    for (size_t i = 0; i < in.size(); ++i) (*out)[i % columns] += in[i];
  };
  Values d_gelu, d_norm, d_mixed;
  column_sums(*d, w_, &G(l, kDownBias));
  ProductBackward(a.gelu, W(l, kDown), *d, 4 * w_, w_, &d_gelu, &G(l, kDown));
  for (size_t i = 0; i < d_gelu.size(); ++i) {
    const float x = a.up[i], t = std::tanh(0.7978845608f * (x + 0.044715f * x * x * x));
    const float slope = 0.7978845608f * (1 + 3 * 0.044715f * x * x);
    d_gelu[i] *= 0.5f * (1 + t) + 0.5f * x * (1 - t * t) * slope;
  }
  column_sums(d_gelu, 4 * w_, &G(l, kUpBias));
  ProductBackward(a.norm2.out, W(l, kUp), d_gelu, w_, 4 * w_, &d_norm, &G(l, kUp));
  NormaliseBackward(a.middle, a.norm2, W(l, kNorm2Gain), d_norm, d, &G(l, kNorm2Gain),
                    &G(l, kNorm2Shift));
  column_sums(*d, w_, &G(l, kProjectionBias));
  ProductBackward(a.mixed, W(l, kProjection), *d, w_, w_, &d_mixed, &G(l, kProjection));
  const Values d_qkv = AttendBackward(a, d_mixed);
  ProductBackward(a.norm1.out, W(l, kQkv), d_qkv, w_, 3 * w_, &d_norm, &G(l, kQkv));
  NormaliseBackward(a.input, a.norm1, W(l, kNorm1Gain), d_norm, d, &G(l, kNorm1Gain),
                    &G(l, kNorm1Shift));
}

// Turns the logits into the gradient of the mean loss.
inline float Reference::CrossEntropy(Values* logits, const std::vector<int>& targets) const {
  double loss = 0;
  for (int n = 0; n < n_; ++n) {
    float* row = &(*logits)[size_t(n) * kVocabulary];
    const float top = *std::max_element(row, row + kVocabulary);
    double sum = 0;
    for (int v = 0; v < kVocabulary; ++v) sum += std::exp(row[v] - top);
    loss += std::log(sum) - (row[targets[n]] - top);
    for (int v = 0; v < kVocabulary; ++v) {
      row[v] = float(std::exp(row[v] - top) / sum - (v == targets[n])) / n_;
    }
  }
  return float(loss / n_);
}

inline float Reference::ForwardBackward(const std::vector<int>& tokens,
                                        const std::vector<int>& targets) {
  Values x(size_t(n_) * w_);
  for (int n = 0; n < n_; ++n) {
    for (int i = 0; i < w_; ++i) {
      x[size_t(n) * w_ + i] = weights_[kTokenEmbedding][size_t(tokens[n]) * w_ + i] +
                              weights_[kPositionEmbedding][size_t(n % c_.sequence) * w_ + i];
    }
  }
  for (int l = 0; l < c_.layers; ++l) x = ForwardLayer(l, x);
  const Norm final = Normalise(x, weights_[kFinalGain], weights_[kFinalShift]);
  Values logits = Product(final.out, weights_[kHead], w_, kVocabulary);
  const float loss = CrossEntropy(&logits, targets);

  Values d_norm, d(size_t(n_) * w_);
  ProductBackward(final.out, weights_[kHead], logits, w_, kVocabulary, &d_norm, &gradients_[kHead]);
  NormaliseBackward(x, final, weights_[kFinalGain], d_norm, &d, &gradients_[kFinalGain],
                    &gradients_[kFinalShift]);
  for (int l = c_.layers - 1; l >= 0; --l) BackwardLayer(l, &d);
  std::fill(gradients_[kTokenEmbedding].begin(), gradients_[kTokenEmbedding].end(), 0.0f);
  std::fill(gradients_[kPositionEmbedding].begin(), gradients_[kPositionEmbedding].end(), 0.0f);
  for (int n = 0; n < n_; ++n) {
    for (int i = 0; i < w_; ++i) {
      gradients_[kTokenEmbedding][size_t(tokens[n]) * w_ + i] += d[size_t(n) * w_ + i];
      gradients_[kPositionEmbedding][size_t(n % c_.sequence) * w_ + i] += d[size_t(n) * w_ + i];
    }
  }
  return loss;
}

inline void Reference::Update(const AdamW& adam, int step) {
  const float correct1 = 1 - std::pow(adam.beta1, float(step));
  const float correct2 = 1 - std::pow(adam.beta2, float(step));
  for (size_t p = 0; p < shapes_.size(); ++p) {
    for (size_t i = 0; i < shapes_[p].count; ++i) {
      const float g = gradients_[p][i];
      float& m = first_[p][i];
      float& v = second_[p][i];
      float& w = weights_[p][i];
      m = adam.beta1 * m + (1 - adam.beta1) * g;
      v = adam.beta2 * v + (1 - adam.beta2) * g * g;
      const float decay = shapes_[p].decays ? adam.decay * w : 0;
      w -= adam.learning_rate * (m / correct1 / (std::sqrt(v / correct2) + adam.epsilon) + decay);
    }
  }
}

}  // namespace example
