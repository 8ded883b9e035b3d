// SPDX-License-Identifier: Apache-2.0
// Decoded code: one Program per function that a kernel can reach, one KernelCode per kernel.
// Made by the decoder at a kernel's first launch, read-only afterwards, so that workers share it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sim/exec/insn.h"

namespace atp::sim::exec {

enum class Special : uint8_t {
  kTidX,
  kTidY,
  kTidZ,
  kLaneId,
  kLaneMaskEq,
  kLaneMaskLt,
  kLaneMaskLe,
  kLaneMaskGt,
  kLaneMaskGe,  // per lane
  kWarpId,      // per warp
  kCtaIdX,
  kCtaIdY,
  kCtaIdZ,
  kSmId,  // per block
  kNtidX,
  kNtidY,
  kNtidZ,
  kNctaIdX,
  kNctaIdY,
  kNctaIdZ,
  kNwarpId,
  kNsmId,
  kGridId,
  kEnvReg1,
  kEnvReg2,
  kDynamicShared,
  kTotalShared,
  kZero,
  kOne,  // per launch
  kNone,
};

// A slot of the frame that has to hold a value before the code runs.
struct Fill {
  enum class Kind : uint8_t {
    kConstant,
    kGlobalAddress,
    kParameter,
    kSpecial,
    kLocalBase,
    kPredicate
  };
  Kind kind = Kind::kConstant;
  bool wide = false;       // 8 bytes a lane
  bool is_signed = false;  // kParameter: extend to the slot
  uint8_t bytes = 0;       // kParameter
  Special special = Special::kNone;
  uint32_t slot = 0;    // byte offset in the frame
  uint32_t symbol = 0;  // kGlobalAddress: index of the global; kParameter: offset
  uint64_t value = 0;   // kConstant; kGlobalAddress: addend
};

struct Origin {
  uint32_t line = 0;
  std::string_view opcode;
};

// Where a parameter lies: in the frame's parameter area, or in a register.
struct Formal {
  enum Kind : uint32_t { kStack, kNarrow, kWide };
  Kind kind = kStack;
  uint32_t offset = 0, bytes = 0;
};

struct Program {
  std::string name;
  uint32_t function = 0;  // index in the module
  uint32_t index = 0;     // in KernelCode::programs
  std::vector<Insn> code;
  std::vector<Origin> origins;     // one per instruction
  std::vector<uint32_t> operands;  // side table of instructions with many operands
  std::vector<Fill> fills;
  const Insn* entry = nullptr;  // code.data() and operands.data(), for the handlers
  const uint32_t* table = nullptr;
  uint32_t frame_bytes = 0;               // parameter area, registers, constants
  uint32_t zero_begin = 0, zero_end = 0;  // registers that have to start as zero
  uint32_t param_stride = 0;  // bytes per lane of the parameter area, which starts the frame
  std::vector<Formal> params, returns;
  uint32_t local_bytes = 0;  // per lane
};

struct KernelCode {
  std::string name;
  std::vector<std::unique_ptr<Program>> programs;  // [0] is the kernel
  std::vector<Program*> by_function;               // null when not reachable
  uint32_t static_shared_bytes = 0;
  uint32_t cache_count = 0;
  bool may_spin = false;  // atomics or volatile access in any space: lanes may wait for other lanes
                          // of their warp
  bool ordered = false;   // blocks may talk to each other: run them on one thread, in a fixed order
};

}  // namespace atp::sim::exec
