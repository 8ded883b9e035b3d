// SPDX-License-Identifier: Apache-2.0
// The closed loop inside the program: record -> learn -> plan -> act -> check. The hooks (on_*.cc)
// translate CUDA calls into these events; nothing here is exported. All entry points may be called
// from any thread, with the re-entry guard held, and never fail: trouble is counted, logged once
// and switches the loop off, and the program goes on without hints.
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace atp::shim {

inline constexpr uint64_t kGranule = 2u << 20;  // the driver's unit of eviction

// One managed allocation of the program. Owned by the tracker; lives until every stream has passed
// its free.
struct Allocation {
  uint64_t id = 0;  // never reused
  uint64_t address = 0;
  uint64_t bytes = 0;         // as the program asked
  uint64_t mapped_bytes = 0;  // rounded up to 2 MiB: what the driver was asked for
  CUcontext context = nullptr;
  int device = 0;
  uint32_t slot = 0;  // small dense index, reused after a free
  // Of the loop, under its lock: between LoopOnAlloc and LoopOnFree; some range of it has been
  // advised ReadMostly; how often a write came after all.
  bool shown = false;
  bool read_mostly = false;  // set by SetReadMostly: read without the lock too
  uint8_t read_mostly_broken = 0;
  uint8_t served = 0;  // what demand.h says of it; read without the lock, as an atomic
};

inline void SetReadMostly(Allocation* allocation, bool is) {
  std::atomic_ref(allocation->read_mostly).store(is, std::memory_order_relaxed);
}
// Any thread, without the lock.
inline bool IsReadMostly(Allocation* allocation) {
  return std::atomic_ref(allocation->read_mostly).load(std::memory_order_relaxed);
}

struct Touch {
  Allocation* allocation = nullptr;
  uint64_t offset = 0;  // of the pointer in the allocation
  uint64_t bytes = 0;   // known extent, or 0 = unknown (from a kernel argument)
  bool reads = true, writes = true;
};

// A launch has many pointers into few allocations: what it does to one of them.
struct Use {
  Allocation* allocation = nullptr;
  bool writes = true;
};

// A kernel, copy or set has at most so many: as many pointers as 4 KiB of parameters hold (fused
// optimizers pass hundreds). A graph that is launched as a whole may have more.
inline constexpr size_t kMaxTouches = 512;

struct FunctionInfo;

struct LaunchShape {
  uint32_t grid[3] = {1, 1, 1}, block[3] = {1, 1, 1};
  uint32_t shared_bytes = 0;  // dynamic; or launched in another way than by cuLaunchKernel:
  static constexpr uint32_t kOtherWay = UINT32_MAX;
};

// What a kernel is launched with, as the program handed it to the driver.
struct LaunchArguments {
  const FunctionInfo* info = nullptr;  // null: no kernel, or the layout is not known
  LaunchShape shape;
  // One of the two forms: a pointer to each parameter, or the packed buffer.
  void* const* parameters = nullptr;
  const void* packed = nullptr;
  size_t packed_bytes = 0;
  // What the launch touches is what their words point to, in their order, and nothing else.
  bool tell_touches = false;
};

struct LaunchView {
  uint64_t signature = 0;      // function and identities relative to allocations
  uint64_t identity = 0;       // of the function or kind of copy alone
  const char* name = nullptr;  // kernel or "memcpy_h2d", ...; null: the driver does not tell
  CUstream stream =
      nullptr;  // as the program gave it; per_thread says which default stream null means
  bool per_thread = false;
  bool capturing = false;
  const Touch* touches = nullptr;
  size_t touch_count = 0;
  // The allocations among them, for who asks for no more: each at least once. None where there are
  // touches: nobody has counted them.
  const Use* uses = nullptr;
  size_t use_count = 0;
  LaunchArguments arguments;
};

// Calls body(allocation, writes) for each allocation that the launch touches, at least once.
template <typename Body>
void ForEachUse(const LaunchView& launch, Body body) {
  if (launch.use_count > 0) {
    const Use* const end = launch.uses + launch.use_count;
    for (const Use* use = launch.uses; use != end; ++use) body(use->allocation, use->writes);
  } else {
    const Touch* const end = launch.touches + launch.touch_count;
    for (const Touch* touch = launch.touches; touch != end; ++touch) {
      body(touch->allocation, touch->writes);
    }
  }
}

enum class Wait { kStream, kEvent, kContext };

// What the loop may hold against the budget (settings.h: ATP_BUDGET) is decided at start.
void LoopStart(
    int device,
    CUcontext context);  // once a device: with the context of its first managed allocation
void LoopOnAlloc(Allocation* allocation);                  // after the driver gave the memory
void LoopOnReuse(Allocation* allocation, uint64_t bytes);  // given out again, as so many bytes
void LoopOnFree(Allocation* allocation);                   // before the driver takes it back
// Before the launch is submitted; returns once what it needs has been issued. An error: what it
// needs has been dropped, and the driver refuses to make it again; the launch must not be
// submitted.
CUresult LoopBeforeLaunch(const LaunchView& launch);
// Before any other call that is hooked (debts.h: while Owing()): all that has been dropped is made
// again. As above; `launch`, if not null: what comes, on which stream.
CUresult LoopPay(const LaunchView* launch);
void LoopAfterLaunch(const LaunchView& launch);  // after it was submitted
void LoopBeforeWait(Wait kind, CUstream stream, bool per_thread,
                    CUevent event);  // the program is about to block
// Waits until the device has passed all that the program has submitted, and not for what movers
// have. False: nothing moves there, or the driver refused; the caller waits for the whole context.
bool LoopWaitForProgram(int device);
void LoopOnStreamDestroy(CUstream stream);  // before the driver destroys it
void LoopStop();  // at exit: no hint is issued any more; prints the summary for ATP_LOG=info

}  // namespace atp::shim
