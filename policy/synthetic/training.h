// SPDX-License-Identifier: Apache-2.0
// Training shapes: forward, backward, optimizer. Used by synthetic.cc only. Pure; any thread.
#pragma once

#include <vector>

#include "policy/synthetic/builder.h"

namespace atp::policy {

struct TrainingShape {
  uint32_t skip = 0;        // a layer also reads the output of so many layers before it (residual)
  bool attention = false;   // layers are projections, scores, softmax, output
  bool optimizer = false;   // weights have two states that a last phase updates in place
  bool accumulate = false;  // later passes add to the gradients of the first (micro-batches)
  // Passes through the layers in a period, each with the scale of its activations (a shorter
  // sequence).
  std::vector<double> passes = {1.0};
};

void AddTraining(const TrainingShape& shape, SyntheticBuilder* builder);

}  // namespace atp::policy
