// SPDX-License-Identifier: Apache-2.0
#include "shim/ptx_access.h"

#include <algorithm>
#include <bitset>
#include <set>
#include <unordered_map>

#include "shim/ptx_text.h"

namespace atp::shim {
namespace {

// Bit i: the value may come from word i of the parameters. The last bit: from a pointer that was
// loaded from memory.
constexpr size_t kWords = 512;  // 4 KiB; larger buffers are not followed
using Origin = std::bitset<kWords + 1>;

bool StartsWith(std::string_view opcode, std::string_view with) {
  return opcode.substr(0, with.size()) == with;
}
bool HasAny(std::string_view opcode, std::initializer_list<std::string_view> parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [&](std::string_view part) { return HasPart(opcode, part); });
}

// Memory that only this kernel sees.
bool IsOwnSpace(std::string_view opcode) {
  return HasAny(opcode, {"shared", "shared::cta", "shared::cluster", "local", "param", "const"});
}
bool IsStore(std::string_view opcode) {
  return StartsWith(opcode, "st.") || StartsWith(opcode, "red.") || StartsWith(opcode, "atom.") ||
         StartsWith(opcode, "wmma.store") || StartsWith(opcode, "multimem.red") ||
         StartsWith(opcode, "multimem.st");
}
bool IsLoad(std::string_view opcode) {
  return StartsWith(opcode, "ld.") || StartsWith(opcode, "ldu.") ||
         StartsWith(opcode, "wmma.load") || StartsWith(opcode, "multimem.ld");
}
// Writes global memory in ways that are not followed.
bool IsOpaque(std::string_view opcode) {
  if (StartsWith(opcode, "cp.async.bulk") || StartsWith(opcode, "cp.reduce")) {
    return !StartsWith(opcode, "cp.async.bulk.shared") &&
           !StartsWith(opcode, "cp.async.bulk.tensor.1d.shared") &&
           opcode.find(".shared::cluster.global") == std::string_view::npos &&
           opcode.find(".shared::cta.global") == std::string_view::npos;
  }
  return StartsWith(opcode, "sust.") || StartsWith(opcode, "sured.");
}
bool LoadsPointers(std::string_view opcode) { return HasAny(opcode, {"u64", "s64", "b64"}); }
// Pointers are not multiplied, shifted to the left or compared: what comes out is an index.
bool MakesIndex(std::string_view opcode) {
  return StartsWith(opcode, "mul.") || StartsWith(opcode, "mul24.") || StartsWith(opcode, "shl.") ||
         StartsWith(opcode, "setp.") || StartsWith(opcode, "set.") || StartsWith(opcode, "rem.") ||
         StartsWith(opcode, "div.");
}

// A function whose stores reach its own memory only may be called without harm; vprintf and
// __assertfail are the device runtime's own.
class Harmless {
 public:
  explicit Harmless(const std::vector<PtxFunction>& functions) {
    names_ = {"vprintf", "__assertfail"};
    for (bool found = true; found;) {
      found = false;
      for (const PtxFunction& f : functions) {
        if (!f.is_kernel && !f.body.empty() && IsSo(f)) found |= names_.insert(f.name).second;
      }
    }
  }
  bool Calls(const PtxInstruction& call) const {
    return std::any_of(call.operands.begin(), call.operands.end(),
                       [&](std::string_view operand) { return names_.count(operand) != 0; });
  }

 private:
  bool IsSo(const PtxFunction& f) const {
    return std::all_of(f.body.begin(), f.body.end(), [&](const PtxInstruction& i) {
      if (StartsWith(i.opcode, "call")) return Calls(i);
      return (!IsStore(i.opcode) || IsOwnSpace(i.opcode)) && !IsOpaque(i.opcode);
    });
  }
  std::set<std::string_view> names_;
};

class Analysis {
 public:
  Analysis(const PtxFunction& kernel, const Harmless& harmless)
      : kernel_(kernel), harmless_(harmless) {
    for (const PtxParameter& p : kernel.parameters) {
      parameters_[p.name] = &p;
      end_ = std::max(end_, p.offset + p.bytes);
    }
  }

  KernelAccess Run() {
    KernelAccess access;
    access.name = kernel_.name;
    access.words.resize((end_ + 7) / 8);
    exact_ = access.words.size() <= kWords;
    while (exact_ && changed_) {
      changed_ = false;
      for (const PtxInstruction& i : kernel_.body) Follow(i);
    }
    constexpr size_t kLoaded = kWords;
    access.exact = exact_ && !written_[kLoaded];
    for (size_t w = 0; w < access.words.size(); ++w) {
      access.words[w] = {!exact_ || read_[w], !access.exact || written_[w]};
    }
    return access;
  }

 private:
  void Follow(const PtxInstruction& i) {
    if (i.operands.empty()) return;
    if (StartsWith(i.opcode, "call")) {
      exact_ &= harmless_.Calls(i);
    } else if (StartsWith(i.opcode, "ld.param")) {
      LoadParameter(i);
    } else if (IsOpaque(i.opcode)) {
      exact_ = false;
    } else if (IsStore(i.opcode)) {
      Store(i);
    } else if (IsLoad(i.opcode)) {
      Load(i);
    } else {
      Compute(i);
    }
  }

  void LoadParameter(const PtxInstruction& i) {
    if (i.operands.size() < 2) return;
    const std::vector<std::string_view> base = NamesIn(i.operands[1]);
    const auto found = base.empty() ? parameters_.end() : parameters_.find(base[0]);
    if (found ==
        parameters_.end()) {  // the value that a call returned, or an address in a register
      exact_ &= base.empty() || origins_.count(base[0]) == 0;
      return;
    }
    const size_t plus = i.operands[1].find('+');
    uint32_t at = 0;
    if (plus != std::string_view::npos) {
      for (char c : i.operands[1].substr(plus + 1)) {
        if (c >= '0' && c <= '9') at = at * 10 + static_cast<uint32_t>(c - '0');
      }
    }
    const uint32_t lanes = HasPart(i.opcode, "v4") ? 4 : HasPart(i.opcode, "v2") ? 2 : 1;
    Origin origin;
    for (uint32_t lane = 0; lane < lanes; ++lane) {
      const uint32_t word = (found->second->offset + at) / 8 + lane;
      if (word < kWords) origin.set(word);
    }
    for (std::string_view name : NamesIn(i.operands[0])) Add(name, origin);
  }

  void Load(const PtxInstruction& i) {
    if (i.operands.size() < 2) return;
    if (!IsOwnSpace(i.opcode)) read_ |= OriginOf(i.operands[1]);
    if (!LoadsPointers(i.opcode)) return;
    Origin loaded;
    loaded.set(kWords);
    for (std::string_view name : NamesIn(i.operands[0])) Add(name, loaded);
  }

  void Store(const PtxInstruction& i) {
    if (IsOwnSpace(i.opcode)) return;
    // The address is in brackets: first, or second where a result comes before it (atom).
    for (std::string_view operand : i.operands) {
      if (operand.empty() || operand[0] != '[') continue;
      const Origin origin = OriginOf(operand);
      written_ |= origin;
      if (!StartsWith(i.opcode, "st.")) read_ |= origin;
      return;
    }
  }

  void Compute(const PtxInstruction& i) {
    if (MakesIndex(i.opcode)) return;
    Origin origin;
    // Of a * b + c only c can be a pointer.
    const size_t first = StartsWith(i.opcode, "mad.") ? 3 : 1;
    for (size_t k = first; k < i.operands.size(); ++k) {
      origin |= OriginOf(i.operands[k]);
      // The address of a parameter: what is loaded through it is not followed.
      for (std::string_view name : NamesIn(i.operands[k])) {
        if (parameters_.count(name) != 0) exact_ = false;
      }
    }
    for (std::string_view name : NamesIn(i.operands[0])) Add(name, origin);
  }

  Origin OriginOf(std::string_view operand) const {
    Origin origin;
    for (std::string_view name : NamesIn(operand)) {
      const auto found = origins_.find(name);
      if (found != origins_.end()) origin |= found->second;
    }
    return origin;
  }

  void Add(std::string_view name, const Origin& origin) {
    Origin& known = origins_[name];
    if ((known | origin) == known) return;
    known |= origin;
    changed_ = true;
  }

  const PtxFunction& kernel_;
  const Harmless& harmless_;
  std::unordered_map<std::string_view, const PtxParameter*> parameters_;
  std::unordered_map<std::string_view, Origin> origins_;
  Origin read_, written_;
  uint32_t end_ = 0;
  bool exact_ = true, changed_ = true;
};

}  // namespace

std::vector<KernelAccess> ReadKernelAccess(std::string_view ptx) {
  const std::string text = WithoutComments(ptx);
  const std::vector<PtxFunction> functions = ReadPtxFunctions(text);
  const Harmless harmless(functions);
  std::vector<KernelAccess> kernels;
  for (const PtxFunction& f : functions) {
    if (f.is_kernel && !f.body.empty()) kernels.push_back(Analysis(f, harmless).Run());
  }
  return kernels;
}

}  // namespace atp::shim
