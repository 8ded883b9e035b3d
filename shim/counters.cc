// SPDX-License-Identifier: Apache-2.0
#include "shim/counters.h"

namespace atp::shim {

CounterShard g_counters[kCounterShards];
thread_local constinit unsigned t_counter_shard = 0;

unsigned AssignCounterShard() {
  static std::atomic<unsigned> next{0};
  t_counter_shard = next.fetch_add(1, std::memory_order_relaxed) % kCounterShards + 1;
  return t_counter_shard;
}

uint64_t HookCalls(HookId id) {
  uint64_t sum = 0;
  for (const CounterShard& shard : g_counters) {
    sum += shard.calls[static_cast<size_t>(id)].load(std::memory_order_relaxed);
  }
  return sum;
}

}  // namespace atp::shim
