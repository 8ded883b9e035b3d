// SPDX-License-Identifier: Apache-2.0
// What the touches of a kernel depend on, found in its text before it runs.
//
// A slice backwards from everything that makes a touch: the addresses and guards of accesses to
// memory that other blocks see, and the branches that decide whether they happen. When the slice
// ends at parameters, constants and the thread's place in the grid, then launches with the same
// geometry and the same bytes of those parameters touch the same pages. When it meets a load, an
// atomic, a clock or a call, touches may depend on data. Used by touch_memo.h. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "ptx/parser.h"

namespace atp::sim::exec {

struct TouchSlice {
  bool depends_on_data = true;
  std::string reason;  // the first thing found that makes it so: "line 12: ld.global.u32"
  // Branches that depend on data exist, though none decides about a touch: touches are the same in
  // every launch, the number of instructions and with it the time is not.
  bool data_branches = false;
  std::vector<std::pair<uint32_t, uint32_t>> params;  // offset and bytes, sorted
};

TouchSlice SliceTouches(const ptx::ParsedModule& module, const ptx::Function& kernel,
                        const ptx::Body& body);

}  // namespace atp::sim::exec
