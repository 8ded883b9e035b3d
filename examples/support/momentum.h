// SPDX-License-Identifier: Apache-2.0
// Gradient descent with momentum: the step, for device and reference.
#pragma once

namespace example {

struct Momentum {
  float learning_rate = 0.01f;
  float keep = 0.9f;
};

}  // namespace example
