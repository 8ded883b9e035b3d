// SPDX-License-Identifier: Apache-2.0
// Proves from its PTX (PTX ISA 9.0) that a launch may run again: that what it writes depends on its
// parameters and on what it reads through them and on nothing else, that it writes every byte of
// one range for each output, each byte once, and which bytes at most it reads.
//
// Two parts. Of the kernel: only instructions that are listed as harmless, no state but thread and
// block numbers, no memory but what pointers among the parameters lead to and the block's own. Of
// the launch: the instructions that addresses and branches are made of (reach_code.h) are run for
// all threads. Threads of a row run together as long as what they compute is linear in their number
// (thread_row.h), so a row costs about what one thread does. Whatever cannot be followed (an
// address or a branch that hangs on data, a pointer from memory, more steps than the budget) is no
// proof, and says why. Nothing here is a guess, unlike reach.h.
//
// The proof holds for the same kernel, geometry and parameters but for the values of the pointers,
// as long as none is null: nothing that is made of a pointer's value decides anything.
// What it takes for granted: the program has no data race (CUDA programming guide, memory model),
// so a second run reads in shared memory what the first one read. Make and Prove are pure; one
// PureKernel may serve several threads.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ptx/parser.h"
#include "ptx/reach.h"

namespace atp::ptx {

// What a launch does through one of its pointers, in bytes from where it points.
struct PointerUse {
  int64_t read_begin = 0, read_end = 0;    // nothing outside is read; equal: nothing at all
  int64_t write_begin = 0, write_end = 0;  // exactly these are written; equal: none
  bool reads() const { return read_begin != read_end; }
  bool writes() const { return write_begin != write_end; }
};

struct LaunchProof {
  std::string why;               // why not; empty: proven
  std::vector<PointerUse> uses;  // one for each pointer
  uint64_t steps = 0;            // that it took
  bool proven() const { return why.empty(); }
};

class PureKernel {
 public:
  // Null, and `why`, where the kernel's text does not let it be proven for any launch.
  static std::unique_ptr<const PureKernel> Make(const ParsedModule& module, const Function& kernel,
                                                std::string* why);

  // For a launch with these `parameters` (the buffer that the kernel is given); the pointers among
  // them lie at bytes `pointers` (multiples of 8). `budget`: steps, of some tens of nanoseconds
  // each.
  LaunchProof Prove(const Geometry& geometry, std::span<const char> parameters,
                    std::span<const uint32_t> pointers, uint64_t budget) const;

 private:
  std::unique_ptr<const ReachCode> code_;
};

// Whether what the launch writes lies apart from all that it reads, and from what it writes through
// other pointers, by the pointers' values in `parameters`.
bool OutputsApart(const LaunchProof& proof, std::span<const char> parameters,
                  std::span<const uint32_t> pointers);

}  // namespace atp::ptx
