// SPDX-License-Identifier: Apache-2.0
// Whether anything has been dropped that has to be made again (debts.h). Any thread.
#pragma once

#include <atomic>
#include <cstdint>

namespace atp::shim {

// Of all devices: debts, what may become one at any moment, and payments that other streams may not
// have seen yet. Whoever has seen a launch return sees it counted.
extern std::atomic<uint32_t> g_owing;
inline bool Owing() { return g_owing.load(std::memory_order_relaxed) != 0; }

}  // namespace atp::shim
