// SPDX-License-Identifier: Apache-2.0
#include "sim/exec/control_flow.h"

#include <algorithm>

#include "sim/exec/decoder.h"

namespace atp::sim::exec {
namespace {

using ptx::Base;
using ptx::Body;
using ptx::Instruction;
using ptx::Operand;

constexpr uint32_t kUnknown = UINT32_MAX;

}  // namespace

bool IsAssertion(const ptx::ParsedModule& module, const Body& body,
                 const Instruction& instruction) {
  if (body.ops[instruction.op].base != Base::kCall) return false;
  for (uint32_t a = 0; a < instruction.count; ++a) {
    const Operand& operand = body.operands[instruction.first + a];
    if (operand.kind == Operand::Kind::kFunction &&
        BuiltinByName(module.functions[operand.index]->name) == Builtin::kAssertFail)
      return true;
  }
  return false;
}

ControlFlow::Leave ControlFlow::LeaveOf(const ptx::ParsedModule& module, const Body& body,
                                        const Instruction& instruction) {
  Leave leave;
  switch (body.ops[instruction.op].base) {
    case Base::kExit:
    case Base::kRet:
      leave.leaves = leave.to_exit = true;
      break;
    case Base::kTrap:
    case Base::kBrkpt:
      leave.leaves = true;
      break;
    case Base::kCall:
      leave.leaves = IsAssertion(module, body, instruction);
      break;
    case Base::kBra:
      leave.leaves = true;
      leave.targets.push_back(body.operands[instruction.first].index);
      break;
    case Base::kBrx:
      leave.leaves = true;
      leave.targets = body.prototypes[body.operands[instruction.first + 1].index].targets;
      break;
    default:
      break;
  }
  return leave;
}

ControlFlow::ControlFlow(const ptx::ParsedModule& module, const Body& body) {
  CutBlocks(module, body);
  Connect(module, body);
  FindPostDominators();
  FindDeciders();
}

void ControlFlow::CutBlocks(const ptx::ParsedModule& module, const Body& body) {
  const size_t count = body.instructions.size();
  std::vector<bool> starts(count + 1, false);
  if (count > 0) starts[0] = true;
  for (size_t k = 0; k < count; ++k) {
    const Leave leave = LeaveOf(module, body, body.instructions[k]);
    if (leave.leaves) starts[k + 1] = true;
    for (uint32_t target : leave.targets) starts[std::min<size_t>(target, count)] = true;
  }
  block_of_.assign(count + 1, 0);
  for (size_t k = 0; k < count; ++k) {
    if (starts[k]) blocks_.emplace_back();
    block_of_[k] = static_cast<uint32_t>(blocks_.size() - 1);
    blocks_.back().last = static_cast<uint32_t>(k);
  }
  block_of_[count] = static_cast<uint32_t>(blocks_.size());
  blocks_.emplace_back();
}

void ControlFlow::Connect(const ptx::ParsedModule& module, const Body& body) {
  for (uint32_t b = 0; b < Exit(); ++b) {
    const Instruction& last = body.instructions[blocks_[b].last];
    const Leave leave = LeaveOf(module, body, last);
    std::vector<uint32_t>& next = blocks_[b].next;
    for (uint32_t target : leave.targets)
      next.push_back(block_of_[std::min<size_t>(target, body.instructions.size())]);
    if (leave.to_exit) next.push_back(Exit());
    if (!leave.leaves || last.guard >= 0) next.push_back(b + 1);
    std::sort(next.begin(), next.end());
    next.erase(std::unique(next.begin(), next.end()), next.end());
    for (uint32_t to : next) blocks_[to].before.push_back(b);
  }
}

void ControlFlow::FindPostDominators() {
  // Order in which a walk backwards from the exit leaves the blocks.
  std::vector<uint32_t> number(blocks_.size(), kUnknown), order;
  std::vector<std::pair<uint32_t, size_t>> path{{Exit(), 0}};
  std::vector<bool> seen(blocks_.size(), false);
  seen[Exit()] = true;
  while (!path.empty()) {
    auto& [block, at] = path.back();
    if (at < blocks_[block].before.size()) {
      const uint32_t next = blocks_[block].before[at++];
      if (!seen[next]) {
        seen[next] = true;
        path.push_back({next, 0});
      }
      continue;
    }
    number[block] = static_cast<uint32_t>(order.size());
    order.push_back(block);
    path.pop_back();
  }
  post_dominator_.assign(blocks_.size(), kUnknown);
  post_dominator_[Exit()] = Exit();
  const auto meet = [&](uint32_t a, uint32_t b) {
    while (a != b) {
      while (number[a] < number[b]) a = post_dominator_[a];
      while (number[b] < number[a]) b = post_dominator_[b];
    }
    return a;
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t k = order.size(); k-- > 0;) {
      const uint32_t block = order[k];
      if (block == Exit()) continue;
      uint32_t found = kUnknown;
      for (uint32_t next : blocks_[block].next) {
        if (post_dominator_[next] == kUnknown) continue;
        found = found == kUnknown ? next : meet(found, next);
      }
      if (found != post_dominator_[block]) {
        post_dominator_[block] = found;
        changed = true;
      }
    }
  }
}

void ControlFlow::FindDeciders() {
  deciders_.resize(blocks_.size());
  for (uint32_t b = 0; b < Exit(); ++b) {
    if (blocks_[b].next.size() < 2) continue;
    for (uint32_t to : blocks_[b].next) {
      for (uint32_t at = to; at != post_dominator_[b] && at != kUnknown && at != Exit();
           at = post_dominator_[at]) {
        std::vector<uint32_t>& list = deciders_[at];
        if (list.empty() || list.back() != blocks_[b].last) list.push_back(blocks_[b].last);
      }
    }
  }
}

}  // namespace atp::sim::exec
