// SPDX-License-Identifier: Apache-2.0
// One kernel: finds all functions it can reach, lays out shared memory, decodes.
#include "sim/exec/decoder.h"

namespace atp::sim::exec {

using ptx::Base;
using ptx::Operand;
using ptx::Space;

Program* KernelBuilder::ProgramOf(uint32_t function) {
  Program*& program = code_->by_function[function];
  if (program == nullptr) {
    code_->programs.push_back(std::make_unique<Program>());
    program = code_->programs.back().get();
    program->function = function;
    program->index = static_cast<uint32_t>(code_->programs.size() - 1);
  }
  return program;
}

uint32_t KernelBuilder::GlobalIndex(const ptx::Variable* variable) const {
  for (uint32_t k = 0; k < module_.variables.size(); ++k) {
    if (module_.variables[k].get() == variable) return k;
  }
  return UINT32_MAX;
}

// Offsets are given out in order of use; arrays without a size all start where the sized ones end,
// which is known last: the kernel's body is scanned first for them (Build).
uint32_t KernelBuilder::SharedOffset(const ptx::Variable* variable) {
  auto [found, is_new] = shared_.emplace(variable, 0);
  if (!is_new) return found->second;
  uint64_t at = code_->static_shared_bytes;
  at = (at + variable->alignment - 1) / variable->alignment * variable->alignment;
  found->second = static_cast<uint32_t>(at);
  code_->static_shared_bytes =
      static_cast<uint32_t>(std::min<uint64_t>(at + variable->bytes, UINT32_MAX / 2));
  return found->second;
}

bool KernelBuilder::Build(uint32_t function, std::string* error) {
  error->clear();
  code_->name = std::string(module_.functions[function]->name);
  code_->by_function.assign(module_.functions.size(), nullptr);
  // All functions that can be reached are parsed before any is decoded, because the place of
  // dynamic shared memory depends on all static shared memory.
  std::vector<uint32_t> reached{function};
  std::vector<bool> seen(module_.functions.size(), false);
  seen[function] = true;
  std::vector<const ptx::Variable*> dynamic;
  for (size_t k = 0; k < reached.size(); ++k) {
    const ptx::Function& current = *module_.functions[reached[k]];
    bodies_.push_back(std::make_unique<ptx::Body>());
    ptx::Body& body = *bodies_.back();
    if (!ParseBody(module_, current, &body, error)) return false;
    bool indirect = false;
    for (const ptx::Instruction& instruction : body.instructions) {
      const ptx::Op& op = body.ops[instruction.op];
      for (uint32_t a = 0; a < instruction.count; ++a) {
        const Operand& operand = body.operands[instruction.first + a];
        if (op.base == Base::kCall && operand.kind == Operand::Kind::kRegister) indirect = true;
      }
    }
    for (const Operand& operand : body.operands) {
      if (operand.kind == Operand::Kind::kFunction && !seen[operand.index] &&
          module_.functions[operand.index]->has_body) {
        seen[operand.index] = true;
        reached.push_back(operand.index);
      }
      if (operand.kind == Operand::Kind::kVariable && operand.variable->space == Space::kShared) {
        if (IsExternShared(operand.variable)) {
          dynamic.push_back(operand.variable);
        } else {
          SharedOffset(operand.variable);
        }
      }
    }
    for (uint32_t f = 0; indirect && f < module_.functions.size(); ++f) {
      if (seen[f] || module_.functions[f]->is_entry || !module_.functions[f]->has_body) continue;
      seen[f] = true;
      reached.push_back(f);
    }
  }
  uint32_t end = (code_->static_shared_bytes + 15) / 16 * 16;
  for (const ptx::Variable* variable : dynamic) {
    uint32_t alignment = std::max(16u, variable->alignment);
    end = (end + alignment - 1) / alignment * alignment;
  }
  for (const ptx::Variable* variable : dynamic) shared_[variable] = end;
  if (!dynamic.empty()) code_->static_shared_bytes = end;
  for (uint32_t index : reached) ProgramOf(index);
  for (size_t k = 0; k < reached.size(); ++k) {
    Decoder decoder(this, *module_.functions[reached[k]], *bodies_[k],
                    code_->by_function[reached[k]], error);
    if (!decoder.Run()) return false;
  }
  touches_ = SliceTouches(module_, *module_.functions[function], *bodies_[0]);
  return true;
}

}  // namespace atp::sim::exec
