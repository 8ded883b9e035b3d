// SPDX-License-Identifier: Apache-2.0
#include "sim/exec/decoder.h"

namespace atp::sim::exec {

using ptx::Base;
using ptx::Mod;
using ptx::Operand;
using ptx::Space;
using ptx::Type;

namespace {

constexpr uint64_t kMaxLocalBytes = 512 << 10;
constexpr uint64_t kMaxParamBytes = 64 << 10;
constexpr uint32_t kMaxFrameBytes = 256u << 20;

enum class Group {
  kControl,
  kLoad,
  kStore,
  kAtomic,
  kMov,
  kSetp,
  kCvta,
  kIsspacep,
  kWarp,
  kNothing,
  kMatrix,
  kAsync,
  kTexture,
  kGeneric
};

Group GroupOf(const ptx::Op& op) {
  switch (op.base) {
    case Base::kBra:
    case Base::kBrx:
    case Base::kCall:
    case Base::kRet:
    case Base::kExit:
    case Base::kTrap:
    case Base::kBrkpt:
    case Base::kNanosleep:
      return Group::kControl;
    case Base::kBar:
    case Base::kBarrier:
      return op.Has(Mod::kWarp) ? Group::kWarp : Group::kControl;
    case Base::kLd:
    case Base::kLdu:
      return Group::kLoad;
    case Base::kSt:
      return Group::kStore;
    case Base::kAtom:
    case Base::kRed:
      return Group::kAtomic;
    case Base::kMov:
      return Group::kMov;
    case Base::kSetp:
    case Base::kSet:
      return Group::kSetp;
    case Base::kCvta:
      return Group::kCvta;
    case Base::kIsspacep:
      return Group::kIsspacep;
    case Base::kShfl:
    case Base::kVote:
    case Base::kMatch:
    case Base::kRedux:
    case Base::kElect:
    case Base::kActivemask:
      return Group::kWarp;
    case Base::kMembar:
    case Base::kFence:
    case Base::kPrefetch:
    case Base::kPrefetchu:
    case Base::kPmevent:
    case Base::kGriddepcontrol:
    case Base::kSetmaxnreg:
    case Base::kApplypriority:
      return Group::kNothing;
    case Base::kMma:
    case Base::kWmma:
    case Base::kLdmatrix:
    case Base::kStmatrix:
    case Base::kMovmatrix:
      return Group::kMatrix;
    case Base::kCp:
    case Base::kMbarrier:
      return Group::kAsync;
    case Base::kTex:
    case Base::kSuld:
    case Base::kSust:
      return Group::kTexture;
    default:
      return Group::kGeneric;
  }
}

bool ControlIsSupported(const ptx::Op& op) {
  if (op.base == Base::kBar || op.base == Base::kBarrier)
    return op.HasAny({Mod::kSync, Mod::kArrive, Mod::kRed});
  return true;
}

}  // namespace

bool IsSupported(const Variant& variant, std::string_view opcode) {
  ptx::Op op;
  if (!ptx::ParseOpcode(opcode, &op)) return false;
  switch (GroupOf(op)) {
    case Group::kControl:
      return ControlIsSupported(op);
    case Group::kMov:
      return op.type_count == 1 && (op.type() == Type::kPred || ptx::TypeBytes(op.type()) <= 8);
    case Group::kCvta:
      return ptx::TypeBytes(op.type()) == 8;
    case Group::kIsspacep:
    case Group::kNothing:
      return true;
    case Group::kLoad: {
      if (variant.pick(op, Form{}) != nullptr) return true;
      Form form;
      form.stack_param = true;
      return variant.pick(op, form) != nullptr;
    }
    default:
      return variant.pick(op, Form{}) != nullptr;
  }
}

bool Decoder::Fail(std::string message) {
  if (error_->empty()) {
    *error_ = "line " + std::to_string(now_ != nullptr ? now_->line : function_.line) + ": " +
              std::move(message) + " in " + std::string(function_.name);
    if (now_ != nullptr) *error_ += " (" + std::string(body_.ops[now_->op].text) + ")";
  }
  return false;
}

void Decoder::LayOutParameters() {
  uint64_t at = 0;
  auto place = [&](const ptx::Variable& variable) {
    uint64_t alignment =
        function_.is_entry ? variable.alignment : std::max<uint32_t>(variable.alignment, 8);
    at = (at + alignment - 1) / alignment * alignment;
    param_offset_[&variable] = static_cast<uint32_t>(at);
    at += variable.bytes;
    return Formal{Formal::kStack, param_offset_[&variable], static_cast<uint32_t>(variable.bytes)};
  };
  auto formal = [&](const ptx::Variable& variable) {
    if (variable.space != Space::kReg) return place(variable);
    return Formal{variable.type == Type::kPred || ptx::TypeBytes(variable.type) != 8
                      ? Formal::kNarrow
                      : Formal::kWide,
                  0, static_cast<uint32_t>(ptx::TypeBytes(variable.type))};
  };
  for (const ptx::Variable& variable : function_.params)
    program_.params.push_back(formal(variable));
  if (function_.is_entry) at = 0;  // kernel parameters lie in the launch's buffer, not in the frame
  for (const ptx::Variable& variable : function_.returns)
    program_.returns.push_back(formal(variable));
  for (const auto& variable : body_.locals) {
    if (variable->space == Space::kParam) place(*variable);
  }
  program_.param_stride =
      static_cast<uint32_t>(std::min<uint64_t>((at + 15) / 16 * 16, UINT32_MAX));
}

void Decoder::LayOutLocals() {
  uint64_t at = 0;
  for (const auto& variable : body_.locals) {
    if (variable->space != Space::kLocal) continue;
    at = (at + variable->alignment - 1) / variable->alignment * variable->alignment;
    local_offset_[variable.get()] = static_cast<uint32_t>(std::min<uint64_t>(at, UINT32_MAX));
    at += std::min<uint64_t>(variable->bytes, kMaxLocalBytes * 2);
  }
  program_.local_bytes = static_cast<uint32_t>(std::min<uint64_t>((at + 15) / 16 * 16, UINT32_MAX));
}

// Registers written once, by a move of something that is the same throughout a launch, share that
// value's slot.
void Decoder::FindAliases() {
  definitions_.assign(body_.registers.size(), 0);
  skipped_.assign(body_.instructions.size(), false);
  auto define = [&](const Operand& operand) {
    if (operand.kind == Operand::Kind::kRegister && definitions_[operand.index] < 2)
      ++definitions_[operand.index];
  };
  for (const ptx::Instruction& instruction : body_.instructions) {
    bool is_call = body_.ops[instruction.op].base == Base::kCall;
    uint32_t count = is_call ? instruction.count : std::min(instruction.count, 1u);
    for (uint32_t k = 0; k < count; ++k) {
      const Operand& operand = body_.operands[instruction.first + k];
      define(operand);
      bool is_group = operand.kind == Operand::Kind::kVector ||
                      operand.kind == Operand::Kind::kPair || operand.kind == Operand::Kind::kList;
      for (uint32_t e = 0; is_group && e < operand.count; ++e) define(Element(operand, e));
    }
  }
  for (size_t k = 0; k < body_.instructions.size(); ++k) {
    const ptx::Instruction& instruction = body_.instructions[k];
    if (instruction.guard >= 0 || instruction.count != 2) continue;
    now_ = &instruction;
    skipped_[k] = TryAlias(instruction, body_.ops[instruction.op]);
  }
  now_ = nullptr;
}

bool Decoder::TryAlias(const ptx::Instruction& instruction, const ptx::Op& op) {
  const Operand& to = body_.operands[instruction.first];
  const Operand& from = body_.operands[instruction.first + 1];
  if (to.kind != Operand::Kind::kRegister || definitions_[to.index] != 1) return false;
  Type type = op.type();
  int bytes = ptx::TypeBytes(type);
  if (bytes == 0 || bytes > 8 || body_.registers[to.index] == Type::kPred) return false;
  bool wide = bytes == 8;
  if (IsWideRegister(to.index) != wide) return false;
  uint32_t slot = 0;
  if (op.base == Base::kMov && op.vector == 1) {
    bool constant = from.kind == Operand::Kind::kInteger || from.kind == Operand::Kind::kFloat32 ||
                    from.kind == Operand::Kind::kFloat64;
    bool special = from.kind == Operand::Kind::kSpecial &&
                   from.name.find("clock") == std::string_view::npos &&
                   from.name.find("timer") == std::string_view::npos;
    if (!constant && !special) return false;
    if (!Source(from, type, &slot)) return false;
    register_slot_[to.index] = slot;
    return true;
  }
  if (op.base != Base::kLd || !op.Has(Mod::kParam) || op.vector != 1 || !function_.is_entry ||
      from.kind != Operand::Kind::kAddress || Element(from, 0).kind != Operand::Kind::kVariable) {
    return false;
  }
  const ptx::Variable* variable = Element(from, 0).variable;
  bool is_parameter = false;
  for (const ptx::Variable& parameter : function_.params) is_parameter |= &parameter == variable;
  if (!is_parameter || from.addend < 0 ||
      static_cast<uint64_t>(from.addend + bytes) > variable->bytes)
    return false;
  Fill fill;
  fill.kind = Fill::Kind::kParameter;
  fill.wide = wide;
  fill.is_signed = ptx::IsSigned(type);
  fill.bytes = static_cast<uint8_t>(bytes);
  fill.symbol = param_offset_.at(variable) + static_cast<uint32_t>(from.addend);
  register_slot_[to.index] = FillSlot(fill);
  return true;
}

bool Decoder::DecodeOne(const ptx::Instruction& instruction) {
  const ptx::Op& op = body_.ops[instruction.op];
  switch (GroupOf(op)) {
    case Group::kControl:
      return DecodeControl(op);
    case Group::kLoad:
      return DecodeLoad(op);
    case Group::kStore:
      return DecodeStore(op);
    case Group::kAtomic:
      return DecodeAtomic(op);
    case Group::kMov:
      return DecodeMov(op);
    case Group::kSetp:
      return DecodeSetp(op);
    case Group::kCvta:
      return DecodeCvta(op);
    case Group::kIsspacep:
      return DecodeIsspacep(op);
    case Group::kWarp:
      return DecodeWarpOp(op);
    case Group::kMatrix:
      return DecodeMatrix(op);
    case Group::kAsync:
      return DecodeAsync(op);
    case Group::kTexture:
      return DecodeTexture(op);
    case Group::kNothing:
      if ((op.base == Base::kMembar || op.base == Base::kFence) && !op.Has(Mod::kCta))
        builder_.code()->ordered = true;
      EmitControl(Control::kNop);
      return true;
    case Group::kGeneric:
      return DecodeGeneric(op);
  }
  return false;
}

bool Decoder::DecodeAll() {
  code_at_.assign(body_.instructions.size() + 1, 0);
  for (size_t k = 0; k < body_.instructions.size(); ++k) {
    now_ = &body_.instructions[k];
    code_at_[k] = static_cast<uint32_t>(program_.code.size());
    if (skipped_[k]) continue;
    use_guard_ = true;
    if (!DecodeOne(*now_)) return Fail("wrong operands");
    if (program_.frame_bytes > kMaxFrameBytes) return Fail("function too large");
  }
  code_at_.back() = static_cast<uint32_t>(program_.code.size());
  // Running off the end of a body returns.
  Insn insn;
  insn.run = builder_.variant().control(function_.is_entry ? Control::kExit : Control::kReturn);
  program_.code.push_back(insn);
  program_.origins.push_back({function_.line, "ret"});
  return true;
}

bool Decoder::ResolveBranches() {
  for (const Fixup& fixup : fixups_) {
    if (fixup.label >= code_at_.size()) return Fail("bad label");
    program_.code[fixup.code].imm =
        static_cast<int64_t>(code_at_[fixup.label]) - static_cast<int64_t>(fixup.code);
  }
  for (const TableFixup& fixup : table_fixups_) {
    if (fixup.label >= code_at_.size()) return Fail("bad label");
    program_.operands[fixup.index] = code_at_[fixup.label];
  }
  return true;
}

bool Decoder::Run() {
  program_.name = std::string(function_.name);
  LayOutParameters();
  LayOutLocals();
  if (program_.param_stride > kMaxParamBytes) return Fail("too many parameters");
  if (program_.local_bytes > kMaxLocalBytes) return Fail("too much local memory");
  program_.frame_bytes = std::max<uint32_t>(64, program_.param_stride * kLanes);
  register_slot_.assign(body_.registers.size(), UINT32_MAX);
  sink_ = NewSlot(8 * kLanes);
  uint32_t reg = 0;
  for (auto [list, formals] : {std::pair(&function_.params, &program_.params),
                               std::pair(&function_.returns, &program_.returns)}) {
    for (size_t k = 0; k < list->size(); ++k) {
      if ((*list)[k].space == Space::kReg) (*formals)[k].offset = RegisterSlot(reg++);
    }
  }
  FindAliases();
  program_.zero_begin = program_.frame_bytes;
  for (uint32_t k = 0; k < body_.registers.size(); ++k) {
    if (definitions_[k] != 0) RegisterSlot(k);  // together, so that they can be cleared in one go
  }
  program_.zero_end = program_.frame_bytes;
  if (program_.frame_bytes > kMaxFrameBytes) return Fail("function too large");
  if (!DecodeAll()) return false;
  now_ = nullptr;
  if (!ResolveBranches()) return false;
  program_.entry = program_.code.data();
  program_.table = program_.operands.data();
  return true;
}

}  // namespace atp::sim::exec
