// SPDX-License-Identifier: Apache-2.0
// Arithmetic, moves, comparisons, address conversions, warp operations.
#include "sim/exec/decoder.h"

namespace atp::sim::exec {

using ptx::Base;
using ptx::Mod;
using ptx::Operand;
using ptx::Type;

namespace {

struct Signature {
  Type destination;
  std::vector<Type> sources;
};

Type Doubled(Type type) {
  switch (type) {
    case Type::kU16:
      return Type::kU32;
    case Type::kS16:
      return Type::kS32;
    case Type::kU32:
      return Type::kU64;
    default:
      return Type::kS64;
  }
}

Signature SignatureOf(const ptx::Op& op) {
  Type t = op.type();
  switch (op.base) {
    case Base::kAbs:
    case Base::kNeg:
    case Base::kNot:
    case Base::kCnot:
    case Base::kRcp:
    case Base::kSqrt:
    case Base::kRsqrt:
    case Base::kSin:
    case Base::kCos:
    case Base::kEx2:
    case Base::kLg2:
    case Base::kTanh:
    case Base::kBrev:
      return {t, {t}};
    case Base::kPopc:
    case Base::kClz:
    case Base::kBfind:
      return {Type::kU32, {t}};
    case Base::kTestp:
      return {Type::kPred, {t}};
    case Base::kShl:
    case Base::kShr:
      return {t, {t, Type::kU32}};
    case Base::kBfe:
      return {t, {t, Type::kU32, Type::kU32}};
    case Base::kBfi:
      return {t, {t, t, Type::kU32, Type::kU32}};
    case Base::kSelp:
      return {t, {t, t, Type::kPred}};
    case Base::kSlct:
      return {op.types[0], {op.types[0], op.types[0], op.types[1]}};
    case Base::kDp4a:
    case Base::kDp2a: {
      bool is_signed = ptx::IsSigned(op.types[0]) || ptx::IsSigned(op.types[1]);
      return {Type::kS32, {Type::kB32, Type::kB32, is_signed ? Type::kS32 : Type::kU32}};
    }
    case Base::kMul:
      if (op.Has(Mod::kWide)) return {Doubled(t), {t, t}};
      return {t, {t, t}};
    case Base::kMad:
      if (op.Has(Mod::kWide)) return {Doubled(t), {t, t, Doubled(t)}};
      return {t, {t, t, t}};
    case Base::kFma:
    case Base::kMadc:
    case Base::kMad24:
    case Base::kSad:
    case Base::kShf:
    case Base::kPrmt:
    case Base::kFns:
    case Base::kLop3:
      return {t, {t, t, t}};
    case Base::kCvt:
      if (op.types[0] == Type::kF16x2 || op.types[0] == Type::kBf16x2)
        return {op.types[0], {op.types[1], op.types[1]}};
      return {op.types[0], {op.types[1]}};
    default:
      return {t, {t, t}};
  }
}

uint32_t PrmtMode(const ptx::Op& op) {
  constexpr Mod kModes[] = {Mod::kF4e, Mod::kB4e, Mod::kRc8, Mod::kEcl, Mod::kEcr, Mod::kRc16};
  for (uint32_t k = 0; k < 6; ++k) {
    if (op.Has(kModes[k])) return k + 1;
  }
  return 0;
}

uint32_t TestpMode(const ptx::Op& op) {
  constexpr Mod kModes[] = {Mod::kFinite,     Mod::kInfinite, Mod::kNumber,
                            Mod::kNotanumber, Mod::kNormal,   Mod::kSubnormal};
  for (uint32_t k = 0; k < 6; ++k) {
    if (op.Has(kModes[k])) return k;
  }
  return 0;
}

}  // namespace

bool Decoder::DecodeGeneric(const ptx::Op& op) {
  Handler handler = builder_.variant().pick(op, Form{});
  if (handler == nullptr) return Fail("unsupported opcode " + std::string(op.text));
  Signature signature = SignatureOf(op);
  uint32_t needed = static_cast<uint32_t>(signature.sources.size()) + 1;
  bool is_lop3 = op.base == Base::kLop3;
  if (arg_count() != needed + (is_lop3 ? 1 : 0)) return Fail("wrong number of operands");
  uint32_t slots[6] = {};
  for (uint32_t k = 1; k < needed; ++k) {
    if (!Source(Arg(k), signature.sources[k - 1], &slots[k])) return false;
  }
  if (!Destination(Arg(0), signature.destination, &slots[0])) return false;
  Insn& insn = Emit(handler);
  std::copy(slots, slots + 6, insn.r);
  if (is_lop3) {
    if (Arg(4).kind != Operand::Kind::kInteger) return Fail("lop3 needs an immediate table");
    insn.aux = static_cast<uint32_t>(Arg(4).bits & 0xff);
  }
  if (op.base == Base::kPrmt) insn.aux = PrmtMode(op);
  if (op.base == Base::kTestp) insn.aux = TestpMode(op);
  if (op.base == Base::kAddc || op.base == Base::kSubc || op.base == Base::kMadc) insn.aux |= 1;
  if (op.Has(Mod::kCc)) insn.aux |= 2;
  FinishDestinations();
  return true;
}

bool Decoder::DecodeSetp(const ptx::Op& op) {
  Handler handler = builder_.variant().pick(op, Form{});
  if (handler == nullptr) return Fail("unsupported opcode " + std::string(op.text));
  if (arg_count() != 3 && arg_count() != 4) return Fail("wrong number of operands");
  bool is_set = op.base == Base::kSet;
  uint32_t slots[6] = {0, SinkSlot(), 0, 0, 0, 0}, aux = 0;
  if (!Source(Arg(1), op.type(), &slots[2]) || !Source(Arg(2), op.type(), &slots[3])) return false;
  if (arg_count() == 4) {
    if (!PredicateSource(Arg(3), &slots[4])) return false;
    aux = op.Has(Mod::kAnd) ? 1 : op.Has(Mod::kOr) ? 2 : op.Has(Mod::kXor) ? 3 : 0;
    if (aux == 0) return Fail("operation to combine with a predicate is missing");
  }
  Type result = is_set ? op.types[0] : Type::kPred;
  const Operand& destination = Arg(0);
  if (destination.kind == Operand::Kind::kPair && !is_set) {
    if (!Destination(Element(destination, 0), result, &slots[0]) ||
        !Destination(Element(destination, 1), result, &slots[1])) {
      return false;
    }
  } else if (!Destination(destination, result, &slots[0])) {
    return false;
  }
  Insn& insn = Emit(handler);
  std::copy(slots, slots + 6, insn.r);
  insn.aux = aux;
  switch (result) {
    case Type::kF32:
      insn.aux2 = 0x3f800000u;
      break;
    case Type::kF16:
      insn.aux2 = 0x3c00u;
      break;
    case Type::kBf16:
      insn.aux2 = 0x3f80u;
      break;
    case Type::kF16x2:
      insn.aux2 = 0x3c00u;
      break;
    case Type::kBf16x2:
      insn.aux2 = 0x3f80u;
      break;
    default:
      insn.aux2 = 0xffffffffu;
      break;
  }
  FinishDestinations();
  return true;
}

bool Decoder::DecodeVectorMov(const ptx::Op& op, bool pack) {
  const Operand& vector = pack ? Arg(1) : Arg(0);
  uint32_t total = static_cast<uint32_t>(ptx::TypeBytes(op.type()));
  uint32_t parts = vector.count;
  if (parts != 2 && parts != 4) return Fail("mov of this vector is not supported");
  uint32_t bytes = total / parts;
  Type part = bytes == 4   ? Type::kB32
              : bytes == 2 ? Type::kB16
              : bytes == 1 ? Type::kB8
                           : Type::kNone;
  if (part == Type::kNone) return Fail("mov of this vector is not supported");
  uint32_t slots[6] = {};
  for (uint32_t k = 0; k < parts; ++k) {
    bool ok = pack ? Source(Element(vector, k), part, &slots[1 + k])
                   : Destination(Element(vector, k), part, &slots[k]);
    if (!ok) return false;
  }
  bool ok = pack ? Destination(Arg(0), op.type(), &slots[0]) : Source(Arg(1), op.type(), &slots[5]);
  if (!ok) return false;
  Insn& insn = EmitControl(pack ? Control::kPack : Control::kUnpack);
  std::copy(slots, slots + 6, insn.r);
  insn.aux = parts;
  insn.aux2 = bytes;
  FinishDestinations();
  return true;
}

bool Decoder::DecodeMov(const ptx::Op& op) {
  Type type = op.type();
  if (arg_count() != 2 || op.vector != 1) return Fail("wrong operands of mov");
  if (Arg(1).kind == Operand::Kind::kVector) return DecodeVectorMov(op, true);
  if (Arg(0).kind == Operand::Kind::kVector) return DecodeVectorMov(op, false);
  if (ptx::TypeBytes(type) > 8) return Fail("unsupported opcode " + std::string(op.text));
  uint32_t from = 0, to = 0;
  if (!Source(Arg(1), type, &from) || !Destination(Arg(0), type, &to)) return false;
  Control how = type == Type::kPred         ? Control::kCopyPred
                : ptx::TypeBytes(type) == 8 ? Control::kCopy64
                                            : Control::kCopy32;
  Insn& insn = EmitControl(how);
  insn.r[0] = to;
  insn.r[1] = from;
  FinishDestinations();
  return true;
}

bool Decoder::DecodeCvta(const ptx::Op& op) {
  if (arg_count() != 2 || ptx::TypeBytes(op.type()) != 8) return Fail("unsupported form of cvta");
  uint32_t from = 0, to = 0;
  if (!Source(Arg(1), Type::kB64, &from) || !Destination(Arg(0), Type::kB64, &to)) return false;
  AddressTag tag = ptx::IsSharedSpace(op)                       ? kTagShared
                   : op.Has(Mod::kLocal)                        ? kTagLocal
                   : op.HasAny({Mod::kParam, Mod::kParamEntry}) ? kTagParam
                                                                : kTagMemory;
  if (tag == kTagMemory) {
    Insn& insn = EmitControl(Control::kCopy64);
    insn.r[0] = to;
    insn.r[1] = from;
    return true;
  }
  if (op.Has(Mod::kTo)) return EmitOp("and.b64", {to, from, ConstantSlot(kOffsetMask, true)});
  return EmitOp("or.b64", {to, from, ConstantSlot(TagBase(tag), true)});
}

// The two low bits of the tag tell the window apart; ordinary memory and the driver's own have none
// set.
bool Decoder::DecodeIsspacep(const ptx::Op& op) {
  if (arg_count() != 2) return Fail("wrong number of operands");
  uint32_t from = 0, to = 0, tag = NewSlot(8 * kLanes);
  if (!Source(Arg(1), Type::kB64, &from) || !Destination(Arg(0), Type::kPred, &to)) return false;
  uint64_t wanted = ptx::IsSharedSpace(op)                       ? kTagShared
                    : op.Has(Mod::kLocal)                        ? kTagLocal
                    : op.HasAny({Mod::kParam, Mod::kParamEntry}) ? kTagParam
                                                                 : kTagMemory;
  if (!EmitOp("shr.u64", {tag, from, ConstantSlot(kTagShift, false)}) ||
      !EmitOp("and.b64", {tag, tag, ConstantSlot(3, true)})) {
    return false;
  }
  uint32_t wanted_slot = ConstantSlot(wanted, true);
  return EmitOp("setp.eq.u64", {to, SinkSlot(), tag, wanted_slot});
}

// r[0] = result, r[1] = predicate or sink, r[2..4] = sources, r[5] = member mask.
bool Decoder::DecodeWarpOp(const ptx::Op& op) {
  Handler handler = builder_.variant().pick(op, Form{});
  if (handler == nullptr) return Fail("unsupported opcode " + std::string(op.text));
  bool is_vote = op.base == Base::kVote, is_predicate = is_vote && !op.Has(Mod::kBallot);
  bool has_destination = op.base != Base::kBar && op.base != Base::kBarrier;
  bool has_mask = op.Has(Mod::kSync) || op.base == Base::kElect;
  uint32_t first = has_destination ? 1 : 0;
  if (arg_count() < first + (has_mask ? 1u : 0u)) return Fail("wrong number of operands");
  uint32_t sources = arg_count() - first - (has_mask ? 1 : 0);
  uint32_t expected = op.base == Base::kShfl                                          ? 3
                      : is_vote || op.base == Base::kMatch || op.base == Base::kRedux ? 1
                                                                                      : 0;
  if (sources != expected) return Fail("wrong number of operands");
  uint32_t slots[6] = {SinkSlot(), NewSlot(4), 0, 0, 0, 0};
  for (uint32_t k = 0; k < sources; ++k) {
    Type type = is_vote ? Type::kPred : k == 0 ? op.type() : Type::kU32;
    if (!Source(Arg(first + k), type, &slots[2 + k])) return false;
  }
  if (has_mask && !Source(Arg(arg_count() - 1), Type::kU32, &slots[5])) return false;
  if (has_destination) {
    Type type = is_predicate ? Type::kPred : Type::kB32;
    const Operand& destination = Arg(0);
    bool pair = destination.kind == Operand::Kind::kPair;
    if (!Destination(pair ? Element(destination, 0) : destination, type, &slots[0])) return false;
    if (pair && !Destination(Element(destination, 1), Type::kPred, &slots[1])) return false;
  }
  Insn& insn = Emit(handler);
  std::copy(slots, slots + 6, insn.r);
  FinishDestinations();
  return true;
}

}  // namespace atp::sim::exec
