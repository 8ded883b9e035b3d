// SPDX-License-Identifier: Apache-2.0
// Groups of lanes: which one runs next, how they part and join, and barriers.
#include <bit>

#include "sim/exec/worker.h"

namespace atp::sim::exec {
namespace {

uint32_t LaneValue(const Warp& warp, uint32_t slot, uint32_t mask) {
  return reinterpret_cast<const uint32_t*>(warp.regs + slot)[std::countr_zero(mask)];
}

// Deeper frames first, so that a call is over before its caller goes on; then the smallest place in
// the code.
bool RunsBefore(const Group& a, const Group& b) {
  if (a.frame->depth != b.frame->depth) return a.frame->depth > b.frame->depth;
  if (a.frame->program != b.frame->program)
    return a.frame->program->index < b.frame->program->index;
  if (a.pc != b.pc) return a.pc < b.pc;
  return std::countr_zero(a.mask) < std::countr_zero(b.mask);
}

Group* Choose(Warp& warp, GroupState state) {
  Group* best = nullptr;
  for (int k = 0; k < warp.group_count; ++k) {
    Group& group = warp.groups[k];
    if (group.state != state) continue;
    bool better =
        best == nullptr || (warp.fair ? group.last_run < best->last_run : RunsBefore(group, *best));
    if (better) best = &group;
  }
  return best;
}

void Release(Block& block, int id) {
  Barrier& barrier = block.barriers[id];
  uint32_t popc = barrier.count_true, all = barrier.count_all;
  barrier = Barrier{};
  for (uint32_t k = 0; k < block.warp_count; ++k) {
    Warp& warp = block.warps[k];
    for (int g = 0; g < warp.group_count; ++g) {
      Group& group = warp.groups[g];
      if (group.state != GroupState::kAtBarrier || group.barrier != id) continue;
      group.state = GroupState::kReady;
      const Insn* insn = group.waiting;
      uint32_t* destination = reinterpret_cast<uint32_t*>(group.frame->regs + insn->r[0]);
      if (insn->aux == 2) {
        for (int l = 0; l < kLanes; ++l) {
          if (group.mask >> l & 1) destination[l] = popc;
        }
      } else if (insn->aux >= 3) {
        bool answer = insn->aux == 3 ? popc == all : popc != 0;
        *destination = (*destination & ~group.mask) | (answer ? group.mask : 0);
      }
    }
  }
}

void ReleaseIfComplete(Block& block, int id) {
  Barrier& barrier = block.barriers[id];
  uint32_t expected = barrier.expected != 0 ? barrier.expected : block.threads - block.exited;
  if (barrier.arrived != 0 && barrier.arrived >= expected) Release(block, id);
}

}  // namespace

void AddGroup(Warp& warp, Frame* frame, const Insn* pc, uint32_t mask) {
  if (mask == 0) return;
  for (int k = 0; k < warp.group_count; ++k) {
    Group& group = warp.groups[k];
    if (group.state == GroupState::kReady && group.frame == frame && group.pc == pc) {
      group.mask |= mask;
      return;
    }
  }
  Group& group = warp.groups[warp.group_count++];  // masks are disjoint: never more than 32
  group = Group{};
  group.frame = frame;
  group.pc = pc;
  group.mask = mask;
  group.last_run = warp.turn;
}

bool SelectGroup(Warp& warp, const Insn** pc, const Insn** limit) {
  Group* best = Choose(warp, GroupState::kReady);
  if (best == nullptr) {
    // Who gave way goes on after the other warps of the block have had their turn.
    bool yielded = false;
    for (int k = 0; k < warp.group_count; ++k) {
      if (warp.groups[k].state != GroupState::kYielded) continue;
      warp.groups[k].state = GroupState::kReady;
      yielded = true;
    }
    if (yielded) return false;
  }
  if (best == nullptr) {
    best =
        Choose(warp, GroupState::kAtSync);  // the lanes it waits for are elsewhere and do not come
    if (best == nullptr) return false;
    warp.sync_granted = true;
  }
  warp.fair = false;
  Group chosen = *best;
  int kept = 0;
  const Insn* next = nullptr;
  uint64_t turn = ++warp.turn;
  for (int k = 0; k < warp.group_count; ++k) {
    const Group& group = warp.groups[k];
    bool same_place =
        group.frame == chosen.frame && group.pc == chosen.pc && group.state == chosen.state;
    if (same_place) {
      chosen.mask |= group.mask;
      continue;
    }
    if (group.frame == chosen.frame && group.state == GroupState::kReady && group.pc > chosen.pc &&
        (next == nullptr || group.pc < next)) {
      next = group.pc;
    }
    warp.groups[kept++] = group;
  }
  warp.group_count = kept;
  warp.mask = chosen.mask;
  warp.frame = chosen.frame;
  warp.regs = chosen.frame->regs;
  warp.turn = turn;
  *pc = chosen.pc;
  *limit = next != nullptr ? next : kStop;
  return true;
}

const Insn* ParkForSync(Warp& warp, const Insn* insn) {
  Group& group = warp.groups[warp.group_count++];
  group = Group{};
  group.frame = warp.frame;
  group.pc = insn;
  group.mask = warp.mask;
  group.state = GroupState::kAtSync;
  group.last_run = warp.turn;
  return kStop;
}

const Insn* Yield(Warp& warp, const Insn* insn, uint64_t sleep_ns) {
  Block& block = *warp.block;
  block.slept_ns += sleep_ns;
  Group& group = warp.groups[warp.group_count++];
  group = Group{};
  group.frame = warp.frame;
  group.pc = insn + 1;
  group.mask = warp.mask;
  group.state = GroupState::kYielded;
  group.last_run = warp.turn;
  return kStop;
}

const Insn* ArriveBarrier(Warp& warp, const Insn* insn) {
  Block& block = *warp.block;
  uint32_t id = LaneValue(warp, insn->r[1], warp.mask),
           count = LaneValue(warp, insn->r[2], warp.mask);
  if (id >= kBarriers) return Fail(warp, insn, ExecStatus::kTrap, "barrier number above 15");
  Barrier& barrier = block.barriers[id];
  uint32_t lanes = static_cast<uint32_t>(std::popcount(warp.mask));
  barrier.arrived += lanes;
  if (count != 0) barrier.expected = count;
  if (insn->aux >= 2) {
    uint32_t bits = *reinterpret_cast<const uint32_t*>(warp.regs + insn->r[3]);
    barrier.count_true += static_cast<uint32_t>(std::popcount(bits & warp.mask));
    barrier.count_all += lanes;
  }
  Group& group = warp.groups[warp.group_count++];
  group = Group{};
  group.frame = warp.frame;
  group.pc = insn + 1;
  group.mask = warp.mask;
  group.last_run = warp.turn;
  if (insn->aux != 1) {
    group.state = GroupState::kAtBarrier;
    group.barrier = static_cast<uint8_t>(id);
    group.waiting = insn;
  }
  ReleaseIfComplete(block, static_cast<int>(id));
  return kStop;
}

void ReleaseBarriers(Block& block) {
  for (int id = 0; id < kBarriers; ++id) {
    if (block.barriers[id].arrived != 0 && block.barriers[id].expected == 0)
      ReleaseIfComplete(block, id);
  }
}

}  // namespace atp::sim::exec
