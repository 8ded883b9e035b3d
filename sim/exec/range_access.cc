// SPDX-License-Identifier: Apache-2.0
#include "sim/exec/range_access.h"

#include "sim/exec/worker.h"

namespace atp::sim::exec {

uint8_t* RangeAddress(Warp& warp, const Insn* insn, int lane, uint64_t address, uint32_t bytes,
                      uint32_t alignment, bool read, bool write) {
  bool generic = (insn->aux & 1) != 0, shared = (insn->aux & 2) != 0;
  const char* space = shared ? "shared" : generic ? "generic" : "global";
  if ((address & (alignment - 1)) != 0) {
    FailAddress(warp, insn, ExecStatus::kMisalignedAddress, space, address);
    return nullptr;
  }
  Block& block = *warp.block;
  uint64_t tag = address >> kTagShift, offset = address & kOffsetMask;
  if (shared || (generic && tag == kTagShared)) {
    if (!shared || tag == 0) {
      if (offset <= block.shared_bytes && block.shared_bytes - offset >= bytes)
        return block.shared + offset;
    }
  } else if (generic && tag == kTagLocal) {
    if (offset <= warp.local_stride && warp.local_stride - offset >= bytes) {
      return warp.local + static_cast<size_t>(lane) * warp.local_stride + offset;
    }
  } else {
    AccessCache* cache = warp.caches + insn->cache;
    bool cached = address >= cache->begin && address < cache->end &&
                  cache->end - address >= bytes && (!write || cache->writable);
    if (cached || ResolveRegion(warp, cache, address, bytes, write)) {
      if (read) TouchRead(warp, cache, address, address + bytes);
      if (write) TouchWrite(warp, cache, address, address + bytes);
      warp.sectors += ((address + bytes - 1) >> 5) - (address >> 5) + 1;
      return reinterpret_cast<uint8_t*>(address + static_cast<uint64_t>(cache->delta));
    }
  }
  FailAddress(warp, insn, ExecStatus::kIllegalAddress, space, address);
  return nullptr;
}

}  // namespace atp::sim::exec
