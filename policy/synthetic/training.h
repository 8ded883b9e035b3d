// SPDX-License-Identifier: Apache-2.0
// Training shapes: forward, backward, optimizer. Used by synthetic.cc only.
#pragma once

#include <vector>

#include "policy/synthetic/builder.h"

namespace atp::policy {

struct TrainingShape {
  uint32_t skip = 0;       // a layer also reads the output of so many layers before it (residual)
  bool attention = false;  // layers are projections, scores, softmax, output
  bool optimizer = false;  // weights have two states that a last phase updates in place
  uint32_t micro_batches = 1;
  double scale = 1;  // of activations (a shorter sequence)
};

void AddTraining(const TrainingShape& shape, TraceBuilder* builder);

}  // namespace atp::policy
