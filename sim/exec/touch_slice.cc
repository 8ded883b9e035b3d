// SPDX-License-Identifier: Apache-2.0
#include "sim/exec/touch_slice.h"

#include <algorithm>
#include <string_view>

#include "sim/exec/control_flow.h"

namespace atp::sim::exec {
namespace {

using ptx::Base;
using ptx::Body;
using ptx::Instruction;
using ptx::Mod;
using ptx::Op;
using ptx::Operand;

enum class Source {
  kComputed,  // from its operands alone
  kParam,     // a kernel parameter
  kData,      // from memory, from other threads' timing, from a call
};

bool IsParam(const Op& op) { return op.HasAny({Mod::kParam, Mod::kParamEntry, Mod::kParamFunc}); }

Source SourceOf(const Op& op) {
  switch (op.base) {
    case Base::kLd:
      return IsParam(op) ? Source::kParam : Source::kData;
    case Base::kLdu:
    case Base::kAtom:
    case Base::kCall:
    case Base::kMbarrier:
    case Base::kLdmatrix:
    case Base::kWmma:
    case Base::kMma:
    case Base::kMovmatrix:
    case Base::kAddc:  // the carry comes from an instruction that is not an operand
    case Base::kSubc:
    case Base::kMadc:
      return Source::kData;
    case Base::kBar:
    case Base::kBarrier:
      return op.Has(Mod::kRed) ? Source::kData : Source::kComputed;
    default:
      return Source::kComputed;
  }
}

// Accesses that a launch's touches are made of. Explicitly shared, local and parameter memory is
// not among them.
bool Touches(const Op& op) {
  switch (op.base) {
    case Base::kLd:
    case Base::kLdu:
    case Base::kSt:
    case Base::kAtom:
    case Base::kRed:
    case Base::kLdmatrix:
    case Base::kStmatrix:
      return !ptx::IsSharedSpace(op) && !IsParam(op) && !op.Has(Mod::kLocal);
    case Base::kWmma:
      return op.HasAny({Mod::kLoad, Mod::kStore}) && !ptx::IsSharedSpace(op);
    case Base::kCp:
      return !op.HasAny({Mod::kCommitGroup, Mod::kWaitGroup, Mod::kWaitAll});
    default:
      return false;
  }
}

// Instructions at which threads wait for each other: who comes there decides in which order touches
// are made.
bool Orders(const Op& op) {
  return op.base == Base::kBar || op.base == Base::kBarrier || op.base == Base::kMbarrier;
}

bool IsBranch(const Op& op) {
  return op.base == Base::kBra || op.base == Base::kBrx || op.base == Base::kExit ||
         op.base == Base::kRet;
}

bool IsGroup(const Operand& operand) {
  return operand.kind == Operand::Kind::kVector || operand.kind == Operand::Kind::kPair ||
         operand.kind == Operand::Kind::kList;
}

bool IsKnownSpecial(std::string_view name) {
  for (std::string_view known :
       {"%tid", "%ntid", "%ctaid", "%nctaid", "%laneid", "%lanemask", "%warpid", "%nwarpid",
        "%smid", "%nsmid", "%dynamic_smem", "%total_smem", "WARP_SZ"}) {
    if (name.starts_with(known)) return true;
  }
  return false;
}

class Slicer {
 public:
  Slicer(const ptx::ParsedModule& module, const ptx::Function& kernel, const Body& body)
      : module_(module), kernel_(kernel), body_(body), flow_(module, body) {}

  TouchSlice Run() {
    IndexDefinitions();
    if (CallsOrUsesObjects()) return std::move(slice_);
    for (uint32_t k = 0; k < body_.instructions.size(); ++k) {
      if (Touches(OpOf(k))) {
        NeedToRun(k);
        NeedAddresses(k);
      } else if (Orders(OpOf(k))) {
        NeedToRun(k);
        if (!OpOf(k).Has(Mod::kRed)) NeedOperands(k, 0);
      }
    }
    bool known = Follow();
    slice_.depends_on_data = !known;
    if (known) FindDataBranches();
    std::sort(slice_.params.begin(), slice_.params.end());
    slice_.params.erase(std::unique(slice_.params.begin(), slice_.params.end()),
                        slice_.params.end());
    return std::move(slice_);
  }

 private:
  const Op& OpOf(uint32_t k) const { return body_.ops[body_.instructions[k].op]; }
  const Operand& Element(const Operand& operand, uint32_t k) const {
    return body_.operands[operand.first + k];
  }

  bool Refuse(uint32_t k) {
    slice_.reason =
        "line " + std::to_string(body_.instructions[k].line) + ": " + std::string(OpOf(k).text);
    return false;
  }

  // Device functions are not looked into; output and allocation have effects of their own. What the
  // object of a texture or surface means may change between launches.
  bool CallsOrUsesObjects() {
    for (uint32_t k = 0; k < body_.instructions.size(); ++k) {
      const Base base = OpOf(k).base;
      const bool calls = base == Base::kCall;
      if (calls && !IsAssertion(module_, body_, body_.instructions[k])) return !Refuse(k);
      if (base == Base::kTex || base == Base::kSuld || base == Base::kSust) return !Refuse(k);
    }
    return false;
  }

  void IndexDefinitions() {
    definitions_.resize(body_.registers.size());
    needed_register_.assign(body_.registers.size(), false);
    must_run_.assign(body_.instructions.size(), false);
    for (uint32_t k = 0; k < body_.instructions.size(); ++k) {
      const Instruction& instruction = body_.instructions[k];
      if (instruction.count == 0) continue;
      const Operand& to = body_.operands[instruction.first];
      Define(to, k);
      for (uint32_t e = 0; IsGroup(to) && e < to.count; ++e) Define(Element(to, e), k);
    }
  }
  void Define(const Operand& operand, uint32_t k) {
    if (operand.kind == Operand::Kind::kRegister) definitions_[operand.index].push_back(k);
  }

  void NeedRegister(uint32_t reg) {
    if (needed_register_[reg]) return;
    needed_register_[reg] = true;
    pending_.push_back(reg);
  }

  // Whether and with which lanes it runs must be known.
  void NeedToRun(uint32_t k) {
    if (must_run_[k]) return;
    must_run_[k] = true;
    if (body_.instructions[k].guard >= 0)
      NeedRegister(static_cast<uint32_t>(body_.instructions[k].guard));
    for (uint32_t branch : flow_.Deciders(k)) {
      NeedToRun(branch);
      NeedOperands(branch, 0);
    }
  }

  void NeedOperands(uint32_t k, uint32_t first) {
    const Instruction& instruction = body_.instructions[k];
    for (uint32_t a = first; a < instruction.count; ++a)
      Need(body_.operands[instruction.first + a], k);
  }

  // Not the values that are loaded or stored.
  void NeedAddresses(uint32_t k) {
    const Instruction& instruction = body_.instructions[k];
    for (uint32_t a = 0; a < instruction.count; ++a) {
      const Operand& operand = body_.operands[instruction.first + a];
      const bool is_stride = OpOf(k).base == Base::kWmma && a + 1 == instruction.count;
      const bool is_size = OpOf(k).base == Base::kCp;
      if (operand.kind == Operand::Kind::kAddress || is_stride || is_size) Need(operand, k);
    }
  }

  void Need(const Operand& operand, uint32_t k) {
    switch (operand.kind) {
      case Operand::Kind::kRegister:
        return NeedRegister(operand.index);
      case Operand::Kind::kAddress:
        return Need(Element(operand, 0), k);
      case Operand::Kind::kVector:
      case Operand::Kind::kPair:
      case Operand::Kind::kList:
        for (uint32_t e = 0; e < operand.count; ++e) Need(Element(operand, e), k);
        return;
      case Operand::Kind::kSpecial:
        if (!IsKnownSpecial(operand.name) && bad_ == UINT32_MAX) bad_ = k;
        return;
      default:
        return;
    }
  }

  bool Follow() {
    while (!pending_.empty() && bad_ == UINT32_MAX) {
      const uint32_t reg = pending_.back();
      pending_.pop_back();
      for (uint32_t k : definitions_[reg]) {
        const Source source = SourceOf(OpOf(k));
        if (source == Source::kData) return Refuse(k);
        NeedToRun(k);
        if (source == Source::kParam) {
          NoteParam(k);
        } else {
          NeedOperands(k, 1);
        }
      }
    }
    return bad_ == UINT32_MAX || Refuse(bad_);
  }

  void NoteParam(uint32_t k) {
    const Instruction& instruction = body_.instructions[k];
    const Operand& from = body_.operands[instruction.first + 1];
    const Operand& base = Element(from, 0);
    uint32_t at = 0, end = 0;
    for (const ptx::Variable& parameter : kernel_.params) {
      at = (end + parameter.alignment - 1) / parameter.alignment * parameter.alignment;
      end = at + static_cast<uint32_t>(parameter.bytes);
      if (base.kind != Operand::Kind::kVariable || base.variable != &parameter) continue;
      const uint32_t bytes = static_cast<uint32_t>(ptx::TypeBytes(OpOf(k).type())) * OpOf(k).vector;
      slice_.params.emplace_back(at + static_cast<uint32_t>(from.addend), bytes);
      return;
    }
    slice_.params.emplace_back(0, end);  // a place that is computed: any of them
    Need(base, k);
  }

  // Follows the branches outside the slice too, none of which decides about a touch: parameters
  // that decide them count as well, unless data does.
  void FindDataBranches() {
    const auto params = slice_.params;
    for (uint32_t k = 0; k < body_.instructions.size(); ++k) {
      if (!IsBranch(OpOf(k)) || must_run_[k]) continue;
      NeedToRun(k);
      NeedOperands(k, 0);
    }
    if (Follow()) return;
    slice_.data_branches = true;
    slice_.params = params;
    slice_.reason.clear();
  }

  const ptx::ParsedModule& module_;
  const ptx::Function& kernel_;
  const Body& body_;
  ControlFlow flow_;
  TouchSlice slice_;
  std::vector<std::vector<uint32_t>> definitions_;  // of each register
  std::vector<bool> needed_register_, must_run_;
  std::vector<uint32_t> pending_;
  uint32_t bad_ = UINT32_MAX;  // an instruction that reads a register such as the clock
};

}  // namespace

TouchSlice SliceTouches(const ptx::ParsedModule& module, const ptx::Function& kernel,
                        const ptx::Body& body) {
  return Slicer(module, kernel, body).Run();
}

}  // namespace atp::sim::exec
