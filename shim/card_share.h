// SPDX-License-Identifier: Apache-2.0
// The part of a card that atpd gives this process, where several share the card, and without that
// what neighbours without the shim leave of it (neighbours.h). Where time is real, a thread of ours
// reports, asks and looks once a second, and the program's threads read the answer; on the
// simulated machine the program's thread asks, in virtual time, and its clock stands still
// meanwhile. Without a daemon there is no part, and the budget is the process's own; a daemon that
// is gone leaves the last part in force.
#pragma once

#include <atomic>
#include <cstdint>

#include "shim/device.h"

namespace atp::shim {

// Grows whenever the budget of some device has changed.
extern std::atomic<uint32_t> g_share_version;
extern std::atomic<bool> g_share_by_turns;
inline uint32_t ShareVersion() { return g_share_version.load(std::memory_order_relaxed); }

// The process is about to have its first managed memory on the device. With ATP_WAIT it waits here
// until there is room for it, at most for so long.
void ShareStart(Device* device);
// A launch comes: on the simulated machine it may be time to ask and to look.
void ShareAskInTurn(int device);
inline void ShareTick(int device) {
  if (g_share_by_turns.load(std::memory_order_relaxed)) [[unlikely]]
    ShareAskInTurn(device);
}
// Nothing is asked any more, and no call to the driver is under way for it. Of a forked child too.
void ShareStop();
void ResetShareAfterFork();

}  // namespace atp::shim
