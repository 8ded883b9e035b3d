// SPDX-License-Identifier: Apache-2.0
// Calls, returns and exits: how lanes move between frames.
#include <bit>
#include <cstring>

#include "sim/exec/worker.h"

namespace atp::sim::exec {
namespace {

constexpr uint32_t kMaxDepth = 2048;

// One value of one lane, in whichever way each side keeps it.
uint8_t* PlaceOf(uint8_t* regs, uint32_t stride, uint32_t kind, uint32_t offset, int lane) {
  switch (kind) {
    case Formal::kStack:
      return regs + static_cast<size_t>(lane) * stride + offset;
    case Formal::kWide:
      return regs + offset + lane * 8;
    default:
      return regs + offset + lane * 4;
  }
}

void CopyLanes(uint32_t mask, const Frame& from, const uint32_t* source, const Frame& to,
               const uint32_t* destination) {
  uint32_t bytes = std::min(source[2], destination[2]);
  for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    int lane = std::countr_zero(rest);
    std::memcpy(PlaceOf(to.regs, to.program->param_stride, destination[0], destination[1], lane),
                PlaceOf(from.regs, from.program->param_stride, source[0], source[1], lane), bytes);
  }
}

void DropLanes(Warp& warp, Frame* frame, uint32_t mask) {
  frame->lanes &= ~mask;
  if (frame->lanes == 0 && frame->caller != nullptr) warp.worker->FreeFrame(warp, frame);
}

}  // namespace

const Insn* CallFunction(Warp& warp, const Insn* insn, const Program* callee, uint32_t mask) {
  Frame* caller = warp.frame;
  if (caller->depth + 1 > kMaxDepth) {
    return Fail(warp, insn, ExecStatus::kIllegalAddress, "stack overflow: calls nested too deeply");
  }
  uint32_t local_base = caller->local_base + caller->program->local_bytes;
  if (!warp.worker->GrowLocal(warp, local_base + callee->local_bytes)) {
    return Fail(warp, insn, ExecStatus::kIllegalAddress, "stack overflow: too much local memory");
  }
  Frame* frame = warp.worker->NewFrame(warp, callee);
  frame->caller = caller;
  frame->call_site = insn;
  frame->lanes = mask;
  frame->depth = caller->depth + 1;
  frame->local_base = local_base;
  for (const Fill& fill : callee->fills) {
    if (fill.kind != Fill::Kind::kLocalBase) continue;
    uint64_t* lanes = reinterpret_cast<uint64_t*>(frame->regs + fill.slot);
    for (int l = 0; l < kLanes; ++l) lanes[l] = local_base;
  }
  const uint32_t* table = caller->program->table + insn->aux;
  uint32_t count = std::min<uint32_t>(table[0], static_cast<uint32_t>(callee->params.size()));
  for (uint32_t k = 0; k < count; ++k) {
    const Formal& formal = callee->params[k];
    uint32_t destination[3] = {formal.kind, formal.offset, formal.bytes};
    CopyLanes(mask, *caller, table + 1 + 3 * k, *frame, destination);
  }
  AddGroup(warp, frame, callee->entry, mask);
  return kStop;
}

const Insn* CallIndirect(Warp& warp, const Insn* insn) {
  const uint64_t* targets = reinterpret_cast<const uint64_t*>(warp.regs + insn->r[1]);
  const KernelCode& code = *warp.block->launch->code;
  for (uint32_t rest = warp.mask; rest != 0;) {
    uint64_t target = targets[std::countr_zero(rest)];
    uint32_t same = 0;
    for (uint32_t k = rest; k != 0; k &= k - 1) {
      int lane = std::countr_zero(k);
      if (targets[lane] == target) same |= 1u << lane;
    }
    uint64_t function = (target & kOffsetMask) / 16;
    if (target >> kTagShift != kTagCode || function >= code.by_function.size() ||
        code.by_function[function] == nullptr) {
      return FailAddress(warp, insn, ExecStatus::kIllegalAddress, "code", target);
    }
    CallFunction(warp, insn, code.by_function[function], same);
    if (warp.block->failed) return kStop;
    rest &= ~same;
  }
  return kStop;
}

const Insn* ReturnLanes(Warp& warp, const Insn*) {
  Frame *frame = warp.frame, *caller = frame->caller;
  const uint32_t* table = caller->program->table + frame->call_site->aux;
  table += 1 + 3 * table[0];
  const Program& callee = *frame->program;
  uint32_t count = std::min<uint32_t>(table[0], static_cast<uint32_t>(callee.returns.size()));
  for (uint32_t k = 0; k < count; ++k) {
    const Formal& formal = callee.returns[k];
    uint32_t source[3] = {formal.kind, formal.offset, formal.bytes};
    CopyLanes(warp.mask, *frame, source, *caller, table + 1 + 3 * k);
  }
  AddGroup(warp, caller, frame->call_site + 1, warp.mask);
  DropLanes(warp, frame, warp.mask);
  return kStop;
}

const Insn* ExitLanes(Warp& warp, const Insn*) {
  uint32_t mask = warp.mask;
  warp.live &= ~mask;
  for (Frame* frame = warp.frame; frame != nullptr;) {
    Frame* caller = frame->caller;
    DropLanes(warp, frame, mask);
    frame = caller;
  }
  Block& block = *warp.block;
  block.exited += static_cast<uint32_t>(std::popcount(mask));
  ReleaseBarriers(block);
  return kStop;
}

}  // namespace atp::sim::exec
