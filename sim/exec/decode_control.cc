// SPDX-License-Identifier: Apache-2.0
// Branches, calls, barriers, and instructions that only order or hint.
#include "sim/exec/decoder.h"

namespace atp::sim::exec {

using ptx::Base;
using ptx::Mod;
using ptx::Operand;
using ptx::Type;

Builtin BuiltinByName(std::string_view name) {
  if (name == "vprintf") return Builtin::kPrintf;
  if (name == "__assertfail") return Builtin::kAssertFail;
  if (name == "malloc") return Builtin::kMalloc;
  if (name == "free") return Builtin::kFree;
  return Builtin::kNone;
}

bool Decoder::DecodeBranch() {
  if (arg_count() != 1 || Arg(0).kind != Operand::Kind::kLabel) return Fail("label expected");
  use_guard_ = false;
  Insn& insn = EmitControl(now_->guard >= 0 ? Control::kBranchIf : Control::kBranch);
  if (now_->guard >= 0) {
    insn.guard = RegisterSlot(static_cast<uint32_t>(now_->guard)) | (now_->guard_negated ? 1 : 0);
  }
  fixups_.push_back({static_cast<uint32_t>(program_.code.size() - 1), Arg(0).index});
  return true;
}

bool Decoder::DecodeBranchTable() {
  if (arg_count() != 2 || Arg(1).kind != Operand::Kind::kLabel ||
      Arg(1).index >= body_.prototypes.size()) {
    return Fail("bad brx.idx");
  }
  uint32_t index = 0;
  if (!Source(Arg(0), Type::kU32, &index)) return false;
  Insn& insn = EmitControl(Control::kBranchTable);
  insn.r[1] = index;
  insn.imm = static_cast<int64_t>(program_.operands.size());
  for (uint32_t label : body_.prototypes[Arg(1).index].targets) {
    table_fixups_.push_back({static_cast<uint32_t>(program_.operands.size()), label});
    program_.operands.push_back(0);
    ++insn.aux;
  }
  return true;
}

// Appends count and (kind, offset, bytes) triples.
bool Decoder::CallTable(const Operand* list, std::vector<uint32_t>* table) {
  uint32_t count = list == nullptr ? 0 : list->kind == Operand::Kind::kList ? list->count : 1;
  table->push_back(count);
  for (uint32_t k = 0; k < count; ++k) {
    const Operand& element = list->kind == Operand::Kind::kList ? Element(*list, k) : *list;
    if (element.kind == Operand::Kind::kVariable && param_offset_.contains(element.variable)) {
      table->insert(table->end(), {Formal::kStack, param_offset_.at(element.variable),
                                   static_cast<uint32_t>(element.variable->bytes)});
      continue;
    }
    bool wide = false;
    if (element.kind == Operand::Kind::kRegister) {
      if (body_.registers[element.index] == Type::kPred) return Fail("predicate as an argument");
      wide = IsWideRegister(element.index);
    } else if (element.kind != Operand::Kind::kInteger && element.kind != Operand::Kind::kFloat32) {
      return Fail("unsupported argument of a call");
    }
    uint32_t slot = 0;
    if (!Source(element, wide ? Type::kB64 : Type::kB32, &slot)) return false;
    table->insert(table->end(), {wide ? Formal::kWide : Formal::kNarrow, slot, wide ? 8u : 4u});
  }
  return true;
}

bool Decoder::DecodeCall() {
  uint32_t at = 0;
  const Operand *returns = nullptr, *params = nullptr;
  if (arg_count() > 1 && Arg(0).kind == Operand::Kind::kList) returns = &Arg(at++);
  if (at >= arg_count()) return Fail("function name expected");
  const Operand& target = Arg(at++);
  if (at < arg_count() && Arg(at).kind == Operand::Kind::kList) params = &Arg(at++);
  std::vector<uint32_t> table;
  if (!CallTable(params, &table) || !CallTable(returns, &table)) return false;
  uint32_t table_at = static_cast<uint32_t>(program_.operands.size());
  program_.operands.insert(program_.operands.end(), table.begin(), table.end());
  if (target.kind == Operand::Kind::kRegister) {
    builder_.code()->ordered = true;  // what is called is not known
    Insn& insn = EmitControl(Control::kCallIndirect);
    insn.r[1] = RegisterSlot(target.index);
    insn.aux = table_at;
    return IsWideRegister(target.index) || Fail("function address expected");
  }
  if (target.kind != Operand::Kind::kFunction) return Fail("function name expected");
  const ptx::Function& callee = *builder_.module().functions[target.index];
  if (!callee.has_body) {
    Builtin builtin = BuiltinByName(callee.name);
    if (builtin == Builtin::kNone)
      return Fail("call of " + std::string(callee.name) + ", which is not defined");
    if (builtin == Builtin::kMalloc || builtin == Builtin::kFree) builder_.code()->ordered = true;
    Insn& insn = EmitControl(Control::kCallBuiltin);
    insn.aux = table_at;
    insn.aux2 = static_cast<uint32_t>(builtin);
    return true;
  }
  size_t given = params == nullptr ? 0 : table[0];
  if (given != callee.params.size())
    return Fail("wrong number of arguments of " + std::string(callee.name));
  Insn& insn = EmitControl(Control::kCall);
  insn.imm = static_cast<int64_t>(reinterpret_cast<intptr_t>(builder_.ProgramOf(target.index)));
  insn.aux = table_at;
  return true;
}

// r[0] = result, r[1] = barrier, r[2] = threads or zero, r[3] = predicate; aux = 0 sync, 1 arrive,
// 2 popc, 3 and, 4 or.
bool Decoder::DecodeBarrier(const ptx::Op& op) {
  bool reduces = op.Has(Mod::kRed);
  if (!reduces && !op.HasAny({Mod::kSync, Mod::kArrive}))
    return Fail("unsupported opcode " + std::string(op.text));
  uint32_t first = reduces ? 1 : 0, last = arg_count() - (reduces ? 1 : 0);
  if (arg_count() < first + 1 + (reduces ? 1 : 0) || last - first > 2)
    return Fail("wrong number of operands");
  uint32_t slots[6] = {SinkSlot(), 0, ConstantSlot(0, false), 0, 0, 0};
  if (!Source(Arg(first), Type::kU32, &slots[1])) return false;
  if (last - first == 2 && !Source(Arg(first + 1), Type::kU32, &slots[2])) return false;
  uint32_t mode = op.Has(Mod::kArrive) ? 1 : 0;
  if (reduces) {
    mode = op.Has(Mod::kPopc) ? 2 : op.Has(Mod::kAnd) ? 3 : 4;
    if (!PredicateSource(Arg(last), &slots[3])) return false;
    if (!Destination(Arg(0), mode == 2 ? Type::kU32 : Type::kPred, &slots[0])) return false;
  }
  Insn& insn = EmitControl(Control::kBarrier);
  std::copy(slots, slots + 6, insn.r);
  insn.aux = mode;
  FinishDestinations();
  return true;
}

// Everything that may leave the straight line: the guard becomes a branch around it.
bool Decoder::DecodeControl(const ptx::Op& op) {
  if (op.base == Base::kBra) return DecodeBranch();
  use_guard_ = false;
  size_t skip = SIZE_MAX;
  if (now_->guard >= 0) {
    Insn& insn = EmitControl(Control::kBranchIf);
    insn.guard = RegisterSlot(static_cast<uint32_t>(now_->guard)) | (now_->guard_negated ? 0 : 1);
    skip = program_.code.size() - 1;
  }
  bool ok = true;
  switch (op.base) {
    case Base::kBrx:
      ok = DecodeBranchTable();
      break;
    case Base::kCall:
      ok = DecodeCall();
      break;
    case Base::kBar:
    case Base::kBarrier:
      ok = DecodeBarrier(op);
      break;
    case Base::kExit:
      EmitControl(Control::kExit);
      break;
    case Base::kRet:
      EmitControl(function_.is_entry ? Control::kExit : Control::kReturn);
      break;
    case Base::kTrap:
    case Base::kBrkpt:
      EmitControl(Control::kTrap);
      break;
    case Base::kNanosleep: {
      uint32_t slot = 0;
      ok = arg_count() == 1 && Source(Arg(0), Type::kU32, &slot);
      EmitControl(Control::kYield).r[1] = slot;
      break;
    }
    default:
      ok = Fail("unsupported opcode " + std::string(op.text));
  }
  if (!ok) return Fail("wrong operands of " + std::string(op.text));
  if (skip != SIZE_MAX) program_.code[skip].imm = static_cast<int64_t>(program_.code.size() - skip);
  return true;
}

}  // namespace atp::sim::exec
