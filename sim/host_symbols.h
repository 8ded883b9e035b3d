// SPDX-License-Identifier: Apache-2.0
// The symbols that the simulated driver exports and a real driver does not. A caller finds them by
// dlsym on libcuda.so.1 and copies these prototypes; their absence means a real driver. The first
// three let one host thread play several host threads in virtual time, so that a program together
// with helper threads of a preload library is deterministic.
#pragma once

#include <cuda.h>
#include <stdint.h>

extern "C" {
// Driver calls of the calling thread are from now on made by lane `lane` and cost its CPU time.
// Lane 0 is the thread's own. Another number names a lane of this thread that is created at first
// use, with the clock of the lane that was current. Returns the lane that was current before.
uint32_t atpSimLane(uint32_t lane);

// Virtual now of the calling thread's current lane, in nanoseconds since cuInit.
uint64_t atpSimNow(void);

// Moves the current lane to the first completion among `events`, or to `deadline_ns` if that is
// earlier (UINT64_MAX = none). Returns the index of the event that completed, -1 for the deadline.
// Never-recorded events count as complete. Nothing later has been simulated on return.
int atpSimWaitAny(const CUevent* events, uint32_t count, uint64_t deadline_ns);

// What the management library asks about card `index` of the machine: bytes that nobody has
// claimed, contexts, virtual now, and how long kernels have run on it. Answers 0 before cuInit and
// for a card that is not there.
typedef struct {
  uint64_t free_bytes, now_ns, busy_ns;
  uint32_t contexts;
} atpSimCardUse;
int atpSimCard(uint32_t index, atpSimCardUse* use);

// The processes that use card `index`, the calling one first and as 0, and the bytes that each
// holds of it, plain and managed. Writes at most `capacity` of them and returns how many there are;
// 0 before cuInit and for a card that is not there.
typedef struct {
  uint64_t bytes;
  int32_t process;
} atpSimProcess;
uint32_t atpSimProcesses(uint32_t index, atpSimProcess* processes, uint32_t capacity);

// Bytes of host memory that managed memory may still take (ATP_SIM_HOST_MEMORY), as MemAvailable of
// a real machine; UINT64_MAX without a limit, and before cuInit.
uint64_t atpSimHostFree(void);

// What the calling thread's last launch (cuLaunchKernel and its relatives, not a graph) has
// touched: pieces of 64 KiB, aligned, by address. Writes at most `capacity` of them and returns how
// many there are; -1 where that is not known: the thread has launched nothing since it last asked,
// the launch has not run yet, or this is the first question, from which on answers are kept.
typedef struct {
  uint64_t address;
  int reads, writes;  // not 0: some byte of the piece was
} atpSimTouch;
int64_t atpSimTouched(atpSimTouch* touches, uint64_t capacity);
}
