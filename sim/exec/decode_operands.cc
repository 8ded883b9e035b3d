// SPDX-License-Identifier: Apache-2.0
// Operands to slots of the frame.
#include <bit>

#include "sim/exec/decoder.h"

namespace atp::sim::exec {

using ptx::Operand;
using ptx::Space;
using ptx::Type;

namespace {

struct SpecialRow {
  std::string_view name;
  Special special;
};
constexpr SpecialRow kSpecials[] = {
    {"%tid.x", Special::kTidX},
    {"%tid.y", Special::kTidY},
    {"%tid.z", Special::kTidZ},
    {"%ntid.x", Special::kNtidX},
    {"%ntid.y", Special::kNtidY},
    {"%ntid.z", Special::kNtidZ},
    {"%ctaid.x", Special::kCtaIdX},
    {"%ctaid.y", Special::kCtaIdY},
    {"%ctaid.z", Special::kCtaIdZ},
    {"%nctaid.x", Special::kNctaIdX},
    {"%nctaid.y", Special::kNctaIdY},
    {"%nctaid.z", Special::kNctaIdZ},
    {"%laneid", Special::kLaneId},
    {"%warpid", Special::kWarpId},
    {"%nwarpid", Special::kNwarpId},
    {"%smid", Special::kSmId},
    {"%nsmid", Special::kNsmId},
    {"%gridid", Special::kGridId},
    {"%lanemask_eq", Special::kLaneMaskEq},
    {"%lanemask_lt", Special::kLaneMaskLt},
    {"%lanemask_le", Special::kLaneMaskLe},
    {"%lanemask_gt", Special::kLaneMaskGt},
    {"%lanemask_ge", Special::kLaneMaskGe},
    {"%envreg1", Special::kEnvReg1},
    {"%envreg2", Special::kEnvReg2},
    {"%dynamic_smem_size", Special::kDynamicShared},
    {"%total_smem_size", Special::kTotalShared},
    {"%clusterid.x", Special::kCtaIdX},
    {"%clusterid.y", Special::kCtaIdY},
    {"%clusterid.z", Special::kCtaIdZ},
    {"%nclusterid.x", Special::kNctaIdX},
    {"%nclusterid.y", Special::kNctaIdY},
    {"%nclusterid.z", Special::kNctaIdZ},
    {"%cluster_ctaid.x", Special::kZero},
    {"%cluster_ctaid.y", Special::kZero},
    {"%cluster_ctaid.z", Special::kZero},
    {"%cluster_ctarank", Special::kZero},
    {"%cluster_nctaid.x", Special::kOne},
    {"%cluster_nctaid.y", Special::kOne},
    {"%cluster_nctaid.z", Special::kOne},
    {"%cluster_nctarank", Special::kOne},
};

struct ClockRow {
  std::string_view name;
  Control control;
  bool wide;
};
constexpr ClockRow kClocks[] = {
    {"%clock", Control::kClock32, false},
    {"%clock_hi", Control::kClockHi, false},
    {"%clock64", Control::kClock64, true},
    {"%globaltimer", Control::kGlobalTimer, true},
    {"%globaltimer_lo", Control::kGlobalTimerLo, false},
    {"%globaltimer_hi", Control::kGlobalTimerHi, false},
};

}  // namespace

uint32_t Decoder::NewSlot(uint32_t bytes) {
  uint32_t alignment = bytes >= 64 ? 64 : 4;
  uint32_t at = (program_.frame_bytes + alignment - 1) / alignment * alignment;
  program_.frame_bytes = at + bytes;
  return at;
}

uint32_t Decoder::RegisterSlot(uint32_t reg) {
  uint32_t& slot = register_slot_[reg];
  if (slot == UINT32_MAX) {
    Type type = body_.registers[reg];
    slot = NewSlot(type == Type::kPred ? 4 : IsWideRegister(reg) ? 8 * kLanes : 4 * kLanes);
  }
  return slot;
}

uint32_t Decoder::FillSlot(Fill fill) {
  fill.slot = NewSlot(fill.kind == Fill::Kind::kPredicate ? 4
                      : fill.wide                         ? 8 * kLanes
                                                          : 4 * kLanes);
  program_.fills.push_back(fill);
  return fill.slot;
}

uint32_t Decoder::ConstantSlot(uint64_t bits, bool wide) {
  if (!wide) bits &= 0xffffffffu;
  auto [found, is_new] = constants_.emplace(std::make_pair(bits, wide), 0);
  if (is_new) {
    Fill fill;
    fill.wide = wide;
    fill.value = bits;
    found->second = FillSlot(fill);
  }
  return found->second;
}

uint32_t Decoder::SinkSlot() {
  if (sink_ == 0) sink_ = NewSlot(8 * kLanes);
  return sink_;
}

Insn& Decoder::Emit(Handler handler) {
  Insn insn;
  insn.run = handler;
  if (use_guard_ && now_->guard >= 0) {
    insn.inner = handler;
    insn.run = builder_.variant().control(Control::kGuard);
    insn.guard = RegisterSlot(static_cast<uint32_t>(now_->guard)) | (now_->guard_negated ? 1 : 0);
  }
  program_.code.push_back(insn);
  program_.origins.push_back({now_->line, body_.ops[now_->op].text});
  return program_.code.back();
}

bool Decoder::EmitOp(std::string_view opcode, std::initializer_list<uint32_t> slots) {
  ptx::Op op;
  if (!ptx::ParseOpcode(opcode, &op)) return Fail("internal: no opcode " + std::string(opcode));
  Handler handler = builder_.variant().pick(op, Form{});
  if (handler == nullptr) return Fail("internal: no handler for " + std::string(opcode));
  Insn& insn = Emit(handler);
  std::copy(slots.begin(), slots.end(), insn.r);
  return true;
}

bool Decoder::ImmediateBits(const Operand& operand, Type type, uint64_t* bits) {
  bool is_f64 = type == Type::kF64, is_f32 = type == Type::kF32 || type == Type::kTf32;
  *bits = operand.bits;
  switch (operand.kind) {
    case Operand::Kind::kInteger:
      if (is_f32)
        *bits = std::bit_cast<uint32_t>(static_cast<float>(static_cast<int64_t>(operand.bits)));
      if (is_f64)
        *bits = std::bit_cast<uint64_t>(static_cast<double>(static_cast<int64_t>(operand.bits)));
      return true;
    case Operand::Kind::kFloat32:
      if (is_f64) {
        *bits = std::bit_cast<uint64_t>(
            double{std::bit_cast<float>(static_cast<uint32_t>(operand.bits))});
      }
      return true;
    case Operand::Kind::kFloat64:
      if (is_f32)
        *bits = std::bit_cast<uint32_t>(static_cast<float>(std::bit_cast<double>(operand.bits)));
      return true;
    default:
      return Fail("immediate expected");
  }
}

bool Decoder::PredicateSource(const Operand& operand, uint32_t* slot) {
  if (operand.kind == Operand::Kind::kInteger) {
    Fill fill;
    fill.kind = Fill::Kind::kPredicate;
    fill.value = (operand.bits != 0) != operand.negated ? kFullMask : 0;
    *slot = FillSlot(fill);
    return true;
  }
  if (operand.kind != Operand::Kind::kRegister || body_.registers[operand.index] != Type::kPred) {
    return Fail("predicate expected");
  }
  *slot = RegisterSlot(operand.index);
  if (operand.negated) {
    uint32_t negated = NewSlot(4);
    Insn& insn = EmitControl(Control::kNotPred);
    insn.r[0] = negated;
    insn.r[1] = *slot;
    *slot = negated;
  }
  return true;
}

bool Decoder::SpecialSource(const Operand& operand, bool wide, uint32_t* slot) {
  for (const SpecialRow& row : kSpecials) {
    if (row.name != operand.name) continue;
    auto [found, is_new] = specials_.emplace(std::make_pair(row.special, wide), 0);
    if (is_new) {
      Fill fill;
      fill.kind = Fill::Kind::kSpecial;
      fill.special = row.special;
      fill.wide = wide;
      found->second = FillSlot(fill);
    }
    *slot = found->second;
    return true;
  }
  for (const ClockRow& row : kClocks) {
    if (row.name != operand.name) continue;
    uint32_t value = NewSlot(row.wide ? 8 * kLanes : 4 * kLanes);
    EmitControl(row.control).r[0] = value;
    *slot = value;
    if (row.wide != wide) {
      *slot = NewSlot(wide ? 8 * kLanes : 4 * kLanes);
      Insn& insn = EmitControl(wide ? Control::kWidenUnsigned : Control::kNarrow);
      insn.r[0] = *slot;
      insn.r[1] = value;
    }
    return true;
  }
  return Fail("unsupported special register " + std::string(operand.name));
}

bool Decoder::VariableSource(const Operand& operand, bool wide, uint32_t* slot) {
  const ptx::Variable* variable = operand.variable;
  uint64_t addend = static_cast<uint64_t>(operand.addend);
  switch (variable->space) {
    case Space::kShared:
      *slot = ConstantSlot(builder_.SharedOffset(variable) + addend, wide);
      return true;
    case Space::kGlobal:
    case Space::kConst: {
      Fill fill;
      fill.kind = Fill::Kind::kGlobalAddress;
      fill.wide = wide;
      fill.symbol = builder_.GlobalIndex(variable);
      fill.value = addend;
      *slot = FillSlot(fill);
      return true;
    }
    case Space::kLocal: {
      *slot = NewSlot(wide ? 8 * kLanes : 4 * kLanes);
      Insn& insn = EmitControl(Control::kSetLocalAddress);
      insn.r[0] = *slot;
      insn.imm = static_cast<int64_t>(local_offset_.at(variable) + addend);
      insn.aux = wide ? 8 : 4;
      return true;
    }
    case Space::kParam:
      if (!function_.is_entry || !param_offset_.contains(variable)) {
        return Fail("address of parameter " + std::string(variable->name) +
                    " of a device function");
      }
      *slot = ConstantSlot(param_offset_.at(variable) + addend, wide);
      return true;
    default:
      return Fail("bad variable operand");
  }
}

bool Decoder::Source(const Operand& operand, Type type, uint32_t* slot) {
  if (type == Type::kPred) return PredicateSource(operand, slot);
  if (operand.negated) return Fail("'!' before an operand that is not a predicate");
  bool wide = ptx::TypeBytes(type) == 8;
  switch (operand.kind) {
    case Operand::Kind::kRegister: {
      if (body_.registers[operand.index] == Type::kPred)
        return Fail("predicate in place of a value");
      *slot = RegisterSlot(operand.index);
      if (IsWideRegister(operand.index) == wide) return true;
      uint32_t converted = NewSlot(wide ? 8 * kLanes : 4 * kLanes);
      Insn& insn = EmitControl(wide ? Control::kWidenUnsigned : Control::kNarrow);
      insn.r[0] = converted;
      insn.r[1] = *slot;
      *slot = converted;
      return true;
    }
    case Operand::Kind::kInteger:
    case Operand::Kind::kFloat32:
    case Operand::Kind::kFloat64: {
      uint64_t bits = 0;
      if (!ImmediateBits(operand, type, &bits)) return false;
      *slot = ConstantSlot(bits, wide);
      return true;
    }
    case Operand::Kind::kSpecial:
      return SpecialSource(operand, wide, slot);
    case Operand::Kind::kVariable:
      return VariableSource(operand, wide, slot);
    case Operand::Kind::kFunction:
      *slot = ConstantSlot(TagBase(kTagCode) + uint64_t{operand.index} * 16, wide);
      return true;
    default:
      return Fail("unexpected operand");
  }
}

bool Decoder::Destination(const Operand& operand, Type type, uint32_t* slot) {
  if (operand.kind == Operand::Kind::kSink) {
    *slot = SinkSlot();
    return true;
  }
  if (operand.kind != Operand::Kind::kRegister) return Fail("register expected as destination");
  bool is_predicate = body_.registers[operand.index] == Type::kPred;
  if (is_predicate != (type == Type::kPred)) return Fail("type of the destination does not fit");
  *slot = RegisterSlot(operand.index);
  bool wide = ptx::TypeBytes(type) == 8;
  if (is_predicate || IsWideRegister(operand.index) == wide) return true;
  LateCopy copy;
  copy.to = *slot;
  copy.from = *slot = NewSlot(wide ? 8 * kLanes : 4 * kLanes);
  copy.how = wide                  ? Control::kNarrow
             : ptx::IsSigned(type) ? Control::kWidenSigned
                                   : Control::kWidenUnsigned;
  late_.push_back(copy);
  return true;
}

void Decoder::FinishDestinations() {
  for (const LateCopy& copy : late_) {
    Insn& insn = EmitControl(copy.how);
    insn.r[0] = copy.to;
    insn.r[1] = copy.from;
  }
  late_.clear();
}

// [register + n], [variable + n] or [n].
bool Decoder::ReadAddress(const Operand& operand, const ptx::Op& op, Address* address) {
  if (operand.kind != Operand::Kind::kAddress || operand.count != 1)
    return Fail("address expected");
  const Operand& base = Element(operand, 0);
  address->imm = operand.addend;
  if (base.kind == Operand::Kind::kRegister) {
    if (body_.registers[base.index] == Type::kPred) return Fail("predicate as an address");
    address->slot = RegisterSlot(base.index);
    address->wide = IsWideRegister(base.index);
    return true;
  }
  if (base.kind == Operand::Kind::kInteger) {
    address->slot = ConstantSlot(base.bits, true);
    return true;
  }
  const ptx::Variable* variable = base.variable;
  switch (variable->space) {
    case Space::kShared:
      address->slot = ConstantSlot(0, false);
      address->imm += builder_.SharedOffset(variable);
      address->wide = false;
      break;
    case Space::kLocal: {
      Fill fill;
      fill.kind = Fill::Kind::kLocalBase;
      fill.wide = true;
      address->slot = FillSlot(fill);
      address->imm += local_offset_.at(variable);
      break;
    }
    case Space::kParam:
      if (!param_offset_.contains(variable))
        return Fail("unknown parameter " + std::string(variable->name));
      address->is_param = true;
      address->imm += param_offset_.at(variable);
      break;
    default:
      return VariableSource(base, true, &address->slot);
  }
  bool tagged = !op.HasAny({ptx::Mod::kShared, ptx::Mod::kSharedCta, ptx::Mod::kLocal,
                            ptx::Mod::kParam, ptx::Mod::kParamEntry, ptx::Mod::kParamFunc});
  if (tagged && variable->space != Space::kParam) {
    return Fail("variable " + std::string(variable->name) + " needs its state space in the opcode");
  }
  return true;
}

}  // namespace atp::sim::exec
