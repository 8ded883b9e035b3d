// SPDX-License-Identifier: Apache-2.0
// Which branches decide whether an instruction of a body runs.
//
// An instruction depends on a branch when one way out of the branch always comes to it and another
// may not: the walk up the tree of post-dominators of J. Ferrante, K. Ottenstein, J. Warren, "The
// program dependence graph and its use in optimization" (1987); the tree is found by the iteration
// of K. Cooper, T. Harvey, K. Kennedy, "A simple, fast dominance algorithm" (2001). Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "ptx/parser.h"

namespace atp::sim::exec {

// A call of the machine's own function that reports a failed assertion.
bool IsAssertion(const ptx::ParsedModule& module, const ptx::Body& body,
                 const ptx::Instruction& instruction);

class ControlFlow {
 public:
  ControlFlow(const ptx::ParsedModule& module, const ptx::Body& body);

  // Instructions (branches, guarded exits) on which the instruction directly depends.
  const std::vector<uint32_t>& Deciders(uint32_t instruction) const {
    return deciders_[block_of_[instruction]];
  }

 private:
  struct Block {
    uint32_t last = 0;  // instruction
    std::vector<uint32_t> next, before;
  };

  struct Leave {  // where an instruction may go besides the next one
    bool leaves = false;
    bool to_exit = false;
    std::vector<uint32_t> targets;
  };

  static Leave LeaveOf(const ptx::ParsedModule& module, const ptx::Body& body,
                       const ptx::Instruction& instruction);
  void CutBlocks(const ptx::ParsedModule& module, const ptx::Body& body);
  void Connect(const ptx::ParsedModule& module, const ptx::Body& body);
  void FindPostDominators();
  void FindDeciders();
  uint32_t Exit() const { return static_cast<uint32_t>(blocks_.size() - 1); }

  std::vector<Block> blocks_;  // the last one is the exit
  std::vector<uint32_t> block_of_;
  std::vector<uint32_t> post_dominator_;
  std::vector<std::vector<uint32_t>> deciders_;
};

}  // namespace atp::sim::exec
