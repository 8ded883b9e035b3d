// SPDX-License-Identifier: Apache-2.0
// Executes one kernel launch, from PTX, and records which memory it touched.
//
// The driver layer (sim/driver) loads a module once and calls Execute for each launch, in the order
// in which the program submitted them. Execution is functional only: it has no notion of time. What
// it returns (instruction counts, bytes, touches in block order) is what the timing model
// (sim/machine) reads. Results and touches do not depend on the number of cores: see docs/sim.md,
// "Determinism".
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace atp::sim {

// A piece of device-visible memory. Kernels use `begin..end`; the bytes lie `host_delta` further in
// this process (device memory has a second mapping, so that the program's own mapping can be
// protected).
struct Region {
  uint64_t begin = 0;
  uint64_t end = 0;
  int64_t host_delta = 0;
  bool writable = true;
  uint64_t* initialised = nullptr;  // a bit for each 4 bytes from `begin`; null = not watched
};

struct Texture;  // texture.h

// Finds the region that holds an address. Called from worker threads while the driver lock is held
// by the launching thread, so the answer cannot change during a launch.
class MemoryMap {
 public:
  virtual ~MemoryMap() = default;
  virtual bool Find(uint64_t address, Region* region) const = 0;
  // The texture or surface object behind a handle.
  virtual bool FindTexture(uint64_t, Texture*) const { return false; }
};

inline constexpr unsigned kPageBits =
    12;  // touches are recorded in 4 KiB pages (uvm.md 1.1: state per CPU page)

struct PageTouch {
  static constexpr uint8_t kRead = 1;
  static constexpr uint8_t kWrite = 2;
  static constexpr uint8_t kOverwritten =
      4;              // all bytes written and none read before: the old content is dead
  uint64_t page = 0;  // address >> kPageBits
  uint8_t flags = 0;
};

// Touches of the blocks that a device would run at the same time (a wave): block after block, each
// in its order of first touch; each page once a wave.
struct WaveTouches {
  std::vector<PageTouch> pages;
  // Where blocks end in `pages`, of those that were first at some page. Empty when nobody knows.
  std::vector<uint32_t> block_ends;
};

enum class ExecStatus {
  kOk,
  kIllegalAddress,     // CUDA_ERROR_ILLEGAL_ADDRESS
  kMisalignedAddress,  // CUDA_ERROR_MISALIGNED_ADDRESS
  kTrap,               // trap instruction: CUDA_ERROR_LAUNCH_FAILED
  kAssert,             // device-side assert: CUDA_ERROR_ASSERT
  kInstructionLimit,   // ran longer than the limit: CUDA_ERROR_LAUNCH_TIMEOUT
  kUnsupported,        // CUDA_ERROR_NOT_SUPPORTED
};

struct ExecResult {
  ExecStatus status = ExecStatus::kOk;
  std::string message;             // names kernel, opcode, line, address; empty when kOk
  uint64_t warp_instructions = 0;  // instructions issued, one a warp
  uint64_t lane_instructions = 0;  // instructions executed, one an active lane
  uint64_t sector_bytes = 0;  // 32-byte sectors requested from global memory, times 32 (L2 traffic)
  std::vector<WaveTouches> waves;
  uint64_t uninitialised_reads = 0;  // accesses to memory that nobody has written (check_reads)
  std::string first_uninitialised;   // the first of them in block order: kernel, address, block
  bool recalled = false;             // touches and counts are those of an earlier, equal launch
  bool modelled = false;             // and nothing was executed (LaunchConfig::model_repeats)
};

// One entry of a kernel's parameter list, as cuFuncGetParamInfo reports it (driver.md section 6).
struct ParamInfo {
  uint32_t offset = 0;
  uint32_t size = 0;
  bool is_pointer = false;  // .u64 parameter; a hint, structs may hold pointers too
};

struct KernelInfo {
  std::string name;
  std::vector<ParamInfo> params;
  uint32_t param_bytes = 0;
  uint32_t static_shared_bytes = 0;
  uint32_t local_bytes = 0;
  uint32_t const_bytes = 0;
  uint32_t registers = 0;                  // an estimate: PTX has virtual registers only
  uint32_t max_threads_per_block = 1024;   // .maxntid
  uint32_t required_block[3] = {0, 0, 0};  // .reqntid, 0 = none
};

struct LaunchConfig {
  uint32_t grid[3] = {1, 1, 1};
  uint32_t block[3] = {1, 1, 1};
  uint32_t dynamic_shared_bytes = 0;
  bool cooperative = false;
  uint32_t blocks_per_wave = 0;        // how many blocks the modelled device holds at once
  uint64_t clock_ns = 0;               // what %globaltimer starts from
  uint64_t max_warp_instructions = 0;  // 0 = no limit
  // A launch that is bound to touch what an earlier one touched is not executed: its results are
  // NOT computed.
  bool model_repeats = false;
  // Counts reads of memory that has never been written, where Region::initialised says which.
  bool check_reads = false;
};

// A module-level variable (.global or .const) that has an address in device memory.
struct GlobalInfo {
  std::string name;
  uint64_t bytes = 0;
  uint32_t alignment = 1;
  bool is_const = false;
  bool is_managed = false;
  std::vector<uint8_t> initial;  // empty = zeros
};

class Kernel;  // decoded code of one entry; owned by its Module

// A PTX module. Thread rules: Load and BindGlobal from one thread; Execute calls are serialised by
// the caller.
class Module {
 public:
  virtual ~Module() = default;
  // Parses PTX text (function bodies on first use). Returns null and sets `error` ("line N: ...")
  // when the text cannot be run: an opcode that is not known is refused here, with opcode, kernel
  // and line named.
  static std::unique_ptr<Module> Load(std::string_view ptx, std::string* error);

  virtual std::span<const KernelInfo> kernels() const = 0;
  virtual std::span<const GlobalInfo> globals() const = 0;
  // Tells where the driver has put a global. Must be called for every global before the first
  // Execute.
  virtual void BindGlobal(std::string_view name, uint64_t address) = 0;
  // GlobalInfo::initial with the addresses of other symbols filled in. Ask when every global of the
  // module has been bound. Empty = zeros.
  virtual std::vector<uint8_t> InitialImage(std::string_view name) const = 0;

  // Runs a launch. `params` is the packed parameter buffer (KernelInfo::param_bytes long). `log`
  // receives device printf output.
  virtual ExecResult Execute(std::string_view kernel, const LaunchConfig& config,
                             std::span<const uint8_t> params, const MemoryMap& memory,
                             std::string* log) = 0;
};

// Worker threads used by Execute (default: all cores; ATP_SIM_THREADS is read by the driver layer).
// Results do not depend on it.
void SetExecutionThreads(unsigned threads);

}  // namespace atp::sim
