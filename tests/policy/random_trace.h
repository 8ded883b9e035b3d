// SPDX-License-Identifier: Apache-2.0
// Random traces for property tests, by seed.
#pragma once

#include <cstdint>
#include <random>
#include <string>

#include "policy/trace.h"

namespace atp::policy {

struct RandomTraceOptions {
  uint32_t launches = 8, tensors = 6;
  uint32_t touches = 2;         // most of each kind for a launch
  Bytes unit = 1;               // sizes are multiples of it
  uint32_t most_units = 1;      // of a tensor
  uint32_t most_workspace = 0;  // units
  double second_step = 1;       // durations are 1, 2 or 3 of it
  double units_per_second = 1;  // both directions of the link
};

inline Trace RandomTrace(uint64_t seed, const RandomTraceOptions& o) {
  std::mt19937_64 random(seed);
  auto below = [&](uint64_t n) { return n == 0 ? 0 : random() % n; };
  Trace trace;
  trace.name = std::to_string(seed);
  trace.link.h2d = trace.link.d2h = o.units_per_second * static_cast<double>(o.unit);
  for (uint32_t t = 0; t < o.tensors; ++t) {
    Tensor tensor;
    tensor.id = std::to_string(t);
    tensor.bytes = o.unit * (1 + below(o.most_units));
    tensor.kind = "other";
    tensor.global = below(3) != 0;
    trace.tensors.push_back(tensor);
  }
  for (uint32_t k = 0; k < o.launches; ++k) {
    Launch launch;
    launch.name = std::to_string(k);
    launch.seconds = o.second_step * static_cast<double>(1 + below(3));
    launch.workspace = o.unit * below(o.most_workspace + 1);
    for (uint64_t i = 0, n = 1 + below(o.touches); i < n && o.tensors > 0; ++i) {
      launch.reads.push_back(static_cast<uint32_t>(below(o.tensors)));
    }
    for (uint64_t i = 0, n = below(o.touches + 1); i < n && o.tensors > 0; ++i) {
      launch.writes.push_back(static_cast<uint32_t>(below(o.tensors)));
    }
    trace.launches.push_back(launch);
  }
  return trace;
}

}  // namespace atp::policy
