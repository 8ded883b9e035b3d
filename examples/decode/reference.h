// SPDX-License-Identifier: Apache-2.0
// The decoder in plain loops on the CPU, for comparison. It is told which tokens the device drew,
// so that logits can be compared place by place.
#pragma once

#include <vector>

#include "examples/decode/config.h"
#include "examples/support/random.h"

namespace example {

class DecodeReference {
 public:
  using Values = std::vector<float>;

  explicit DecodeReference(const DecodeConfig& config) : c_(config) {
    const std::vector<DecodeMatrix> list = DecodeMatrices(config);
    for (size_t m = 0; m < list.size(); ++m) {
      Values values(list[m].count());
      for (size_t i = 0; i < values.size(); ++i) {
        values[i] = Uniform(DecodeSeed(config, m), uint32_t(i), list[m].scale());
      }
      matrices_.push_back(values);
    }
    keys_.resize(size_t(config.layers) * config.batch);
    values_.resize(keys_.size());
    for (size_t cache = 0; cache < keys_.size(); ++cache) {
      FillByPrompt(cache, false, &keys_[cache]);
      FillByPrompt(cache, true, &values_[cache]);
    }
  }

  // Logits of all sequences after `tokens` at `place`.
  Values Step(int place, const std::vector<int>& tokens) {
    Values all;
    for (int b = 0; b < c_.batch; ++b) {
      Values x(c_.width);
      for (int i = 0; i < c_.width; ++i) {
        x[i] = matrices_[kTokenTable][size_t(tokens[b]) * c_.width + i] +
               matrices_[kPlaceTable][size_t(place) * c_.width + i];
      }
      for (int l = 0; l < c_.layers; ++l) {
        Add(&x, Multiply(W(l, kFromHeads), Attend(l, b, Multiply(W(l, kToQkv), Normal(x)))), 1);
        FeedForward(l, &x);
      }
      const Values logits = Multiply(matrices_[kHeadMatrix], Normal(x));
      all.insert(all.end(), logits.begin(), logits.end());
    }
    return all;
  }

 private:
  // On the device the sequences of a place stand together.
  void FillByPrompt(size_t cache, bool values, Values* to) const {
    const int layer = int(cache) / c_.batch, b = int(cache) % c_.batch;
    for (int place = 0; place < c_.prompt; ++place) {
      for (int i = 0; i < c_.width; ++i) {
        const size_t index = (size_t(place) * c_.batch + b) * c_.width + i;
        to->push_back(Uniform(PromptSeed(c_, layer, values), uint32_t(index), 1.0f));
      }
    }
  }
  const Values& W(int layer, size_t which) const {
    return matrices_[kDecodeLayers + layer * PerDecodeLayer(c_) + which];
  }
  static void Add(Values* x, const Values& y, float factor) {
    for (size_t i = 0; i < x->size(); ++i) (*x)[i] += factor * y[i];
  }
  static Values Normal(Values x) {
    float squares = 0;
    for (float v : x) squares += v * v;
    const float factor = 1.0f / std::sqrt(squares / float(x.size()) + kRmsEpsilon);
    for (float& v : x) v *= factor;
    return x;
  }
  static Values Multiply(const Values& matrix, const Values& x) {
    Values out(matrix.size() / x.size());
    for (size_t r = 0; r < out.size(); ++r) {
      for (size_t i = 0; i < x.size(); ++i) out[r] += matrix[r * x.size() + i] * x[i];
    }
    return out;
  }

  Values Attend(int layer, int b, const Values& qkv) {
    const int w = c_.width, hw = c_.head_width();
    Values& keys = keys_[size_t(layer) * c_.batch + b];
    Values& values = values_[size_t(layer) * c_.batch + b];
    keys.insert(keys.end(), qkv.begin() + w, qkv.begin() + 2 * w);
    values.insert(values.end(), qkv.begin() + 2 * w, qkv.end());
    const size_t length = keys.size() / w;
    Values out(w);
    for (int head = 0; head < c_.heads; ++head) {
      Values score(length);
      float top = -INFINITY, sum = 0;
      for (size_t s = 0; s < length; ++s) {
        for (int i = head * hw; i < (head + 1) * hw; ++i) score[s] += qkv[i] * keys[s * w + i];
        score[s] /= std::sqrt(float(hw));
        top = std::max(top, score[s]);
      }
      for (float& v : score) sum += v = std::exp(v - top);
      for (size_t s = 0; s < length; ++s) {
        for (int i = head * hw; i < (head + 1) * hw; ++i) {
          out[i] += score[s] / sum * values[s * w + i];
        }
      }
    }
    return out;
  }

  void FeedForward(int layer, Values* x) const {
    const Values norm = Normal(*x);
    std::vector<Share> shares = {{0, 1.0f}};
    if (c_.experts > 0) shares = Route(c_, layer, Multiply(W(layer, kGate), norm).data());
    for (const Share& share : shares) {
      Values wide = Multiply(W(layer, kExperts + 2 * share.expert), norm);
      for (float& v : wide) v = std::max(v, 0.0f);
      Add(x, Multiply(W(layer, kExperts + 2 * share.expert + 1), wide), share.weight);
    }
  }

  DecodeConfig c_;
  std::vector<Values> matrices_;
  std::vector<Values> keys_, values_;  // of each layer and sequence; they grow
};

}  // namespace example
