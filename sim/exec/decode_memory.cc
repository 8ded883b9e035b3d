// SPDX-License-Identifier: Apache-2.0
// Loads, stores and atomics.
#include "sim/exec/decoder.h"

namespace atp::sim::exec {

using ptx::Base;
using ptx::Mod;
using ptx::Operand;
using ptx::Type;

namespace {

enum MemoryAux : uint32_t {
  kAuxGeneric = 1,
  kAuxShared = 2,
  kAuxWideAddress = 4
};  // as handlers/memory.h

bool IsParamSpace(const ptx::Op& op) {
  return op.HasAny({Mod::kParam, Mod::kParamEntry, Mod::kParamFunc});
}

bool HasSpace(const ptx::Op& op) {
  return ptx::IsSharedSpace(op) || IsParamSpace(op) ||
         op.HasAny({Mod::kGlobal, Mod::kLocal, Mod::kConst});
}

}  // namespace

// Blocks that may talk to each other through memory have to run in a fixed order on one thread.
void Decoder::NoteOrdering(const ptx::Op& op) {
  if (IsParamSpace(op) || op.HasAny({Mod::kLocal, Mod::kConst})) return;
  bool atomic = op.base == Base::kAtom || op.base == Base::kRed;
  bool strong = op.HasAny({Mod::kVolatile, Mod::kAcquire, Mod::kRelease, Mod::kAcqRel, Mod::kMmio});
  if (atomic || strong || op.Has(Mod::kRelaxed)) builder_.code()->may_spin = true;
  if (ptx::IsSharedSpace(op)) return;
  strong |= op.Has(Mod::kRelaxed) && !op.Has(Mod::kCta);
  if (atomic || strong) builder_.code()->ordered = true;
}

void Decoder::PutAddress(const ptx::Op& op, const Address& address, Insn* insn) {
  insn->r[5] = address.slot;
  insn->imm = address.imm;
  if (address.wide) insn->aux |= kAuxWideAddress;
  if (ptx::IsSharedSpace(op)) insn->aux |= kAuxShared;
  if (!HasSpace(op)) insn->aux |= kAuxGeneric;
  insn->cache = builder_.NewCache();
}

bool Decoder::DataOperands(const ptx::Op& op, const Operand& data, bool store, uint32_t* slots) {
  bool is_vector = data.kind == Operand::Kind::kVector;
  if ((is_vector ? data.count : 1) != op.vector) return Fail("vector width does not fit");
  for (uint32_t k = 0; k < op.vector; ++k) {
    const Operand& element = is_vector ? Element(data, k) : data;
    bool ok =
        store ? Source(element, op.type(), &slots[k]) : Destination(element, op.type(), &slots[k]);
    if (!ok) return false;
    // Two elements of one vector may both be dropped, or be the same register: each needs a place.
    if (!store && element.kind == Operand::Kind::kSink) slots[k] = NewSlot(8 * kLanes);
  }
  return true;
}

bool Decoder::DecodeLoad(const ptx::Op& op) {
  // A trailing cache policy is a hint only.
  if (arg_count() != 2 && !(arg_count() == 3 && op.Has(Mod::kCachePolicy)))
    return Fail("wrong number of operands");
  Address address;
  if (!ReadAddress(Arg(1), op, &address)) return false;
  bool is_param = IsParamSpace(op);
  if (address.is_param && !is_param) return Fail("parameter read without .param");
  if (is_param && address.is_param) {
    const ptx::Variable* variable = Element(Arg(1), 0).variable;
    bool is_kernel_parameter = false;
    for (const ptx::Variable& parameter : function_.params)
      is_kernel_parameter |= &parameter == variable;
    if (is_kernel_parameter && function_.is_entry) return DecodeKernelParam(op, address);
  }
  Form form;
  form.stack_param = is_param && address.is_param;
  Handler handler = builder_.variant().pick(op, form);
  if (handler == nullptr) return Fail("unsupported opcode " + std::string(op.text));
  NoteOrdering(op);
  uint32_t slots[6] = {};
  if (!DataOperands(op, Arg(0), false, slots)) return false;
  Insn& insn = Emit(handler);
  std::copy(slots, slots + 4, insn.r);
  if (form.stack_param) {
    uint64_t bytes = static_cast<uint64_t>(ptx::TypeBytes(op.type())) * op.vector;
    if (address.imm < 0 || static_cast<uint64_t>(address.imm) + bytes > program_.param_stride) {
      return Fail("read beyond a parameter");
    }
    insn.imm = address.imm;
    insn.aux = program_.param_stride;
  } else {
    PutAddress(op, address, &insn);
    if (is_param) {  // a register holds the place inside the kernel's parameters
      insn.imm = static_cast<int64_t>(static_cast<uint64_t>(insn.imm) + TagBase(kTagParam));
      insn.aux |= kAuxGeneric;
    }
  }
  FinishDestinations();
  return true;
}

// A kernel's parameter is the same for all lanes of all blocks: filled in once per launch.
bool Decoder::DecodeKernelParam(const ptx::Op& op, const Address& address) {
  uint32_t slots[6] = {};
  uint64_t bytes = static_cast<uint64_t>(ptx::TypeBytes(op.type()));
  if (bytes == 0 || bytes > 8) return Fail("unsupported opcode " + std::string(op.text));
  uint64_t total = 0;
  for (const ptx::Variable& parameter : function_.params) {
    total = (total + parameter.alignment - 1) / parameter.alignment * parameter.alignment +
            parameter.bytes;
  }
  if (address.imm < 0 || static_cast<uint64_t>(address.imm) + bytes * op.vector > total) {
    return Fail("read beyond the parameters");
  }
  if (!DataOperands(op, Arg(0), false, slots)) return false;
  for (uint32_t k = 0; k < op.vector; ++k) {
    Fill fill;
    fill.kind = Fill::Kind::kParameter;
    fill.wide = bytes == 8;
    fill.is_signed = ptx::IsSigned(op.type());
    fill.bytes = static_cast<uint8_t>(bytes);
    fill.symbol = static_cast<uint32_t>(static_cast<uint64_t>(address.imm) + bytes * k);
    uint32_t from = FillSlot(fill);
    Insn& insn = EmitControl(bytes == 8 ? Control::kCopy64 : Control::kCopy32);
    insn.r[0] = slots[k];
    insn.r[1] = from;
  }
  FinishDestinations();
  return true;
}

bool Decoder::DecodeStore(const ptx::Op& op) {
  if (arg_count() != 2 && !(arg_count() == 3 && op.Has(Mod::kCachePolicy)))
    return Fail("wrong number of operands");
  Address address;
  if (!ReadAddress(Arg(0), op, &address)) return false;
  Form form;
  form.stack_param = IsParamSpace(op);
  if (form.stack_param != address.is_param) return Fail("bad store to a parameter");
  Handler handler = builder_.variant().pick(op, form);
  if (handler == nullptr || op.Has(Mod::kConst))
    return Fail("unsupported opcode " + std::string(op.text));
  NoteOrdering(op);
  uint32_t slots[6] = {};
  if (!DataOperands(op, Arg(1), true, slots)) return false;
  Insn& insn = Emit(handler);
  std::copy(slots, slots + 4, insn.r);
  if (!form.stack_param) {
    PutAddress(op, address, &insn);
    return true;
  }
  uint64_t bytes = static_cast<uint64_t>(ptx::TypeBytes(op.type())) * op.vector;
  if (address.imm < 0 || static_cast<uint64_t>(address.imm) + bytes > program_.param_stride) {
    return Fail("write beyond a parameter");
  }
  insn.imm = address.imm;
  insn.aux = program_.param_stride;
  return true;
}

bool Decoder::DecodeAtomic(const ptx::Op& op) {
  Handler handler = builder_.variant().pick(op, Form{});
  if (handler == nullptr) return Fail("unsupported opcode " + std::string(op.text));
  NoteOrdering(op);
  bool has_result = op.base == Base::kAtom;
  uint32_t first = has_result ? 1 : 0, operands = op.Has(Mod::kCas) ? 2 : 1;
  if (arg_count() < first + 1 + operands) return Fail("wrong number of operands");
  Address address;
  uint32_t slots[3] = {NewSlot(8 * kLanes), 0, 0};
  if (!ReadAddress(Arg(first), op, &address)) return false;
  if (address.is_param) return Fail("atomic on a parameter");
  for (uint32_t k = 0; k < operands; ++k) {
    if (!Source(Arg(first + 1 + k), op.type(), &slots[1 + k])) return false;
  }
  if (operands == 1) slots[2] = slots[1];
  if (has_result && Arg(0).kind != Operand::Kind::kSink &&
      !Destination(Arg(0), op.type(), &slots[0]))
    return false;
  Insn& insn = Emit(handler);
  std::copy(slots, slots + 3, insn.r);
  PutAddress(op, address, &insn);
  FinishDestinations();
  return true;
}

}  // namespace atp::sim::exec
