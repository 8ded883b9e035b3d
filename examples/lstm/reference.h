// SPDX-License-Identifier: Apache-2.0
// The LSTM in plain loops on the CPU, for comparison.
#pragma once

#include <algorithm>
#include <vector>

#include "examples/lstm/config.h"
#include "examples/support/random.h"

namespace example {

class LstmReference {
 public:
  using Values = std::vector<float>;

  explicit LstmReference(const LstmConfig& config) : c_(config), list_(LstmParameters(config)) {
    for (size_t p = 0; p < list_.size(); ++p) {
      Values weights(list_[p].count);
      for (size_t i = 0; i < weights.size() && list_[p].scale > 0; ++i) {
        weights[i] = Uniform(LstmSeed(c_, p), uint32_t(i), list_[p].scale);
      }
      weights_.push_back(weights);
      gradients_.emplace_back(list_[p].count);
      velocities_.emplace_back(list_[p].count);
    }
  }

  // Tokens and targets as the device model wants them. Returns the mean loss.
  float ForwardBackward(const std::vector<int>& tokens, const std::vector<int>& targets);
  void Update(const Momentum& step);
  const Values& Weights(size_t p) const { return weights_[p]; }
  const Values& Gradient(size_t p) const { return gradients_[p]; }

 private:
  struct Step {  // of one sequence, one layer
    Values input, gates, cell, state;
  };
  Values& W(int l, int which) { return weights_[kLstmLayers + l * kPerLstmLayer + which]; }
  Values& G(int l, int which) { return gradients_[kLstmLayers + l * kPerLstmLayer + which]; }
  Step Forward(int l, const Values& input, const Step* before);
  void Backward(int l, const Step& now, const Step* before, Values* d_state, Values* d_cell,
                Values* d_input);
  double Sequence(const int* tokens, const std::vector<int>& targets, int b);

  LstmConfig c_;
  std::vector<LstmParameter> list_;
  std::vector<Values> weights_, gradients_, velocities_;
};

inline LstmReference::Step LstmReference::Forward(int l, const Values& input, const Step* before) {
  const int h = c_.hidden, wide = kGates * h;
  Step now{input, W(l, kGateBias), Values(h), Values(h)};
  for (int i = 0; i < h; ++i) {
    for (int g = 0; g < wide; ++g) {
      now.gates[g] += input[i] * W(l, kFromInput)[size_t(i) * wide + g];
      if (before) now.gates[g] += before->state[i] * W(l, kFromState)[size_t(i) * wide + g];
    }
  }
  for (int g = 0; g < wide; ++g) {
    float& x = now.gates[g];
    x = g / h == 2 ? std::tanh(x) : 1.0f / (1.0f + std::exp(-x));
  }
  for (int i = 0; i < h; ++i) {
    now.cell[i] =
        now.gates[i] * now.gates[2 * h + i] + (before ? now.gates[h + i] * before->cell[i] : 0.0f);
    now.state[i] = now.gates[3 * h + i] * std::tanh(now.cell[i]);
  }
  return now;
}

// d_state and d_cell: of this step on entry, of the step before on return. Adds to d_input.
inline void LstmReference::Backward(int l, const Step& now, const Step* before, Values* d_state,
                                    Values* d_cell, Values* d_input) {
  const int h = c_.hidden, wide = kGates * h;
  Values d_gates(wide);
  for (int i = 0; i < h; ++i) {
    const float in = now.gates[i], forget = now.gates[h + i];
    const float candidate = now.gates[2 * h + i], out = now.gates[3 * h + i];
    const float curved = std::tanh(now.cell[i]);
    const float d = (*d_cell)[i] + (*d_state)[i] * out * (1 - curved * curved);
    d_gates[i] = d * candidate * in * (1 - in);
    d_gates[h + i] = before ? d * before->cell[i] * forget * (1 - forget) : 0.0f;
    d_gates[2 * h + i] = d * in * (1 - candidate * candidate);
    d_gates[3 * h + i] = (*d_state)[i] * curved * out * (1 - out);
    (*d_cell)[i] = d * forget;
  }
  for (int g = 0; g < wide; ++g) G(l, kGateBias)[g] += d_gates[g];
  for (int i = 0; i < h; ++i) {
    float from_state = 0, from_input = 0;
    for (int g = 0; g < wide; ++g) {
      const size_t at = size_t(i) * wide + g;
      G(l, kFromInput)[at] += now.input[i] * d_gates[g];
      if (before) G(l, kFromState)[at] += before->state[i] * d_gates[g];
      from_input += d_gates[g] * W(l, kFromInput)[at];
      from_state += d_gates[g] * W(l, kFromState)[at];
    }
    (*d_input)[i] += from_input;
    (*d_state)[i] = from_state;
  }
}

// Loss of one sequence; its gradients are added.
inline double LstmReference::Sequence(const int* tokens, const std::vector<int>& targets, int b) {
  const int h = c_.hidden, steps = c_.sequence, last = c_.layers - 1;
  std::vector<std::vector<Step>> kept(c_.layers);
  std::vector<Values> d_logits;
  double loss = 0;
  for (int t = 0; t < steps; ++t) {
    const float* row = &weights_[kEmbedding][size_t(tokens[t]) * h];
    Values in(row, row + h);
    for (int l = 0; l <= last; ++l) {
      kept[l].push_back(Forward(l, in, t > 0 ? &kept[l][t - 1] : nullptr));
      in = kept[l][t].state;
    }
    Values logits(kSymbols);
    for (int i = 0; i < h; ++i) {
      for (int v = 0; v < kSymbols; ++v) {
        logits[v] += in[i] * weights_[kOutput][size_t(i) * kSymbols + v];
      }
    }
    const int target = targets[size_t(t) * c_.batch + b];
    const float top = *std::max_element(logits.begin(), logits.end());
    double sum = 0;
    for (float x : logits) sum += std::exp(x - top);
    loss += std::log(sum) - (logits[target] - top);
    for (int v = 0; v < kSymbols; ++v) {
      logits[v] = float(std::exp(logits[v] - top) / sum - (v == target)) / float(c_.batch * steps);
    }
    d_logits.push_back(logits);
  }
  std::vector<Values> d_state(c_.layers, Values(h)), d_cell(c_.layers, Values(h));
  for (int t = steps - 1; t >= 0; --t) {
    for (int i = 0; i < h; ++i) {
      for (int v = 0; v < kSymbols; ++v) {
        gradients_[kOutput][size_t(i) * kSymbols + v] += kept[last][t].state[i] * d_logits[t][v];
        d_state[last][i] += d_logits[t][v] * weights_[kOutput][size_t(i) * kSymbols + v];
      }
    }
    Values d_embedded(h);
    for (int l = last; l >= 0; --l) {
      Backward(l, kept[l][t], t > 0 ? &kept[l][t - 1] : nullptr, &d_state[l], &d_cell[l],
               l > 0 ? &d_state[l - 1] : &d_embedded);
    }
    for (int i = 0; i < h; ++i) gradients_[kEmbedding][size_t(tokens[t]) * h + i] += d_embedded[i];
  }
  return loss;
}

inline float LstmReference::ForwardBackward(const std::vector<int>& tokens,
                                            const std::vector<int>& targets) {
  for (Values& g : gradients_) std::fill(g.begin(), g.end(), 0.0f);
  double loss = 0;
  for (int b = 0; b < c_.batch; ++b) {
    loss += Sequence(&tokens[size_t(b) * c_.sequence], targets, b);
  }
  return float(loss / (c_.batch * c_.sequence));
}

inline void LstmReference::Update(const Momentum& step) {
  for (size_t p = 0; p < list_.size(); ++p) {
    for (size_t i = 0; i < list_[p].count; ++i) {
      velocities_[p][i] = step.keep * velocities_[p][i] + gradients_[p][i];
      weights_[p][i] -= step.learning_rate * velocities_[p][i];
    }
  }
}

}  // namespace example
