// SPDX-License-Identifier: Apache-2.0
// Virtual memory management: physical memory and address ranges by themselves, and mappings between
// them. Physical memory is a piece of the arena that nobody points into; a mapping only says where
// its bytes are, so one handle may be mapped many times. Memory of the host is
// not there. Memory that may be shared lies in a file of its own, put behind its piece of the
// arena. Under the driver's lock.
#pragma once

#include <cstdint>
#include <map>

#include "sim/driver/memory.h"

namespace atp::sim {

struct PhysicalMemory {  // what a CUmemGenericAllocationHandle names
  uint64_t storage = 0;  // where its bytes are in the arena
  uint64_t bytes = 0;
  CUmemAllocationProp prop{};
  int device = 0;           // index on the machine
  uint64_t number = 0;      // never given twice; what a shared descriptor holds
  int file = -1;            // of its own, when it may be shared or comes from elsewhere
  bool imported = false;    // another process's card holds it
  unsigned references = 1;  // handles
  unsigned mappings = 0;
};

// Puts the memory into a file of its own, which a descriptor can hand to another process.
bool MakeShareable(Driver& driver, PhysicalMemory* memory);
// Forgets the memory when neither a handle nor a mapping is left.
void ReleaseIfUnused(Driver& driver, Lane lane, PhysicalMemory* memory);

}  // namespace atp::sim
