// SPDX-License-Identifier: Apache-2.0
// The part of `atp replay` that replays a plan on what was wrongly predicted, over many seeds. One
// thread.
#pragma once

#include <CLI/CLI.hpp>

#include "cli/trace_options.h"
#include "policy/replay/noise.h"

namespace atp::cli {

struct NoiseOptions {
  int seeds = 0;  // 0 = no noise
  policy::Noise noise{0.2, 0.1, 0.02, 0.05, 1, 8};
  std::string head_room;  // empty = a part of memory
};

void AddNoiseOptions(CLI::App* command, NoiseOptions* options);

// For each trace and size: the plan made from the wrong prediction, replayed on what happens,
// against the noiseless plan's distance to the bound applied to the bound of what happens, and
// against stock unified memory. The bound is bound_closed with the pauses of several turns
// (policy/window_bound.h).
void RunNoise(const TraceOptions& traces, const NoiseOptions& options);

}  // namespace atp::cli
