// SPDX-License-Identifier: Apache-2.0
// What one launch is, and what one thread needs to run blocks of it.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ptx/parser.h"
#include "sim/exec/exec.h"
#include "sim/exec/warp.h"

namespace atp::sim::exec {

// Memory of the machine itself that kernels can reach: the barrier of a cooperative grid and the
// heap of device-side malloc.
class InternalMemory {
 public:
  static constexpr uint64_t kGridBytes = 4096;
  static constexpr uint64_t kHeapBytes = 8 << 20;  // cudaLimitMallocHeapSize's default
  uint8_t* data();
  static constexpr uint64_t bytes() { return kGridBytes + kHeapBytes; }
  void ResetGrid();
  uint64_t Allocate(uint64_t size);  // address with kTagInternal, or 0
  bool Release(uint64_t address);    // false for a pointer that Allocate has not given out

 private:
  struct Piece {
    uint64_t offset, bytes;
    bool used;
  };
  std::unique_ptr<uint8_t[]> data_;
  std::vector<Piece> pieces_;
};

// A value that is the same in all frames of a program, ready to be spread over the lanes.
struct ReadyFill {
  uint32_t slot = 0;
  bool wide = false, is_predicate = false;
  uint64_t value = 0;
};

struct Launch {
  const KernelCode* code = nullptr;
  LaunchConfig config;
  std::vector<uint8_t> params;
  const MemoryMap* memory = nullptr;
  const ptx::ParsedModule* module = nullptr;
  InternalMemory* internal = nullptr;
  uint64_t blocks = 0, blocks_per_wave = 0;
  uint32_t threads = 0, warps = 0, shared_bytes = 0;
  std::vector<std::vector<ReadyFill>> ready;  // by program
  bool record_touches = true;                 // false when they are known already
};

struct Failure {
  ExecStatus status = ExecStatus::kOk;
  std::string message;
  uint64_t block = 0;
};

// A block with the memory behind it; kept and used again.
struct BlockContext {
  Block block;
  std::vector<Warp> warps;
  std::vector<Frame> entry_frames;
  std::vector<Frame*> free_frames;  // by program
  std::vector<std::unique_ptr<Frame>> frames;
  std::vector<std::unique_ptr<uint8_t[]>> memory;
  std::unique_ptr<uint8_t[]> shared;
  std::vector<std::unique_ptr<uint8_t[]>> local;
};

enum class BlockState { kDone, kRunning, kFailed };

class Worker {
 public:
  explicit Worker(Launch* launch);

  BlockContext* Start(uint64_t index, TouchTable* touches);
  // Runs at most about `budget` warp instructions.
  BlockState Run(BlockContext* context, uint64_t budget);
  void Finish(BlockContext* context);

  Launch& launch() { return *launch_; }
  Frame* NewFrame(Warp& warp, const Program* program);
  void FreeFrame(Warp& warp, Frame* frame);
  bool GrowLocal(Warp& warp, uint32_t bytes);
  void ForgetPages();  // the touch table changes
  void NoteUninitialised(const Warp& warp, uint64_t address);
  void NoteRegion(const Region& region) { regions.insert_or_assign(region.begin, region); }

  Failure failure;
  std::string log;
  std::map<uint64_t, Region> regions;  // whatever has been accessed, by first address
  uint64_t warp_instructions = 0, lane_instructions = 0, sectors = 0;
  uint64_t uninitialised_reads = 0;
  std::string first_uninitialised;
  uint64_t limit = UINT64_MAX;  // of warp_instructions

 private:
  void Prepare(BlockContext* context);
  void FillUniform(const Program& program, uint8_t* regs);
  void FillWarp(const Warp& warp, const Program& program, uint8_t* regs, bool all);
  uint8_t* NewFrameMemory(BlockContext* context, const Program& program);
  enum class WarpState { kDone, kBlocked, kRunning, kFailed };
  WarpState RunWarp(Warp& warp, uint64_t budget);

  Launch* launch_;
  std::vector<AccessCache> caches_;
  std::vector<std::unique_ptr<BlockContext>> contexts_;
  std::vector<BlockContext*> idle_;
};

// --- groups.cc ---
// Takes the next group to run out of the warp's list; `limit` is where another group waits to be
// joined.
bool SelectGroup(Warp& warp, const Insn** pc, const Insn** limit);
void ReleaseBarriers(Block& block);  // after threads have exited

}  // namespace atp::sim::exec
