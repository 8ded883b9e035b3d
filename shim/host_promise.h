// SPDX-License-Identifier: Apache-2.0
// What this process promises of host memory (docs/memory.md). Managed memory that fits the card
// promises nothing; beyond that all of it must fit the host's share, because pages that have been
// on the host stay there until they are freed, and an eviction that finds no host memory kills the
// context. The share is one for all processes of the machine (host_ledger.h).
//
// An allocation compares two numbers; the ledger is asked for a chunk when what it knows of is
// used up. Any thread, re-entry guard held; nothing is locked across a driver call.
#pragma once

#include <cstdint>

#include "shim/device.h"

namespace atp::shim {

// `bytes` beside `already` managed ones are about to be in use on the device, more than are
// promised. False: refused; why is kept for SayRefused.
bool RaisePromise(Device* device, uint64_t already, uint64_t bytes);
// The same when plain memory is about to take room that managed memory had; what is managed there
// then needs a promise that it did not need before.
bool PromiseBeside(Device* device, uint64_t native);
// Fewer are: the others may have what is promised beyond them.
void LowerPromise(Device* device, uint64_t managed);
// The managed bytes that this process may have where they do not fit the card, as of the last time
// that the ledger was asked.
uint64_t MostPromised();

inline bool Promised(const Device& device, uint64_t managed) {
  return managed <= device.promised.load(std::memory_order_relaxed);
}

// The driver has refused plain memory. True: the card would hold it if others did not, and ATP_WAIT
// is set, so that WithPatience asks again.
bool RefusedByCard(const Device& device, uint64_t bytes);

// The calling thread's last refusal, in the log: size, limit, who holds it, what to do.
void SayRefused();

// Between attempts at what was refused (ATP_WAIT): others may give memory back.
class Patience {
 public:
  Patience();
  // Waits a moment. False: the refusal holds, because nobody else holds any memory, or for long
  // enough.
  bool More();

 private:
  bool waited_ = false;
  uint64_t until_ms_ = 0;
};

// Repeats an attempt to which host memory was refused, or plain memory of the card, as long as
// ATP_WAIT allows, and says in the log that it failed in the end. No lock may be held.
bool WasRefused();  // the calling thread, since ForgetRefusal
void ForgetRefusal();
template <typename Attempt>
CUresult WithPatience(Attempt attempt) {
  ForgetRefusal();
  CUresult result = attempt();
  if (result != CUDA_ERROR_OUT_OF_MEMORY || !WasRefused()) [[likely]]
    return result;
  Patience patience;
  while (result == CUDA_ERROR_OUT_OF_MEMORY && WasRefused() && patience.More()) {
    ForgetRefusal();
    result = attempt();
  }
  if (result == CUDA_ERROR_OUT_OF_MEMORY && WasRefused()) SayRefused();
  return result;
}

void ResetPromisesAfterFork();

}  // namespace atp::shim
