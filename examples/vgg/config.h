// SPDX-License-Identifier: Apache-2.0
// Shape of VGG-19 (Simonyan and Zisserman, 2015, column E): 16 convolutions of 3 x 3 in five
// groups, each group followed by a pooling, and 3 fully connected layers. Shared by the device
// model and the CPU reference. Sizes are options; --channels 64 --image 224 --hidden 4096 --classes
// 1000 is the published one.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "examples/support/momentum.h"

namespace example {

inline constexpr int kGroups = 5;
inline constexpr int kConvolutionsOfGroup[kGroups] = {2, 2, 4, 4, 4};
inline constexpr int kChannelsOfGroup[kGroups] = {1, 2, 4, 8, 8};  // times the option
inline constexpr int kColours = 3;
inline constexpr int kTaps = 9;

struct VggConfig {
  int channels = 64, image = 32, hidden = 4096, classes = 1000, batch = 8;
  uint32_t seed = 1;
};

// A layer with weights; `size` is the edge of its (square) input and output, 1 when fully
// connected.
struct VggLayer {
  std::string name;
  int in, out, size;
  bool convolution, pooled, rectified;
  size_t depth() const { return size_t(in) * (convolution ? kTaps : 1); }
  size_t weights() const { return depth() * out; }
  size_t pixels() const { return size_t(size) * size; }
  // Uniform values of variance 2 / depth keep the size of activations through rectified layers.
  float scale() const { return std::sqrt(6.0f / float(depth())); }
};

inline std::vector<VggLayer> VggLayers(const VggConfig& c) {
  std::vector<VggLayer> layers;
  int in = kColours, size = c.image;
  for (int g = 0; g < kGroups; ++g, size /= 2) {
    for (int i = 0; i < kConvolutionsOfGroup[g]; ++i) {
      const int out = kChannelsOfGroup[g] * c.channels;
      const std::string name = "conv" + std::to_string(g + 1) + "_" + std::to_string(i + 1);
      layers.push_back({name, in, out, size, true, i + 1 == kConvolutionsOfGroup[g], true});
      in = out;
    }
  }
  layers.push_back({"fc6", in * size * size, c.hidden, 1, false, false, true});
  layers.push_back({"fc7", c.hidden, c.hidden, 1, false, false, true});
  layers.push_back({"fc8", c.hidden, c.classes, 1, false, false, false});
  return layers;
}

// Seed of the weights of a layer.
inline uint32_t VggSeed(const VggConfig& c, size_t layer) {
  return c.seed * 0x9e3779b9u + static_cast<uint32_t>(layer) * 0x7f4a7c15u;
}

}  // namespace example
