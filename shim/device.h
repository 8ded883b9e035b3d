// SPDX-License-Identifier: Apache-2.0
// Facts about the device behind the calling thread's context, and the accounts of what the program
// holds there. Found at the first allocation or launch in a context; later look-ups cost one driver
// call (cuCtxGetCurrent). Any thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "shim/cuda_abi.h"

namespace atp::shim {

struct Device {
  int ordinal = -1;
  char name[96] = "";
  uint64_t total = 0;          // bytes of device memory
  uint64_t free_at_start = 0;  // what the driver reported free when the shim first saw the device
  uint64_t budget =
      0;  // what the shim may keep resident there: ATP_BUDGET, else free at start less a reserve
  bool can_manage = false;  // managed memory with concurrent access, and not coherent with the host
  CUcontext context = nullptr;  // the first one seen; hints are issued in it

  // Bytes that the program holds: mapped by our placement; plain, as far as seen; and of these,
  // small allocations that placement left plain.
  std::atomic<uint64_t> managed{0}, native{0}, packed{0};
  // Of the managed bytes those that the program has freed and that wait for reuse; and the most
  // that was not.
  std::atomic<uint64_t> idle{0}, most_in_use{0};
  std::atomic<bool> ever_managed{false};
  uint64_t card = 0;                     // the same in every process that uses this card
  std::atomic<uint64_t> promised{0};     // managed bytes that the ledger of host memory knows of
  std::atomic<uint64_t> share{0};        // that atpd gives of the card; 0 = it says nothing
  std::atomic<uint64_t> beside{0};       // that neighbours leave; 0 = not known
  std::atomic<uint64_t> least{0};        // with less no plan is possible; 0 = not known yet
  std::atomic<uint32_t> small_frees{0};  // of packed ones, while launches are watched
};

// Null: no current context, or the driver refused a basic question.
Device* CurrentDevice();
Device* CurrentDevice(CUcontext* context);
Device* DeviceOf(int ordinal);            // null when that device has not been seen
CUcontext PrimaryContextOf(int ordinal);  // null when the shim has not seen it
size_t ContextsSeen();
// Calls visit for each context seen, until it gives false; gives what it gave last.
bool EachContext(bool (*visit)(CUcontext context));
void ForgetContext(CUcontext context);
uint32_t ContextsForgotten();  // so many times: memory and handles of ours may be gone
void ResetDevicesAfterFork();

// What the shim may keep resident at present: what atpd gives of a shared card, without that what
// neighbours leave of it, each within ATP_BUDGET; without these, Device::budget.
uint64_t EffectiveBudget(const Device& device);
// What the managed memory of a device may occupy: the budget less the plain memory beside it.
uint64_t ManagedRoom(const Device& device);

// For the loop, by ordinal; 0 for a device that has not been seen.
uint64_t DeviceBudget(int ordinal);
uint64_t NativeBytes(int ordinal);

}  // namespace atp::shim
