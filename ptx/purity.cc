// SPDX-License-Identifier: Apache-2.0
#include "ptx/purity.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "ptx/purity_run.h"

namespace atp::ptx {
namespace {

// What an instruction may not carry: its effect or its result would hang on other threads' timing.
bool IsOrdered(const Op& op) {
  return op.HasAny({Mod::kVolatile, Mod::kRelaxed, Mod::kAcquire, Mod::kRelease, Mod::kAcqRel,
                    Mod::kSc, Mod::kMmio, Mod::kSys, Mod::kGpu, Mod::kGl, Mod::kCv,
                    Mod::kSharedCluster, Mod::kCluster, Mod::kProxyAsync});
}
bool IsParamSpace(const Op& op) {
  return op.HasAny({Mod::kParam, Mod::kParamEntry, Mod::kParamFunc});
}
bool HasType(const Op& op, std::initializer_list<Type> types) {
  return std::any_of(op.types, op.types + op.type_count, [&](Type type) {
    return std::find(types.begin(), types.end(), type) != types.end();
  });
}

// Computes from its operands, or from those of the threads that take part, and nothing else.
bool IsArithmetic(const Op& op) {
  switch (op.base) {
    case Base::kAbs:
    case Base::kAdd:
    case Base::kAddc:
    case Base::kAnd:
    case Base::kBfe:
    case Base::kBfi:
    case Base::kBfind:
    case Base::kBmsk:
    case Base::kBrev:
    case Base::kClz:
    case Base::kCnot:
    case Base::kCopysign:
    case Base::kCos:
    case Base::kCvt:
    case Base::kDiv:
    case Base::kDp2a:
    case Base::kDp4a:
    case Base::kEx2:
    case Base::kFma:
    case Base::kFns:
    case Base::kLg2:
    case Base::kLop3:
    case Base::kMad:
    case Base::kMad24:
    case Base::kMadc:
    case Base::kMax:
    case Base::kMin:
    case Base::kMma:
    case Base::kMov:
    case Base::kMovmatrix:
    case Base::kMul:
    case Base::kMul24:
    case Base::kNeg:
    case Base::kNot:
    case Base::kOr:
    case Base::kPopc:
    case Base::kPrmt:
    case Base::kRcp:
    case Base::kRem:
    case Base::kRsqrt:
    case Base::kSad:
    case Base::kSelp:
    case Base::kSet:
    case Base::kSetp:
    case Base::kShf:
    case Base::kShl:
    case Base::kShr:
    case Base::kSin:
    case Base::kSlct:
    case Base::kSqrt:
    case Base::kSub:
    case Base::kSubc:
    case Base::kSzext:
    case Base::kTanh:
    case Base::kTestp:
    case Base::kXor:
      return true;
    default:
      return false;
  }
}

bool IsHarmless(const Op& op) {
  if (IsOrdered(op)) return false;
  if (IsArithmetic(op)) {
    // Forms that the steps of reach_code.h do not tell from plain ones.
    return !HasType(op, {Type::kU16x2, Type::kS16x2, Type::kB128}) && !op.Has(Mod::kRelu);
  }
  switch (op.base) {
    case Base::kBra:
    case Base::kExit:
    case Base::kRet:
    case Base::kBar:
    case Base::kBarrier:
      return true;
    case Base::kShfl:
    case Base::kVote:
    case Base::kRedux:
      return op.Has(Mod::kSync);
    case Base::kCvta:
      return op.Has(Mod::kTo) || op.Has(Mod::kGlobal);
    case Base::kLd:
    case Base::kLdu:
      return !op.Has(Mod::kConst);
    case Base::kSt:
      return !op.Has(Mod::kConst) && !IsParamSpace(op);
    case Base::kLdmatrix:
    case Base::kStmatrix:
      return IsSharedSpace(op);
    case Base::kWmma:
      return IsSharedSpace(op) || (!op.Has(Mod::kLoad) && !op.Has(Mod::kStore));
    case Base::kCp:
      return op.text.substr(0, 12) == "cp.async.ca." || op.text.substr(0, 12) == "cp.async.cg." ||
             op.HasAny({Mod::kCommitGroup, Mod::kWaitGroup, Mod::kWaitAll});
    default:
      return false;
  }
}

bool IsHarmlessSpecial(std::string_view name) {
  for (const std::string_view known : {"%tid.", "%ntid.", "%ctaid.", "%nctaid."}) {
    if (name.substr(0, known.size()) == known) return true;
  }
  return name == "%laneid" || name == "WARP_SZ" || name == "%lanemask_eq" ||
         name == "%lanemask_lt" || name == "%lanemask_le" || name == "%lanemask_gt" ||
         name == "%lanemask_ge";
}

// Conversions fill their register: what lies above it is the ISA's affair, not modelled here.
bool FillsRegister(const Body& body, const Instruction& i) {
  const Op& op = body.ops[i.op];
  if (op.base != Base::kCvt || i.count == 0 || op.type_count < 2) return true;
  if (IsFloat(op.types[0]) || IsFloat(op.types[1])) return true;
  const Operand& to = body.operands[i.first];
  return to.kind == Operand::Kind::kRegister &&
         TypeBytes(body.registers[to.index]) == TypeBytes(op.types[0]);
}

// Empty: nothing in the way.
std::string Obstacle(const Body& body, const Function& kernel) {
  for (const Instruction& i : body.instructions) {
    const Op& op = body.ops[i.op];
    if (!IsHarmless(op) || !FillsRegister(body, i)) return "has " + std::string(op.text);
  }
  for (const Operand& operand : body.operands) {
    if (operand.kind == Operand::Kind::kSpecial && !IsHarmlessSpecial(operand.name)) {
      return "reads " + std::string(operand.name);
    }
    if (operand.kind == Operand::Kind::kFunction) return "uses a function";
    const Variable* variable = operand.variable;
    if (variable == nullptr) continue;
    const bool own = variable->space == Space::kShared || variable->space == Space::kLocal;
    const bool parameter = std::any_of(kernel.params.begin(), kernel.params.end(),
                                       [&](const Variable& formal) { return &formal == variable; });
    if (!own && !parameter) return "uses the variable " + std::string(variable->name);
  }
  return {};
}

uint64_t PointerIn(std::span<const char> parameters, uint32_t at) {
  uint64_t pointer = 0;
  std::memcpy(&pointer, &parameters[at], sizeof pointer);
  return pointer;
}

}  // namespace

std::unique_ptr<const PureKernel> PureKernel::Make(const ParsedModule& module,
                                                   const Function& kernel, std::string* why) {
  Body body;
  if (!ParseBody(module, kernel, &body, why)) return nullptr;
  *why = Obstacle(body, kernel);
  if (!why->empty()) return nullptr;
  auto pure = std::make_unique<PureKernel>();
  pure->code_ = ReachCode::Make(module, kernel);
  if (pure->code_ == nullptr) *why = "cannot be followed";
  return pure->code_ == nullptr ? nullptr : std::move(pure);
}

LaunchProof PureKernel::Prove(const Geometry& geometry, std::span<const char> parameters,
                              std::span<const uint32_t> pointers, uint64_t budget) const {
  LaunchProof proof;
  for (const uint32_t at : pointers) {
    const bool inside = at % 8 == 0 && at <= parameters.size() && parameters.size() - at >= 8;
    if (!inside || PointerIn(parameters, at) == 0) proof.why = "a pointer is none";
  }
  if (pointers.size() >= RowValue::kParameterBuffer - 1u) proof.why = "too many pointers";
  return proof.proven() ? PurityRun(*code_, geometry, parameters, pointers, budget).Run() : proof;
}

bool OutputsApart(const LaunchProof& proof, std::span<const char> parameters,
                  std::span<const uint32_t> pointers) {
  struct Range {
    uint64_t begin, end;
  };
  const auto apart = [](const Range& a, const Range& b) {
    return a.end <= b.begin || b.end <= a.begin;
  };
  std::vector<Range> written, read;
  for (size_t k = 0; k < pointers.size(); ++k) {
    const PointerUse& use = proof.uses[k];
    const uint64_t at = PointerIn(parameters, pointers[k]);
    const auto range = [&](int64_t begin, int64_t end) {
      return Range{at + static_cast<uint64_t>(begin), at + static_cast<uint64_t>(end)};
    };
    if (use.writes()) written.push_back(range(use.write_begin, use.write_end));
    if (use.reads()) read.push_back(range(use.read_begin, use.read_end));
  }
  for (size_t a = 0; a < written.size(); ++a) {
    for (size_t b = a + 1; b < written.size(); ++b) {
      if (!apart(written[a], written[b])) return false;
    }
    for (const Range& r : read) {
      if (!apart(written[a], r)) return false;
    }
  }
  return true;
}

}  // namespace atp::ptx
