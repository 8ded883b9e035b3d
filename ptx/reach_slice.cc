// SPDX-License-Identifier: Apache-2.0
#include <unordered_map>

#include "ptx/reach_code.h"

namespace atp::ptx {
namespace {

bool Matters(const ReachStep& step) {
  return step.op == ReachOp::kTouch || step.op == ReachOp::kBranch || step.op == ReachOp::kExit;
}

}  // namespace

std::vector<ReachStep> SliceOf(const std::vector<ReachStep>& steps) {
  std::unordered_map<uint32_t, std::vector<uint32_t>> makers;  // of each register
  std::vector<uint32_t> pending;
  std::vector<bool> keep(steps.size());
  for (uint32_t k = 0; k < steps.size(); ++k) {
    for (const uint32_t to : steps[k].to) {
      if (to != kNoRegister) makers[to].push_back(k);
    }
    keep[k] = Matters(steps[k]);
    if (keep[k]) pending.push_back(k);
  }
  while (!pending.empty()) {
    const ReachStep& step = steps[pending.back()];
    pending.pop_back();
    for (const uint32_t reg :
         {step.guard, step.from[0], step.from[1], step.from[2], step.from[3]}) {
      const auto made = makers.find(reg);
      if (reg == kNoRegister || made == makers.end()) continue;
      for (const uint32_t k : made->second) {
        if (!keep[k]) pending.push_back(k);
        keep[k] = true;
      }
    }
  }
  std::vector<uint32_t> place(steps.size() + 1);  // of each step, or of the next that is kept
  for (uint32_t k = 0; k < steps.size(); ++k) place[k + 1] = place[k] + (keep[k] ? 1 : 0);
  std::vector<ReachStep> kept;
  for (uint32_t k = 0; k < steps.size(); ++k) {
    if (!keep[k]) continue;
    kept.push_back(steps[k]);
    if (steps[k].op == ReachOp::kBranch) kept.back().target = place[steps[k].target];
  }
  return kept;
}

}  // namespace atp::ptx
