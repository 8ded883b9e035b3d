// SPDX-License-Identifier: Apache-2.0
// Addresses of the lanes, taken apart into runs (consecutive or equal), because that is how kernels
// touch memory: one bounds check, one note of the page and one copy serve a whole run.
#pragma once

#include "sim/exec/handlers/lanes.h"

namespace atp::sim::exec::ATP_VARIANT {

// aux of memory instructions.
enum MemoryAux : uint32_t { kAuxGeneric = 1, kAuxShared = 2, kAuxWideAddress = 4 };

// Distinct 32-byte sectors of one warp access: what the L2 cache is asked for.
struct SectorSet {
  uint64_t slots[128] = {};
  uint64_t count = 0, last = ~uint64_t{0};
  void Add(uint64_t sector) {
    if (sector == last) return;
    last = sector;
    uint64_t key = sector + 1;
    uint32_t slot = static_cast<uint32_t>((key * 0x9e3779b97f4a7c15ull) >> 57);
    for (; slots[slot] != 0; slot = (slot + 1) & 127) {
      if (slots[slot] == key) return;
    }
    if (count < 100) slots[slot] = key;
    ++count;
  }
};

struct LaneAddresses {
  alignas(64) uint64_t at[kLanes];
  uint32_t stop = 0;   // a consecutive run cannot go over the border before this lane
  uint32_t equal = 0;  // same address as the lane before
};

ATP_INLINE void ReadAddresses(const Warp& w, const Insn* i, LaneAddresses* a) {
  uint64_t imm = static_cast<uint64_t>(i->imm);
  const uint8_t* base = At(w, i->r[5]);
  if (i->aux & kAuxWideAddress) {
    ATP_LANES(l) a->at[l] = Get<uint64_t>(base, l) + imm;
  } else {
    ATP_LANES(l) a->at[l] = uint64_t{Get<uint32_t>(base, l)} + imm;
  }
}

ATP_INLINE void FindRuns(const Warp& w, uint64_t step, LaneAddresses* a) {
  alignas(64) int32_t breaks[kLanes], same[kLanes];
  breaks[0] = -1, same[0] = 0;
  for (int l = 1; l < kLanes; ++l) {
    uint64_t gap = a->at[l] - a->at[l - 1];
    breaks[l] = gap != step ? -1 : 0;
    same[l] = gap == 0 ? -1 : 0;
  }
  uint32_t off = ~w.mask;
  a->stop = MoveMask(breaks) | off | off << 1;
  a->equal = MoveMask(same) & ~(off | off << 1);
}

// The next run among `rest`: lanes first..first+count; equal addresses or consecutive ones.
struct Run {
  int first, count;
  bool equal;
};
ATP_INLINE Run NextRun(const LaneAddresses& a, uint32_t* rest) {
  int first = __builtin_ctz(*rest);
  bool equal = first < kLanes - 1 && (a.equal >> (first + 1) & 1) != 0;
  uint32_t border = equal ? ~a.equal : a.stop;
  uint32_t above = first == kLanes - 1 ? 0 : border & ~((2u << first) - 1);
  int end = above == 0 ? kLanes : __builtin_ctz(above);
  uint32_t below_end = end == kLanes ? kFullMask : (1u << end) - 1;
  *rest &= ~below_end;
  return {first, end - first, equal};
}

// Host address of ordinary memory [begin, end), noted as touched; null when it is not all in one
// region.
template <bool kRead, bool kWrite>
ATP_INLINE uint8_t* Span(Warp& w, const Insn* i, uint64_t begin, uint64_t end) {
  AccessCache* cache = w.caches + i->cache;
  if (begin < cache->begin || end > cache->end || (kWrite && !cache->writable)) {
    if (!ResolveRegion(w, cache, begin, static_cast<uint32_t>(end - begin), kWrite)) return nullptr;
  }
  if (kRead) {
    bool known = begin >> kPageBits == cache->page && (end - 1) >> kPageBits == cache->page &&
                 cache->entry->exposed_read;
    if (!known) TouchRead(w, cache, begin, end);
  }
  if (kWrite) TouchWrite(w, cache, begin, end);
  return reinterpret_cast<uint8_t*>(begin + static_cast<uint64_t>(cache->delta));
}

}  // namespace atp::sim::exec::ATP_VARIANT
