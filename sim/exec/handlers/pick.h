// SPDX-License-Identifier: Apache-2.0
// Finds the handler of an opcode. Null means: this machine cannot run it, and Load refuses the
// module. The single truth about what is supported: the front end only knows names.
#pragma once

#include "ptx/opcode.h"
#include "sim/exec/insn.h"

namespace atp::sim::exec {

// What the handler has to know beyond the opcode.
struct Form {
  bool wide_address = true;  // the address register has 8-byte lanes
  bool stack_param = false;  // .param of a device function: in the frame
  bool register_branch = false;
};

enum class Control : uint8_t {
  kGuard,
  kBranch,
  kBranchIf,
  kBranchTable,
  kExit,
  kReturn,
  kCall,
  kCallBuiltin,
  kCallIndirect,
  kBarrier,
  kMissing,
  kTrap,
  kYield,
  kCopy32,
  kCopy64,
  kCopyPred,
  kNotPred,
  kNarrow,
  kWidenSigned,
  kWidenUnsigned,
  kClock32,
  kClock64,
  kClockHi,
  kGlobalTimer,
  kGlobalTimerLo,
  kGlobalTimerHi,
  kActiveMask,
  kPack,
  kUnpack,
  kNop,
  kSetLocalAddress,
};

struct Variant {
  const char* name;
  Handler (*pick)(const ptx::Op& op, const Form& form);
  Handler (*control)(Control what);
};

Handler PickTexture(const ptx::Op& op);  // one for all variants (texture_ops.cc)

extern const Variant kSse2Variant, kAvx2Variant, kAvx512Variant;

}  // namespace atp::sim::exec

#ifdef ATP_VARIANT
namespace atp::sim::exec::ATP_VARIANT {
// Each file answers for its own opcodes.
Handler PickInteger(const ptx::Op& op);
Handler PickBits(const ptx::Op& op);
Handler PickFloat(const ptx::Op& op);
Handler PickApprox(const ptx::Op& op);
Handler PickHalf(const ptx::Op& op);
Handler PickCompare(const ptx::Op& op);
Handler PickConvert(const ptx::Op& op);
Handler PickMemory(const ptx::Op& op, const Form& form);
Handler PickShared(const ptx::Op& op, const Form& form);
Handler PickAtomic(const ptx::Op& op, const Form& form);
Handler PickWarp(const ptx::Op& op);
Handler PickMatrix(const ptx::Op& op, const Form& form);
Handler PickAsync(const ptx::Op& op, const Form& form);
Handler PickControl(Control what);
}  // namespace atp::sim::exec::ATP_VARIANT
#endif
