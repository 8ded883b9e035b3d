// SPDX-License-Identifier: Apache-2.0
// How often each hook was entered by the program. Sharded, so that threads that use different
// streams do not share a cache line.
#pragma once

#include <atomic>
#include <cstdint>

#include "shim/hooks.h"

namespace atp::shim {

inline constexpr unsigned kCounterShards = 8;
struct alignas(64) CounterShard {
  std::atomic<uint64_t> calls[kHookCount];
};
extern CounterShard g_counters[kCounterShards];
extern thread_local constinit unsigned t_counter_shard __attribute__((tls_model("initial-exec")));
unsigned AssignCounterShard();

inline void CountHook(HookId id) {
  unsigned shard = t_counter_shard;  // 0 = not assigned yet, else shard + 1
  if (shard == 0) [[unlikely]]
    shard = AssignCounterShard();
  g_counters[shard - 1].calls[static_cast<size_t>(id)].fetch_add(1, std::memory_order_relaxed);
}

uint64_t HookCalls(HookId id);

}  // namespace atp::shim
