// SPDX-License-Identifier: Apache-2.0
// Shape of the LSTM and the list of its parameters: shared by the device model and the CPU
// reference. Inputs of every layer are as wide as its state.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "examples/support/momentum.h"

namespace example {

inline constexpr int kSymbols = 256;  // tokens are bytes
inline constexpr int kGates = 4;      // input, forget, candidate, output: this order in a row

struct LstmConfig {
  int layers = 2, hidden = 256, batch = 8, sequence = 16;
  uint32_t seed = 1;
};

struct LstmParameter {
  std::string name;
  size_t count;
  float scale;  // of the uniform initial values; 0: zeros
};

// Indices into the list of parameters. Layer l's begin at kLstmLayers + l * kPerLstmLayer.
enum LstmIndex {
  kEmbedding,
  kOutput,
  kLstmLayers,
  // within a layer
  kFromInput = 0,
  kFromState,
  kGateBias,
  kPerLstmLayer
};

inline std::vector<LstmParameter> LstmParameters(const LstmConfig& c) {
  const size_t h = c.hidden;
  const float scale = 1.0f / std::sqrt(float(h));
  std::vector<LstmParameter> list = {{"embedding", kSymbols * h, 0.5f},
                                     {"output", h * kSymbols, scale}};
  for (int l = 0; l < c.layers; ++l) {
    const std::string at = "layer" + std::to_string(l) + ".";
    list.push_back({at + "from_input", h * kGates * h, scale});
    list.push_back({at + "from_state", h * kGates * h, scale});
    list.push_back({at + "bias", kGates * h, 0});
  }
  return list;
}

inline uint32_t LstmSeed(const LstmConfig& c, size_t parameter) {
  return c.seed * 0x9e3779b9u + static_cast<uint32_t>(parameter) * 0x7f4a7c15u;
}

}  // namespace example
