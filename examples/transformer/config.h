// SPDX-License-Identifier: Apache-2.0
// Shape of the transformer, and the list of its parameters: shared by the device model and the CPU
// reference.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

namespace example {

inline constexpr int kVocabulary = 256;  // tokens are bytes
inline constexpr float kNormEpsilon = 1e-5f;

struct Config {
  int layers = 4;
  int width = 256;
  int heads = 4;
  int batch = 4;
  int sequence = 32;
  uint32_t seed = 1;

  int tokens() const { return batch * sequence; }
  int head_width() const { return width / heads; }
};

struct AdamW {
  float learning_rate = 1e-3f;
  float beta1 = 0.9f;
  float beta2 = 0.95f;
  float epsilon = 1e-8f;
  float decay = 0.01f;
};

struct ParameterShape {
  std::string name;
  size_t count;
  float scale;  // of the uniform initial values; 0: all `initial`
  float initial;
  bool decays;  // weight decay applies to matrices only
};

// Indices into the list of parameters. Layer l's begin at kLayers + l * kPerLayer.
enum Parameter {
  kTokenEmbedding,
  kPositionEmbedding,
  kFinalGain,
  kFinalShift,
  kHead,
  kLayers,
  // within a layer
  kNorm1Gain = 0,
  kNorm1Shift,
  kQkv,
  kProjection,
  kProjectionBias,
  kNorm2Gain,
  kNorm2Shift,
  kUp,
  kUpBias,
  kDown,
  kDownBias,
  kPerLayer
};

inline std::vector<ParameterShape> ParameterShapes(const Config& c) {
  const size_t w = c.width;
  const float std = 0.02f * std::sqrt(3.0f);  // a uniform distribution of deviation 0.02
  const float residual = std / std::sqrt(2.0f * c.layers);
  std::vector<ParameterShape> shapes = {
      {"token_embedding", kVocabulary * w, std, 0, true},
      {"position_embedding", c.sequence * w, std, 0, true},
      {"final_gain", w, 0, 1, false},
      {"final_shift", w, 0, 0, false},
      {"head", w * kVocabulary, std, 0, true},
  };
  for (int l = 0; l < c.layers; ++l) {
    const std::string at = "layer" + std::to_string(l) + ".";
    const ParameterShape layer[] = {
        {at + "norm1_gain", w, 0, 1, false},      {at + "norm1_shift", w, 0, 0, false},
        {at + "qkv", w * 3 * w, std, 0, true},    {at + "projection", w * w, residual, 0, true},
        {at + "projection_bias", w, 0, 0, false}, {at + "norm2_gain", w, 0, 1, false},
        {at + "norm2_shift", w, 0, 0, false},     {at + "up", w * 4 * w, std, 0, true},
        {at + "up_bias", 4 * w, 0, 0, false},     {at + "down", 4 * w * w, residual, 0, true},
        {at + "down_bias", w, 0, 0, false},
    };
    shapes.insert(shapes.end(), layer, layer + kPerLayer);
  }
  return shapes;
}

// The seed of parameter `index`, so that each has its own numbers.
inline uint32_t ParameterSeed(const Config& c, size_t index) {
  return c.seed * 0x9e3779b9u + static_cast<uint32_t>(index) * 0x7f4a7c15u;
}

}  // namespace example
