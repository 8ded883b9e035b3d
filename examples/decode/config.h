// SPDX-License-Identifier: Apache-2.0
// Shape of the decoder, and its weights: shared by the device model and the CPU reference. Matrices
// are stored one row per output, so that a row times a vector reads consecutive bytes.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

namespace example {

inline constexpr int kTokens = 256;  // tokens are bytes
inline constexpr int kMostSequences = 8;
inline constexpr float kRmsEpsilon = 1e-5f;

struct DecodeConfig {
  int layers = 4, width = 256, heads = 4, batch = 2, context = 64;
  int experts = 0;  // 0: one dense feed-forward network a layer
  int top = 2;      // experts that a sequence uses in a layer
  int prompt = 0;   // places of the caches that are filled at the start, as by a prompt
  uint32_t seed = 1;

  int head_width() const { return width / heads; }
  int wide() const { return 4 * width; }
};

struct DecodeMatrix {
  std::string name;
  int rows, columns;
  size_t count() const { return size_t(rows) * columns; }
  float scale() const { return std::sqrt(3.0f / float(columns)); }  // keeps the size of vectors
};

// Indices into the list of matrices. Layer l's begin at kDecodeLayers + l * PerLayer(config).
enum DecodeIndex {
  kTokenTable,
  kPlaceTable,
  kHeadMatrix,
  kDecodeLayers,
  // within a layer
  kToQkv = 0,
  kFromHeads,
  kGate,     // with experts only
  kExperts,  // then up and down of each; the dense network is expert 0 of one
};

inline int ExpertsOf(const DecodeConfig& c) { return c.experts > 0 ? c.experts : 1; }
inline size_t PerDecodeLayer(const DecodeConfig& c) { return kExperts + 2 * ExpertsOf(c); }

inline std::vector<DecodeMatrix> DecodeMatrices(const DecodeConfig& c) {
  std::vector<DecodeMatrix> list = {{"token_table", kTokens, c.width},
                                    {"place_table", c.context, c.width},
                                    {"head", kTokens, c.width}};
  for (int l = 0; l < c.layers; ++l) {
    const std::string at = "layer" + std::to_string(l) + ".";
    list.push_back({at + "qkv", 3 * c.width, c.width});
    list.push_back({at + "heads", c.width, c.width});
    list.push_back({at + "gate", ExpertsOf(c), c.width});
    for (int e = 0; e < ExpertsOf(c); ++e) {
      list.push_back({at + "up" + std::to_string(e), c.wide(), c.width});
      list.push_back({at + "down" + std::to_string(e), c.width, c.wide()});
    }
  }
  return list;
}

inline uint32_t DecodeSeed(const DecodeConfig& c, size_t matrix) {
  return c.seed * 0x9e3779b9u + static_cast<uint32_t>(matrix) * 0x7f4a7c15u;
}

// Keys of a layer, or its values: what a prompt has left there is drawn at random.
inline uint32_t PromptSeed(const DecodeConfig& c, int layer, bool values) {
  return DecodeSeed(c, DecodeMatrices(c).size() + 2 * size_t(layer) + (values ? 1 : 0));
}

// Routing is skewed, as it is in trained models: expert e of a layer starts behind the favourite.
// Which expert is the favourite differs from layer to layer.
inline float GateBias(const DecodeConfig& c, int layer, int expert) {
  const int rank = (expert + 5 * layer) % ExpertsOf(c);
  return -1.2f * std::log(float(rank + 1));
}

struct Share {
  int expert;
  float weight;
};

// The experts of a sequence, by its gate values, with softmax weights.
inline std::vector<Share> Route(const DecodeConfig& c, int layer, const float* gate) {
  std::vector<Share> chosen;
  for (int k = 0; k < c.top; ++k) {
    int best = -1;
    float most = 0;
    for (int e = 0; e < c.experts; ++e) {
      bool taken = false;
      for (const Share& s : chosen) taken = taken || s.expert == e;
      const float value = gate[e] + GateBias(c, layer, e);
      if (!taken && (best < 0 || value > most)) {
        best = e;
        most = value;
      }
    }
    chosen.push_back({best, most});
  }
  float sum = 0;
  const float top = chosen[0].weight;
  for (Share& s : chosen) sum += s.weight = std::exp(s.weight - top);
  for (Share& s : chosen) s.weight /= sum;
  return chosen;
}

}  // namespace example
