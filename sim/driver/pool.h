// SPDX-License-Identifier: Apache-2.0
// Memory pools of the stream-ordered allocator. A pool takes 2 MiB chunks of its device's memory,
// hands out pieces, and takes them back in stream order: a piece is given out again at once in the
// stream that freed it, elsewhere when that stream has passed the free. Unused chunks above the
// release threshold go back at synchronisation. Under the driver's lock.
#pragma once

#include <cstdint>
#include <map>

#include "sim/driver/memory.h"
#include "sim/driver/stream.h"

namespace atp::sim {

struct Device;

struct Pool {
  Device* device = nullptr;
  bool is_default = false;
  CUmemPoolProps props{};
  uint64_t release_threshold = 0;
  int reuse[3] = {1, 1, 1};  // follow event dependencies, opportunistic, internal dependencies
  uint64_t reserved = 0, reserved_high = 0, used = 0, used_high = 0;
  uint32_t peers = 0;  // bit per device index: may access besides the owner

  struct FreePiece {
    uint64_t bytes = 0;
    uint64_t stream = 0;  // number of the stream that freed it, 0 when every stream may have it
    EventId passed = 0;   // recorded at the free
  };
  std::map<uint64_t, FreePiece> pieces;
  std::map<uint64_t, uint64_t> chunks;  // address -> bytes
};

Pool* NewDefaultPool(Driver& driver, Device& device);
Pool* NewPool(Driver& driver, Device& device, const CUmemPoolProps& props);
// Gives back all unused memory and forgets the pool.
void DestroyPool(Driver& driver, Lane lane, Pool* pool);

CUresult PoolAllocate(Driver& driver, Lane lane, Pool& pool, Stream& stream, uint64_t bytes,
                      uint64_t* address);
// `stream` null: everything that used the memory is done.
void PoolFree(Driver& driver, Lane lane, Allocation* allocation, const Stream* stream);

// Gives back unused chunks until `keep` bytes are reserved. True when something was given back.
bool TrimPool(Driver& driver, Lane lane, Pool& pool, uint64_t keep);
// The same for all pools of a device, to their thresholds (after synchronisation) or to nothing
// (out of memory).
bool TrimPools(Driver& driver, Lane lane, int device_index, bool to_thresholds = false);

}  // namespace atp::sim
