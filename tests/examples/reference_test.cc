// SPDX-License-Identifier: Apache-2.0
// The CPU reference of the transformer, by itself: its gradients against finite differences, and
// that it learns.
#include "examples/transformer/reference.h"

#include <gtest/gtest.h>

namespace {

using namespace example;  // NOLINT

Config Small() {
  Config c;
  c.layers = 2;
  c.width = 16;
  c.heads = 2;
  c.batch = 2;
  c.sequence = 6;
  c.seed = 3;
  return c;
}

std::vector<int> Tokens(const Config& c, uint32_t seed) {
  std::vector<int> tokens(c.tokens());
  for (int i = 0; i < c.tokens(); ++i) tokens[i] = Mix(seed + i) % 7 + 'a';
  return tokens;
}

// A reference whose weights can be set from outside.
class Adjustable : public Reference {
 public:
  using Reference::Reference;
  float& Weight(size_t parameter, size_t i) {
    return const_cast<std::vector<float>&>(Weights(parameter))[i];
  }
};

TEST(Reference, GradientsEqualFiniteDifferencesOfTheLoss) {
  const Config c = Small();
  const auto tokens = Tokens(c, 1), targets = Tokens(c, 2);
  Adjustable model(c);
  const auto shapes = ParameterShapes(c);
  // Larger weights than the initial ones, so that no gradient is lost in rounding.
  for (size_t p = 0; p < shapes.size(); ++p) {
    for (size_t i = 0; i < shapes[p].count; ++i) model.Weight(p, i) += Uniform(p + 50, i, 0.3f);
  }
  model.ForwardBackward(tokens, targets);
  for (size_t p = 0; p < shapes.size(); ++p) {
    const std::vector<float> gradient = model.Gradient(p);
    // Along the gradient itself the slope is its length.
    double length = 0;
    for (float g : gradient) length += double(g) * g;
    length = std::sqrt(length);
    const float step = 5e-3f;
    double losses[2];
    for (int side = 0; side < 2; ++side) {
      Adjustable moved = model;
      for (size_t i = 0; i < gradient.size(); ++i) {
        moved.Weight(p, i) += (side ? step : -step) * float(gradient[i] / length);
      }
      losses[side] = moved.ForwardBackward(tokens, targets);
    }
    EXPECT_NEAR((losses[1] - losses[0]) / (2 * step), length, 1e-2 * length + 2e-4)
        << shapes[p].name;
  }
}

TEST(Reference, LearnsABatchByHeart) {
  const Config c = Small();
  const auto tokens = Tokens(c, 1), targets = Tokens(c, 1);
  Reference model(c);
  const float first = model.ForwardBackward(tokens, targets);
  AdamW adam;
  adam.learning_rate = 1e-2f;
  for (int i = 1; i <= 30; ++i) {
    model.Update(adam, i);
    model.ForwardBackward(tokens, targets);
  }
  EXPECT_NEAR(first, std::log(256.0), 0.1);  // knows nothing yet
  EXPECT_LT(model.ForwardBackward(tokens, targets), 0.5f);
}

}  // namespace
