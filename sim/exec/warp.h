// SPDX-License-Identifier: Apache-2.0
// The state of running code: frames, groups of lanes, warps, blocks, and the worker that runs them.
//
// Plain structures, because the handlers that read them are compiled for several instruction sets:
// no inline function of a standard container may be instantiated there (the linker would keep one
// copy for all). Everything here belongs to the thread that runs the block.
#pragma once

#include <cstdint>
#include <string>

#include "sim/exec/exec.h"
#include "sim/exec/insn.h"
#include "sim/exec/program.h"
#include "sim/exec/touch_table.h"

namespace atp::sim::exec {

struct Block;
struct BlockContext;
struct Launch;
class Worker;

// One activation of a function by a group of lanes.
struct Frame {
  const Program* program = nullptr;
  Frame* caller = nullptr;
  const Insn* call_site = nullptr;  // in the caller; lanes go on after it
  uint8_t* regs = nullptr;
  uint32_t lanes = 0;  // lanes that have not returned
  uint32_t depth = 0;
  uint32_t local_base = 0;  // start of this function's locals in each lane's stack
  Frame* next_free = nullptr;
  uint32_t index = 0;  // of the program in its kernel
};

enum class GroupState : uint8_t { kReady, kAtBarrier, kAtSync, kYielded };

// Lanes at the same place. A warp runs one group at a time: the deepest frame first, then the
// smallest address.
struct Group {
  Frame* frame = nullptr;
  const Insn* pc = nullptr;
  uint32_t mask = 0;
  GroupState state = GroupState::kReady;
  uint8_t barrier = 0;
  const Insn* waiting = nullptr;  // the barrier instruction that waits for a result
  uint64_t last_run = 0;
};

struct Warp {
  uint8_t* regs = nullptr;  // of the current frame
  uint32_t mask = 0;        // lanes of the current group that take part
  uint32_t live = 0;        // lanes that have not exited
  Frame* frame = nullptr;
  Block* block = nullptr;
  Worker* worker = nullptr;
  AccessCache* caches = nullptr;
  uint8_t* local = nullptr;   // stacks of the lanes, one after the other
  uint32_t local_stride = 0;  // bytes per lane
  uint32_t index = 0;         // in the block
  bool sync_granted =
      false;  // the current group may pass a *.sync instruction without the missing lanes
  bool done = false;
  uint64_t sectors = 0;  // 32-byte sectors asked for
  uint32_t carry = 0;    // condition code of add.cc and the like, one bit a lane
  uint64_t turn = 0;     // counts selections, for fairness
  bool fair = false;     // the last slice ran out: let the group that waits longest run
  uint64_t unfair = 0;   // instructions since another group had its turn
  int group_count = 0;
  Group groups[kLanes];
};

struct Barrier {
  uint32_t expected = 0;  // threads; 0 = all of the block
  uint32_t arrived = 0;
  uint32_t parked = 0;  // threads that wait (arrived without waiting are not counted)
  uint32_t count_true = 0, count_all = 0;
};

inline constexpr int kBarriers = 16;

struct Block {
  uint64_t index = 0;  // linear
  uint32_t id[3] = {0, 0, 0};
  Launch* launch = nullptr;
  Worker* worker = nullptr;
  BlockContext* context = nullptr;
  Warp* warps = nullptr;
  uint32_t warp_count = 0;
  uint32_t threads = 0;
  uint32_t exited = 0;
  uint8_t* shared = nullptr;
  uint32_t shared_bytes = 0;
  uint32_t next_warp = 0;
  uint64_t issued = 0;  // instructions of finished slices
  uint64_t slept_ns = 0;
  Barrier barriers[kBarriers];
  TouchTable* touches = nullptr;
  bool failed = false;
};

// --- services that handlers call; compiled once (services.cc) ---

// Ends the launch: records the first failure of this block. Always returns kStop.
const Insn* Fail(Warp& warp, const Insn* insn, ExecStatus status, const char* what);
const Insn* FailAddress(Warp& warp, const Insn* insn, ExecStatus status, const char* space,
                        uint64_t address);

// Puts the region that holds [address, address + bytes) into `cache`; false when there is none or
// it may not be written.
bool ResolveRegion(Warp& warp, AccessCache* cache, uint64_t address, uint32_t bytes, bool write);
void TouchRead(Warp& warp, AccessCache* cache, uint64_t begin, uint64_t end);
void TouchWrite(Warp& warp, AccessCache* cache, uint64_t begin, uint64_t end);

// Host address of [address, address + bytes) in any space as one lane sees it; null when out of
// bounds. Records the touch.
uint8_t* LaneAddress(Warp& warp, const Insn* insn, int lane, uint64_t address, uint32_t bytes,
                     bool read, bool write);

void AddGroup(Warp& warp, Frame* frame, const Insn* pc, uint32_t mask);
const Insn* CallFunction(Warp& warp, const Insn* insn, const Program* callee, uint32_t mask);
const Insn* CallBuiltin(Warp& warp, const Insn* insn);
const Insn* CallIndirect(Warp& warp, const Insn* insn);
const Insn* ReturnLanes(Warp& warp, const Insn* insn);
const Insn* ExitLanes(Warp& warp, const Insn* insn);
const Insn* ArriveBarrier(Warp& warp, const Insn* insn);
// Puts the current group aside until the lanes of `members` have come too (or cannot come).
const Insn* ParkForSync(Warp& warp, const Insn* insn);
const Insn* Yield(Warp& warp, const Insn* insn, uint64_t sleep_ns);
uint64_t ClockOf(Warp& warp);      // virtual clock of the block, in cycles
uint64_t GlobalTimer(Warp& warp);  // virtual nanoseconds

}  // namespace atp::sim::exec
