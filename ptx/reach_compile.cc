// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <string>
#include <unordered_map>

#include "ptx/reach.h"
#include "ptx/reach_code.h"

namespace atp::ptx {
namespace {

bool IsParamSpace(const Op& op) {
  return op.HasAny({Mod::kParam, Mod::kParamEntry, Mod::kParamFunc});
}
// Memory that only this block sees, or that nobody writes.
bool IsOwnSpace(const Op& op) {
  return IsSharedSpace(op) || IsParamSpace(op) || op.HasAny({Mod::kLocal, Mod::kConst});
}

bool CompareOf(const Op& op, Comparison* comparison) {
  static constexpr std::pair<Mod, Comparison> kAll[] = {
      {Mod::kEq, Comparison::kEq}, {Mod::kNe, Comparison::kNe}, {Mod::kLt, Comparison::kLt},
      {Mod::kLe, Comparison::kLe}, {Mod::kGt, Comparison::kGt}, {Mod::kGe, Comparison::kGe},
      {Mod::kLo, Comparison::kLt}, {Mod::kLs, Comparison::kLe}, {Mod::kHi, Comparison::kGt},
      {Mod::kHs, Comparison::kGe}};
  for (const auto& [mod, what] : kAll) {
    if (op.Has(mod)) return *comparison = what, true;
  }
  return false;
}

// kUnknown: not an operation on integers that is followed.
ReachOp ArithmeticOf(const Op& op) {
  if (IsFloat(op.type()) || op.Has(Mod::kSat) || op.Has(Mod::kCc)) return ReachOp::kUnknown;
  const auto product = [&](ReachOp low, ReachOp high, ReachOp wide) {
    return op.Has(Mod::kWide) ? wide : op.Has(Mod::kHi) ? high : low;
  };
  switch (op.base) {
    case Base::kMov:
    case Base::kCvta:
      return ReachOp::kMov;
    case Base::kAdd:
      return ReachOp::kAdd;
    case Base::kSub:
      return ReachOp::kSub;
    case Base::kMul:
      return product(ReachOp::kMul, ReachOp::kMulHi, ReachOp::kMulWide);
    case Base::kMad:
      return product(ReachOp::kMad, ReachOp::kMadHi, ReachOp::kMadWide);
    case Base::kDiv:
      return ReachOp::kDiv;
    case Base::kRem:
      return ReachOp::kRem;
    case Base::kMin:
      return ReachOp::kMin;
    case Base::kMax:
      return ReachOp::kMax;
    case Base::kAbs:
      return ReachOp::kAbs;
    case Base::kNeg:
      return ReachOp::kNeg;
    case Base::kAnd:
      return ReachOp::kAnd;
    case Base::kOr:
      return ReachOp::kOr;
    case Base::kXor:
      return ReachOp::kXor;
    case Base::kNot:
      return ReachOp::kNot;
    case Base::kShl:
      return ReachOp::kShl;
    case Base::kShr:
      return ReachOp::kShr;
    case Base::kBfe:
      return ReachOp::kBfe;
    case Base::kBfi:
      return ReachOp::kBfi;
    case Base::kLop3:
      return ReachOp::kLop3;
    case Base::kSelp:
      return ReachOp::kSelp;
    default:
      return ReachOp::kUnknown;
  }
}

}  // namespace

ReachCode::ReachCode() = default;
ReachCode::~ReachCode() = default;

class ReachCompiler {
 public:
  ReachCompiler(const ParsedModule& module, const Function& kernel, const Body& body)
      : module_(module), kernel_(kernel), body_(body), code_(new ReachCode) {
    code_->first_special_ = static_cast<uint32_t>(body.registers.size());
    code_->first_constant_ = code_->first_special_ + kReachSpecials;
    uint32_t end = 0;
    for (const Variable& p : kernel.params) {
      const uint32_t at = (end + p.alignment - 1) / p.alignment * p.alignment;
      end = at + static_cast<uint32_t>(p.bytes);
      parameter_at_[&p] = at;
    }
  }

  std::unique_ptr<const ReachCode> Run() {
    std::vector<uint32_t> first(body_.instructions.size() + 1);  // step of each instruction
    for (uint32_t k = 0; k < body_.instructions.size(); ++k) {
      first[k] = static_cast<uint32_t>(steps_.size());
      now_ = &body_.instructions[k];
      if (!Compile(body_.ops[now_->op])) return nullptr;
    }
    first.back() = static_cast<uint32_t>(steps_.size());
    for (ReachStep& step : steps_) {
      if (step.op == ReachOp::kBranch) step.target = first[step.target];
    }
    KeepWhatMatters();
    return std::move(code_);
  }

 private:
  const Operand& At(uint32_t k) const { return body_.operands[now_->first + k]; }
  const Operand& Element(const Operand& operand, uint32_t k) const {
    return body_.operands[operand.first + k];
  }
  static bool IsGroup(const Operand& operand) {
    return operand.kind == Operand::Kind::kVector || operand.kind == Operand::Kind::kPair ||
           operand.kind == Operand::Kind::kList;
  }

  // Guarded as the instruction is. The reference holds until the next step is added.
  ReachStep& Add(ReachOp op) {
    ReachStep step;
    step.op = op;
    Place(step);
    return steps_.back();
  }
  void Place(ReachStep step) {
    if (now_->guard >= 0) step.guard = static_cast<uint32_t>(now_->guard);
    step.guard_negated = now_->guard_negated;
    steps_.push_back(step);
  }

  uint32_t Constant(uint64_t bits) {
    const auto [at, added] =
        constant_at_.try_emplace(bits, static_cast<uint32_t>(code_->constants_.size()));
    if (added) code_->constants_.push_back(bits);
    return code_->first_constant_ + at->second;
  }

  // A register of ours, behind the constants; numbered when all of them are known.
  uint32_t Temporary() { return kTemporary + temporaries_++; }

  void Unknown(const Operand& to) {
    if (to.kind == Operand::Kind::kRegister) Add(ReachOp::kUnknown).to[0] = to.index;
    for (uint32_t e = 0; IsGroup(to) && e < to.count; ++e) Unknown(Element(to, e));
  }

  uint32_t Special(std::string_view name) {
    static constexpr std::pair<std::string_view, uint32_t> kNames[] = {
        {"%tid", kTid}, {"%ntid", kNtid}, {"%ctaid", kCtaid}, {"%nctaid", kNctaid}};
    const size_t dot = name.find('.');
    for (const auto& [known, first] : kNames) {
      if (dot == std::string_view::npos || name.substr(0, dot) != known) continue;
      const std::string_view part = name.substr(dot + 1);
      if (part == "x" || part == "y" || part == "z") {
        return code_->first_special_ + first + static_cast<uint32_t>(part[0] - 'x');
      }
    }
    if (name == "%laneid") return code_->first_special_ + kLane;
    if (name == "%warpid") return code_->first_special_ + kWarp;
    return FromStep(ReachOp::kUnknown);
  }

  uint32_t FromStep(ReachOp op, int64_t addend = 0) {
    ReachStep& step = Add(op);
    step.guard = kNoRegister;
    step.width = step.to_width = 8;
    step.addend = addend;
    return step.to[0] = Temporary();
  }

  // The register that holds the operand's value.
  uint32_t Source(const Operand& operand) {
    switch (operand.kind) {
      case Operand::Kind::kRegister:
        return operand.negated ? Negated(operand.index) : operand.index;
      case Operand::Kind::kInteger:
        return Constant(operand.bits);
      case Operand::Kind::kSpecial:
        return Special(operand.name);
      case Operand::Kind::kVariable: {
        const auto parameter = parameter_at_.find(operand.variable);
        if (parameter == parameter_at_.end()) return FromStep(ReachOp::kOwnAddress);
        return FromStep(ReachOp::kParameterAddress, parameter->second + operand.addend);
      }
      default:
        return FromStep(ReachOp::kUnknown);
    }
  }
  uint32_t Negated(uint32_t predicate) {
    ReachStep& step = Add(ReachOp::kNot);
    step.guard = kNoRegister;
    step.width = step.to_width = 0;
    step.from[0] = predicate;
    return step.to[0] = Temporary();
  }

  bool Compile(const Op& op) {
    switch (op.base) {
      case Base::kBra:
        return Branch();
      case Base::kBrx:
        return false;
      case Base::kCall:
        return Call();
      case Base::kRet:
      case Base::kExit:
      case Base::kTrap:
        Add(ReachOp::kExit);
        return true;
      case Base::kLd:
      case Base::kLdu:
        return Load(op);
      case Base::kSt:
      case Base::kRed:
        if (now_->count > 0) Touch(op, At(0), BytesOf(op));
        return true;
      case Base::kAtom:
        if (now_->count < 2) return true;
        Unknown(At(0));
        Touch(op, At(1), BytesOf(op));
        return true;
      case Base::kWmma:
        return Matrix(op);
      case Base::kCp:
        AsyncCopy(op);
        return true;
      case Base::kSetp:
        return Compare(op);
      case Base::kCvt:
        return Convert(op);
      default:
        return Compute(op);
    }
  }

  static uint32_t BytesOf(const Op& op) {
    return static_cast<uint32_t>(std::max(TypeBytes(op.type()), 1)) * op.vector;
  }

  bool Branch() {
    if (now_->count == 0 || At(0).kind != Operand::Kind::kLabel) return false;
    Add(ReachOp::kBranch).target = At(0).index;
    return true;
  }

  // The device runtime's own two touch nothing of the program's that is worth a plan.
  bool Call() {
    for (uint32_t k = 0; k < now_->count; ++k) {
      if (At(k).kind == Operand::Kind::kFunction) {
        const std::string_view name = module_.functions[At(k).index]->name;
        if (name != "vprintf" && name != "__assertfail") return false;
        if (k > 0) Unknown(At(0));
        return true;
      }
    }
    return false;
  }

  bool Load(const Op& op) {
    if (now_->count < 2) return true;
    if (IsParamSpace(op)) return LoadParameter(op);
    Unknown(At(0));
    Touch(op, At(1), BytesOf(op));
    return true;
  }

  bool LoadParameter(const Op& op) {
    const Operand &to = At(0), &from = At(1);
    const Operand& base = Element(from, 0);
    const auto bytes = static_cast<uint8_t>(TypeBytes(op.type()));
    for (uint32_t lane = 0; lane < op.vector; ++lane) {
      const Operand& target = IsGroup(to) ? Element(to, lane) : to;
      if (target.kind != Operand::Kind::kRegister) continue;
      int64_t at = from.addend + int64_t{lane} * bytes;
      uint32_t computed = kNoRegister;
      if (base.kind == Operand::Kind::kVariable) {
        const auto parameter = parameter_at_.find(base.variable);
        if (parameter == parameter_at_.end()) {  // what a call returned
          Unknown(target);
          continue;
        }
        at += parameter->second;
      } else {
        computed = Source(base);
      }
      ReachStep& step = Add(ReachOp::kLoadParameter);
      step.from[0] = computed;
      step.addend = at;
      step.width = step.to_width = bytes;
      step.is_signed = IsSigned(op.type());
      step.to[0] = target.index;
    }
    return true;
  }

  ReachStep* Touch(const Op& op, const Operand& address, uint32_t bytes) {
    if (IsOwnSpace(op) || address.kind != Operand::Kind::kAddress) return nullptr;
    const uint32_t base = Source(Element(address, 0));
    ReachStep& step = Add(ReachOp::kTouch);
    step.from[0] = base;
    step.addend = address.addend;
    step.bytes = bytes;
    step.width = 8;
    step.stores = op.base != Base::kLd && op.base != Base::kLdu;
    return &step;
  }

  // A tile: so many rows, the last operand apart (in elements).
  bool Matrix(const Op& op) {
    const bool load = op.Has(Mod::kLoad), store = op.Has(Mod::kStore);
    if (!load && !store) return Compute(op);
    if (load) Unknown(At(0));
    constexpr uint32_t kRows = 16, kColumns = 16;
    const uint32_t element = static_cast<uint32_t>(std::max(TypeBytes(op.type()), 1));
    const uint32_t stride = now_->count > 2 ? Source(At(2)) : kNoRegister;
    ReachStep* step = Touch(op, At(load ? 1 : 0), kColumns * element);
    if (step == nullptr || stride == kNoRegister) return true;
    step->from[1] = stride;
    step->rows = (kRows - 1) * element;
    return true;
  }

  // cp.async [shared], [global], bytes; cp.async.bulk either way. Tensor forms are known by their
  // maps.
  void AsyncCopy(const Op& op) {
    if (now_->count < 3 || op.HasAny({Mod::kCommitGroup, Mod::kWaitGroup, Mod::kWaitAll})) return;
    const bool to_global = op.text.find(".global.shared") != std::string_view::npos;
    const Operand& address = At(to_global ? 0 : 1);
    if (address.kind != Operand::Kind::kAddress || op.text.find("tensor") != std::string_view::npos)
      return;
    const uint32_t base = Source(Element(address, 0)), bytes = Source(At(2));
    ReachStep& step = Add(ReachOp::kTouch);
    step.from[0] = base;
    step.from[1] = bytes;
    step.rows = 1;
    step.addend = address.addend;
    step.width = 8;
  }

  bool Compare(const Op& op) {
    if (now_->count < 3) return true;
    ReachStep step;
    step.op = ReachOp::kSetp;
    if (IsFloat(op.type()) || !CompareOf(op, &step.comparison)) {
      Unknown(At(0));
      return true;
    }
    step.width = static_cast<uint8_t>(TypeBytes(op.type()));
    step.to_width = 0;
    step.is_signed = IsSigned(op.type());
    for (uint32_t k = 0; k < std::min(now_->count - 1, 3u); ++k) step.from[k] = Source(At(k + 1));
    // The comparison's own name may also be the combination's: setp.lt.and.
    if (now_->count > 3) {
      step.combination = op.Has(Mod::kAnd)  ? Combination::kAnd
                         : op.Has(Mod::kOr) ? Combination::kOr
                                            : Combination::kXor;
    }
    for (uint32_t k = 0; k < 2; ++k) {
      const bool pair = IsGroup(At(0));
      if (k > 0 && !pair) break;
      const Operand& to = pair ? Element(At(0), k) : At(0);
      if (to.kind == Operand::Kind::kRegister) step.to[k] = to.index;
    }
    Place(step);
    return true;
  }

  bool Convert(const Op& op) {
    if (now_->count < 2 || At(0).kind != Operand::Kind::kRegister) return true;
    if (op.type_count < 2 || IsFloat(op.types[0]) || IsFloat(op.types[1]) || op.Has(Mod::kSat)) {
      Unknown(At(0));
      return true;
    }
    ReachStep step;
    step.op = ReachOp::kCvt;
    step.width = static_cast<uint8_t>(TypeBytes(op.types[1]));
    step.to_width = static_cast<uint8_t>(TypeBytes(op.types[0]));
    step.is_signed = IsSigned(op.types[1]);
    step.from[0] = Source(At(1));
    step.to[0] = At(0).index;
    Place(step);
    return true;
  }

  bool Compute(const Op& op) {
    if (now_->count == 0) return true;
    const ReachOp what = ArithmeticOf(op);
    if (what == ReachOp::kMov && now_->count == 2 && (IsGroup(At(0)) || IsGroup(At(1)))) {
      return Repack(op);
    }
    if (what == ReachOp::kUnknown || At(0).kind != Operand::Kind::kRegister) {
      Unknown(At(0));
      return true;
    }
    ReachStep step;
    step.op = what;
    step.width = op.type() == Type::kPred ? 0 : static_cast<uint8_t>(TypeBytes(op.type()));
    const bool wide = what == ReachOp::kMulWide || what == ReachOp::kMadWide;
    step.to_width = wide ? static_cast<uint8_t>(2 * step.width) : step.width;
    step.is_signed = IsSigned(op.type());
    for (uint32_t k = 0; k < std::min(now_->count - 1, 4u); ++k) step.from[k] = Source(At(k + 1));
    step.to[0] = At(0).index;
    Place(step);
    return true;
  }

  // mov.b64 %rd, {%r1, %r2} and back.
  bool Repack(const Op& op) {
    const bool pack = IsGroup(At(1));
    const Operand &group = At(pack ? 1 : 0), &single = At(pack ? 0 : 1);
    if (group.count != 2 || IsGroup(single)) {
      Unknown(At(0));
      return true;
    }
    ReachStep step;
    step.op = pack ? ReachOp::kPack : ReachOp::kUnpack;
    step.width = step.to_width = static_cast<uint8_t>(TypeBytes(op.type()));
    for (uint32_t k = 0; k < 2; ++k) {
      const Operand& part = Element(group, k);
      if (pack) {
        step.from[k] = Source(part);
      } else if (part.kind == Operand::Kind::kRegister) {
        step.to[k] = part.index;
      }
    }
    if (pack) {
      if (single.kind != Operand::Kind::kRegister) return true;
      step.to[0] = single.index;
    } else {
      step.from[0] = Source(single);
    }
    Place(step);
    return true;
  }

  void KeepWhatMatters() {
    code_->steps_ = SliceOf(steps_);
    for (ReachStep& step : code_->steps_) {
      for (uint32_t* reg :
           {&step.to[0], &step.to[1], &step.from[0], &step.from[1], &step.from[2], &step.from[3]})
        Number(reg);
    }
    code_->registers_ =
        code_->first_constant_ + static_cast<uint32_t>(code_->constants_.size()) + temporaries_;
  }
  void Number(uint32_t* reg) const {
    if (*reg == kNoRegister || *reg < kTemporary) return;
    *reg += code_->first_constant_ + static_cast<uint32_t>(code_->constants_.size()) - kTemporary;
  }

  static constexpr uint32_t kTemporary = 1u << 30;

  const ParsedModule& module_;
  const Function& kernel_;
  const Body& body_;
  std::unique_ptr<ReachCode> code_;
  std::vector<ReachStep> steps_;
  std::unordered_map<const Variable*, uint32_t> parameter_at_;
  std::unordered_map<uint64_t, uint32_t> constant_at_;
  const Instruction* now_ = nullptr;
  uint32_t temporaries_ = 0;
};

std::unique_ptr<const ReachCode> ReachCode::Make(const ParsedModule& module,
                                                 const Function& kernel) {
  Body body;
  std::string error;
  if (!ParseBody(module, kernel, &body, &error)) return nullptr;
  return ReachCompiler(module, kernel, body).Run();
}

}  // namespace atp::ptx
