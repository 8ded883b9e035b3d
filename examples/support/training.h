// SPDX-License-Identifier: Apache-2.0
// What the training examples share. A model and its reference number their parameters alike;
// `parameters` describes each, with its name.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "examples/support/compare.h"
#include "examples/support/device.h"

namespace example {

// Of all weights, in the order of the parameters.
template <typename Model>
uint64_t WeightsChecksum(const Model& model, size_t parameters) {
  uint64_t sum = kChecksumStart;
  for (size_t p = 0; p < parameters; ++p) {
    const std::vector<float> weights = model.Weights(p);
    sum = Checksum(sum, weights.data(), weights.size());
  }
  return sum;
}

// Holds a step's loss and gradients against the reference, which has done the same step.
template <typename Model, typename Reference, typename Parameters>
void NoteStep(const Model& model, const Reference& reference, const Parameters& parameters,
              float loss, float expected, const std::string& suffix, WorstError* worst) {
  worst->Note("loss", std::fabs(loss - expected) / expected);
  for (size_t p = 0; p < parameters.size(); ++p) {
    worst->Note(parameters[p].name + suffix,
                RelativeError(model.Gradient(p), reference.Gradient(p)));
  }
}

}  // namespace example
