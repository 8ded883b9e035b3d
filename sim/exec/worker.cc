// SPDX-License-Identifier: Apache-2.0
// One thread that runs blocks: sets up frames, runs warps in turn, counts.
#include "sim/exec/worker.h"

#include <algorithm>
#include <bit>
#include <cinttypes>
#include <cstdio>
#include <cstring>

namespace atp::sim::exec {

void Worker::NoteUninitialised(const Warp& warp, uint64_t address) {
  if (++uninitialised_reads > 1) return;
  const Block& block = *warp.block;
  char text[128];
  std::snprintf(text, sizeof text,
                ": reads 0x%" PRIx64 ", which nobody has written, block (%u,%u,%u)", address,
                block.id[0], block.id[1], block.id[2]);
  first_uninitialised = "kernel " + launch_->code->name + text;
}

namespace {

constexpr uint64_t kWarpSlice =
    20000;  // warp instructions before the next warp of the block has its turn
// Instructions of a diverged warp before a group out of order has its turn. Running ahead of the
// smallest address costs convergence, so it is done soon only where lanes may wait for each other.
constexpr uint64_t kSpinPatience = 1000, kPatience = 1000000;
constexpr uint32_t kMaxLocalBytes = 512 << 10;

template <class T>
void Spread(uint8_t* slot, T value) {
  T* lanes = reinterpret_cast<T*>(slot);
  for (int l = 0; l < kLanes; ++l) lanes[l] = value;
}

uint8_t* Aligned(std::unique_ptr<uint8_t[]>* owner, size_t bytes) {
  owner->reset(new uint8_t[bytes + 64]);
  uintptr_t at = reinterpret_cast<uintptr_t>(owner->get());
  return reinterpret_cast<uint8_t*>((at + 63) & ~uintptr_t{63});
}

uint32_t ThreadCoordinate(const LaunchConfig& config, uint32_t thread, int axis) {
  if (axis == 0) return thread % config.block[0];
  if (axis == 1) return thread / config.block[0] % config.block[1];
  return thread / config.block[0] / config.block[1];
}

uint64_t SpecialValue(const Warp& warp, Special special, uint32_t lane) {
  const Block& block = *warp.block;
  const LaunchConfig& config = block.launch->config;
  uint32_t bit = 1u << lane, thread = warp.index * kLanes + lane;
  uint64_t workspace = TagBase(kTagInternal);
  switch (special) {
    case Special::kTidX:
      return ThreadCoordinate(config, thread, 0);
    case Special::kTidY:
      return ThreadCoordinate(config, thread, 1);
    case Special::kTidZ:
      return ThreadCoordinate(config, thread, 2);
    case Special::kLaneId:
      return lane;
    case Special::kLaneMaskEq:
      return bit;
    case Special::kLaneMaskLt:
      return bit - 1;
    case Special::kLaneMaskLe:
      return bit | (bit - 1);
    case Special::kLaneMaskGt:
      return ~(bit | (bit - 1));
    case Special::kLaneMaskGe:
      return ~(bit - 1);
    case Special::kWarpId:
      return warp.index;
    case Special::kCtaIdX:
      return block.id[0];
    case Special::kCtaIdY:
      return block.id[1];
    case Special::kCtaIdZ:
      return block.id[2];
    case Special::kSmId:
      return 0;
    case Special::kNtidX:
      return config.block[0];
    case Special::kNtidY:
      return config.block[1];
    case Special::kNtidZ:
      return config.block[2];
    case Special::kNctaIdX:
      return config.grid[0];
    case Special::kNctaIdY:
      return config.grid[1];
    case Special::kNctaIdZ:
      return config.grid[2];
    case Special::kNwarpId:
      return 64;
    case Special::kNsmId:
      return 1;
    case Special::kGridId:
      return 1;
    case Special::kEnvReg1:
      return config.cooperative ? workspace >> 32 : 0;
    case Special::kEnvReg2:
      return config.cooperative ? workspace & 0xffffffffu : 0;
    case Special::kDynamicShared:
      return config.dynamic_shared_bytes;
    case Special::kTotalShared:
      return block.shared_bytes;
    case Special::kOne:
      return 1;
    default:
      return 0;
  }
}

bool DependsOnBlock(Special special) {
  return special == Special::kCtaIdX || special == Special::kCtaIdY || special == Special::kCtaIdZ;
}

}  // namespace

Worker::Worker(Launch* launch) : launch_(launch), caches_(launch->code->cache_count + 1) {}

void Worker::ForgetPages() {
  for (AccessCache& cache : caches_) cache.page = ~uint64_t{0};
}

void Worker::FillUniform(const Program& program, uint8_t* regs) {
  for (const ReadyFill& fill : launch_->ready[program.index]) {
    if (fill.is_predicate) {
      std::memcpy(regs + fill.slot, &fill.value, 4);
    } else if (fill.wide) {
      Spread<uint64_t>(regs + fill.slot, fill.value);
    } else {
      Spread<uint32_t>(regs + fill.slot, static_cast<uint32_t>(fill.value));
    }
  }
}

// Values that differ between lanes, warps or blocks; only those of blocks unless `all`.
void Worker::FillWarp(const Warp& warp, const Program& program, uint8_t* regs, bool all) {
  for (const Fill& fill : program.fills) {
    if (fill.kind == Fill::Kind::kLocalBase) {
      if (all) Spread<uint64_t>(regs + fill.slot, 0);
      continue;
    }
    if (fill.kind != Fill::Kind::kSpecial || (!all && !DependsOnBlock(fill.special))) continue;
    for (uint32_t l = 0; l < kLanes; ++l) {
      uint64_t value = SpecialValue(warp, fill.special, l);
      if (fill.wide) {
        reinterpret_cast<uint64_t*>(regs + fill.slot)[l] = value;
      } else {
        reinterpret_cast<uint32_t*>(regs + fill.slot)[l] = static_cast<uint32_t>(value);
      }
    }
  }
}

uint8_t* Worker::NewFrameMemory(BlockContext* context, const Program& program) {
  context->memory.emplace_back();
  uint8_t* regs = Aligned(&context->memory.back(), program.frame_bytes + 64);
  std::memset(regs, 0, program.frame_bytes);
  FillUniform(program, regs);
  return regs;
}

void Worker::Prepare(BlockContext* context) {
  const Program& entry = *launch_->code->programs[0];
  Block& block = context->block;
  context->warps.resize(launch_->warps);
  context->entry_frames.resize(launch_->warps);
  context->free_frames.resize(launch_->code->programs.size());
  context->local.resize(launch_->warps);
  block.launch = launch_;
  block.worker = this;
  block.context = context;
  block.warps = context->warps.data();
  block.warp_count = launch_->warps;
  block.threads = launch_->threads;
  block.shared_bytes = launch_->shared_bytes;
  block.shared = Aligned(&context->shared, launch_->shared_bytes + 64);
  for (uint32_t k = 0; k < launch_->warps; ++k) {
    Warp& warp = context->warps[k];
    Frame& frame = context->entry_frames[k];
    warp.index = k;
    warp.block = &block;
    warp.worker = this;
    warp.caches = caches_.data();
    frame.program = &entry;
    frame.regs = NewFrameMemory(context, entry);
    GrowLocal(warp, entry.local_bytes);
    FillWarp(warp, entry, frame.regs, true);
  }
}

BlockContext* Worker::Start(uint64_t index, TouchTable* touches) {
  if (idle_.empty()) {
    contexts_.push_back(std::make_unique<BlockContext>());
    Prepare(contexts_.back().get());
    idle_.push_back(contexts_.back().get());
  }
  BlockContext* context = idle_.back();
  idle_.pop_back();
  Block& block = context->block;
  const LaunchConfig& config = launch_->config;
  block.index = index;
  block.id[0] = static_cast<uint32_t>(index % config.grid[0]);
  block.id[1] = static_cast<uint32_t>(index / config.grid[0] % config.grid[1]);
  block.id[2] = static_cast<uint32_t>(index / config.grid[0] / config.grid[1]);
  block.touches = touches;
  block.exited = 0;
  block.next_warp = 0;
  block.issued = block.slept_ns = 0;
  block.failed = false;
  for (Barrier& barrier : block.barriers) barrier = Barrier{};
  std::memset(block.shared, 0, block.shared_bytes);
  const Program& entry = *launch_->code->programs[0];
  for (uint32_t k = 0; k < launch_->warps; ++k) {
    Warp& warp = context->warps[k];
    Frame& frame = context->entry_frames[k];
    uint32_t lanes = std::min<uint32_t>(kLanes, launch_->threads - k * kLanes);
    warp.live = lanes == kLanes ? kFullMask : (1u << lanes) - 1;
    warp.done = warp.sync_granted = warp.fair = false;
    warp.carry = 0;
    warp.turn = warp.unfair = 0;
    warp.group_count = 0;
    frame.lanes = warp.live;
    std::memset(frame.regs + entry.zero_begin, 0, entry.zero_end - entry.zero_begin);
    std::memset(warp.local, 0, static_cast<size_t>(warp.local_stride) * kLanes);
    FillWarp(warp, entry, frame.regs, false);
    AddGroup(warp, &frame, entry.entry, warp.live);
  }
  return context;
}

void Worker::Finish(BlockContext* context) {
  for (Warp& warp : context->warps) {
    sectors += warp.sectors;
    warp.sectors = 0;
  }
  idle_.push_back(context);
}

Frame* Worker::NewFrame(Warp& warp, const Program* program) {
  BlockContext* context = warp.block->context;
  Frame*& list = context->free_frames[program->index];
  Frame* frame = list;
  if (frame != nullptr) {
    list = frame->next_free;
  } else {
    context->frames.push_back(std::make_unique<Frame>());
    frame = context->frames.back().get();
    frame->program = program;
    frame->index = program->index;
    frame->regs = NewFrameMemory(context, *program);
  }
  std::memset(frame->regs, 0, static_cast<size_t>(program->param_stride) * kLanes);
  std::memset(frame->regs + program->zero_begin, 0, program->zero_end - program->zero_begin);
  FillWarp(warp, *program, frame->regs, true);
  return frame;
}

void Worker::FreeFrame(Warp& warp, Frame* frame) {
  Frame*& list = warp.block->context->free_frames[frame->program->index];
  frame->next_free = list;
  list = frame;
}

bool Worker::GrowLocal(Warp& warp, uint32_t bytes) {
  if (bytes > kMaxLocalBytes) return false;
  if (bytes <= warp.local_stride && warp.local != nullptr) return true;
  uint32_t stride = std::max<uint32_t>(16, std::bit_ceil(bytes));
  if (warp.local == nullptr) stride = (bytes + 15) / 16 * 16;
  BlockContext* context = warp.block->context;
  std::unique_ptr<uint8_t[]> old = std::move(context->local[warp.index]);
  uint8_t* memory = Aligned(&context->local[warp.index], static_cast<size_t>(stride) * kLanes);
  std::memset(memory, 0, static_cast<size_t>(stride) * kLanes);
  for (int l = 0; l < kLanes && warp.local_stride != 0; ++l) {
    std::memcpy(memory + static_cast<size_t>(l) * stride,
                warp.local + static_cast<size_t>(l) * warp.local_stride, warp.local_stride);
  }
  warp.local = memory;
  warp.local_stride = stride;
  return true;
}

Worker::WarpState Worker::RunWarp(Warp& warp, uint64_t budget) {
  Block& block = *warp.block;
  const uint64_t patience = launch_->code->may_spin ? kSpinPatience : kPatience;
  while (true) {
    const Insn *insn, *meeting;
    if (!SelectGroup(warp, &insn, &meeting))
      return warp.live == 0 ? WarpState::kDone : WarpState::kBlocked;
    bool diverged = warp.group_count != 0;
    int64_t slice = static_cast<int64_t>(diverged ? std::min(budget, patience) : budget);
    int64_t left = slice;
    uint32_t lanes = static_cast<uint32_t>(std::popcount(warp.mask));
    do {
      insn = insn->run(warp, insn);
    } while (--left > 0 &&
             reinterpret_cast<uintptr_t>(insn) < reinterpret_cast<uintptr_t>(meeting));
    uint64_t ran = static_cast<uint64_t>(slice - left);
    block.issued += ran;
    warp_instructions += ran;
    lane_instructions += ran * lanes;
    if (block.failed) return WarpState::kFailed;
    if (insn != kStop) AddGroup(warp, warp.frame, insn, warp.mask);
    warp.unfair = diverged ? warp.unfair + ran : 0;
    if (warp.unfair >= patience) {
      warp.fair = true;
      warp.unfair = 0;
    }
    if (warp_instructions > limit) return WarpState::kRunning;
    budget -= std::min(budget, ran);
    if (budget == 0) return WarpState::kRunning;
  }
}

BlockState Worker::Run(BlockContext* context, uint64_t budget) {
  Block& block = context->block;
  while (true) {
    bool progress = false, all_done = true;
    for (uint32_t k = 0; k < block.warp_count; ++k) {
      Warp& warp = block.warps[(block.next_warp + k) % block.warp_count];
      if (warp.done) continue;
      uint64_t before = warp_instructions;
      WarpState state = RunWarp(warp, std::min(budget, kWarpSlice));
      uint64_t ran = warp_instructions - before;
      progress |= ran != 0;
      if (state == WarpState::kFailed) return BlockState::kFailed;
      warp.done = state == WarpState::kDone;
      all_done &= warp.done;
      if (warp_instructions > limit && !warp.done) {
        warp.frame = warp.groups[0].frame;
        Fail(warp, warp.groups[0].pc, ExecStatus::kInstructionLimit, "instruction limit reached");
        return BlockState::kFailed;
      }
      budget -= std::min(budget, ran);
      if (budget == 0) {
        block.next_warp = (block.next_warp + k + 1) % block.warp_count;
        bool finished = true;
        for (uint32_t w = 0; w < block.warp_count; ++w) finished &= block.warps[w].done;
        return finished ? BlockState::kDone : BlockState::kRunning;
      }
    }
    if (all_done) return BlockState::kDone;
    if (!progress) {
      Warp* waiting = block.warps;
      while (waiting->done) ++waiting;
      waiting->frame = waiting->groups[0].frame;
      Fail(*waiting, waiting->groups[0].pc, ExecStatus::kInstructionLimit,
           "deadlock: every thread waits at a barrier");
      return BlockState::kFailed;
    }
  }
}

}  // namespace atp::sim::exec
