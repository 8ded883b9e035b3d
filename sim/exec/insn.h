// SPDX-License-Identifier: Apache-2.0
// The decoded form of an instruction: a handler and the places of its operands in the register file
// of a warp.
//
// Read by the handlers (compiled once per instruction set, see handlers/), written by the decoder.
// A handler does the work for all active lanes and returns the next instruction, or kStop when the
// warp has to look for another group to run.
#pragma once

#include <cstdint>

namespace atp::sim::exec {

struct Warp;
struct Insn;
using Handler = const Insn* (*)(Warp&, const Insn*);

inline constexpr int kLanes = 32;
inline constexpr uint32_t kFullMask = 0xffffffffu;

// Every register is 32 lanes of 4 bytes (types up to 32 bits) or 8 bytes; a predicate is one 32-bit
// mask.
struct Insn {
  Handler run = nullptr;
  Handler inner = nullptr;     // the operation itself, when `run` is the guard
  int64_t imm = 0;             // address offset, branch distance, or index of a side table
  uint32_t r[6] = {};          // byte offsets in the frame; destination first
  uint32_t aux = 0, aux2 = 0;  // meaning depends on the handler
  uint32_t guard =
      0;  // predicate that lets lanes take part; bit 0 = negated (offsets are multiples of 4)
  uint32_t cache = 0;  // index of this instruction's AccessCache
};
static_assert(sizeof(Insn) == 64);

inline const Insn* const kStop = reinterpret_cast<const Insn*>(UINTPTR_MAX);

// Generic addresses: the upper 16 bits tell the space; 0 = ordinary memory as the program sees it.
enum AddressTag : uint64_t {
  kTagMemory = 0,
  kTagShared = 1,
  kTagLocal = 2,
  kTagParam = 3,
  kTagInternal = 4,
  kTagCode = 5
};
inline constexpr int kTagShift = 48;
inline constexpr uint64_t kOffsetMask = (uint64_t{1} << kTagShift) - 1;
constexpr uint64_t TagBase(AddressTag tag) { return static_cast<uint64_t>(tag) << kTagShift; }

}  // namespace atp::sim::exec
