// SPDX-License-Identifier: Apache-2.0
// Wrong predictions, by seed: a plan is made from what was predicted and replayed on what happens.
// Pure; the same seed gives the same trace on every machine.
#pragma once

#include <cstdint>

#include "policy/trace.h"

namespace atp::policy {

struct Noise {
  double durations = 0;      // standard deviation of each launch's time, relative
  double bandwidth = 0;      // standard deviation of each direction's rate, relative
  double missed = 0;         // share of touches that the prediction lacks
  double false_touches = 0;  // touches that the prediction adds, as a share of the true ones
  uint64_t seed = 1;
  // A false touch is of a tensor that a launch at most so many positions away touches:
  // over-prediction reaches into what lies beside the true range. 0 = any tensor of the trace.
  uint32_t false_reach = 8;
};

// What happens: other durations and rates, cut at two standard deviations.
Trace Happens(const Trace& trace, const Noise& noise);
// What was predicted: the durations and rates of `trace`, touches missing and added.
Trace Predicted(const Trace& trace, const Noise& noise);

}  // namespace atp::policy
