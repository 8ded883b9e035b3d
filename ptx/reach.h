// SPDX-License-Identifier: Apache-2.0
// How far a launch reaches from each pointer among its parameters, found by running what its
// addresses are made of, for threads at the corners of the grid and some between. Of a kernel's PTX
// (PTX ISA 9.0) only the instructions are kept on which addresses and branches depend: no memory is
// read, what was loaded is not known, and of a branch that hangs on it both ways are tried.
//
// The answer is a guess to plan with, not a proof: a thread that was not tried may reach farther.
// MSched (NSDI 2026) gets the same from instrumented runs; here nothing has to run before.
// Make and Run are pure; one ReachCode may serve several threads.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "ptx/parser.h"

namespace atp::ptx {

struct Geometry {
  uint32_t grid[3] = {1, 1, 1}, block[3] = {1, 1, 1};
};

// What is touched through one pointer.
struct Reach {
  bool known = false;          // false: some address could not be followed
  int64_t begin = 0, end = 0;  // bytes from the pointer on; both 0: nothing
};

struct ReachStep;  // reach_code.h

class ReachCompiler;
class ReachRun;

class ReachCode {
 public:
  // Null where addresses cannot be followed at all: calls of other functions, computed branches, a
  // body that is not understood.
  static std::unique_ptr<const ReachCode> Make(const ParsedModule& module, const Function& kernel);
  ~ReachCode();

  // For a launch with these `parameters` (the buffer that the kernel is given), one answer for each
  // of the pointers in it, which lie at bytes `pointers` (multiples of 8). Empty: an address is
  // made of two pointers, or it would take more than `budget` steps (of some nanoseconds each).
  std::vector<Reach> Run(const Geometry& geometry, std::span<const char> parameters,
                         std::span<const uint32_t> pointers, uint64_t budget) const;

 private:
  friend class ReachCompiler;
  friend class ReachRun;
  friend class PurityRun;
  ReachCode();
  std::vector<ReachStep> steps_;
  // Registers: those of the kernel, then tid, ntid and so on, then the constants, then others.
  uint32_t first_special_ = 0, first_constant_ = 0, registers_ = 0;
  std::vector<uint64_t> constants_;
};

}  // namespace atp::ptx
