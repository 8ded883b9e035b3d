// SPDX-License-Identifier: Apache-2.0
// Joins the touches of chunks, handed over in block order, into waves.
#pragma once

#include <vector>

#include "sim/exec/exec.h"
#include "sim/exec/touch_table.h"

namespace atp::sim::exec {

class WaveMerger {
 public:
  explicit WaveMerger(std::vector<WaveTouches>* waves) : waves_(waves) {}
  void Add(const TouchTable& chunk);
  void EndWave();

 private:
  std::vector<WaveTouches>* waves_;
  TouchTable table_;
};

}  // namespace atp::sim::exec
