// SPDX-License-Identifier: Apache-2.0
// What a memory address means to a copy: which memory it is in, and where its bytes are in this
// process. Under the driver's lock.
#pragma once

#include <cstdint>

#include "sim/driver/memory.h"

namespace atp::sim {

struct Place {
  const Allocation* allocation = nullptr;  // null: pageable host memory
  bool IsHost() const { return !allocation || allocation->IsHost(); }
  bool IsManaged() const { return allocation && allocation->IsManaged(); }
  bool IsPageable() const { return !allocation; }
  // The address when the machine's model needs it, else 0.
  uint64_t ModelAddress(uint64_t address) const { return IsHost() ? 0 : address; }
};

// Where [address, address + bytes) lies. False when it is neither host memory nor wholly inside
// memory that `context` may access (adjacent mappings of one reservation count as one).
bool Locate(const Memory& memory, const Context& context, uint64_t address, uint64_t bytes,
            Place* place);

// Calls visit(pointer, bytes) for each piece of a located range that lies in one stretch of this
// process.
template <class Visit>
void ForEachPiece(const Memory& memory, uint64_t address, uint64_t bytes, Visit visit) {
  while (bytes > 0) {
    const Allocation* allocation = memory.Find(address);
    uint64_t piece = bytes;
    uint8_t* pointer = reinterpret_cast<uint8_t*>(address);
    if (allocation) {
      piece = std::min(bytes, allocation->end() - address);
      pointer = allocation->Bytes(address);
    }
    visit(pointer, piece);
    address += piece;
    bytes -= piece;
  }
}

}  // namespace atp::sim
