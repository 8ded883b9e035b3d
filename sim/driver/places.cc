// SPDX-License-Identifier: Apache-2.0
#include "sim/driver/places.h"

#include "sim/driver/state.h"

namespace atp::sim {

bool Locate(const Memory& memory, const Context& context, uint64_t address, uint64_t bytes,
            Place* place) {
  const Allocation* first = memory.Find(address);
  place->allocation = first;
  if (!first) return !memory.IsDeviceAddress(address) && address != 0;
  uint64_t at = address;
  const uint64_t end = address + bytes;
  for (const Allocation* piece = first;; piece = memory.Find(at)) {
    if (!piece) return false;
    // With unified addressing copies reach every device's memory, peer access or not; mappings say
    // who may.
    if (piece->kind == MemoryKind::kMapped && !MayAccess(context, *piece)) return false;
    if (end <= piece->end()) return true;
    if (piece->kind != MemoryKind::kMapped) return false;
    at = piece->end();
  }
}

}  // namespace atp::sim
