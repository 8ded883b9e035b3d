// SPDX-License-Identifier: Apache-2.0
// Virtual memory management: physical memory and address ranges by themselves, and mappings between
// them. Physical memory is a piece of the arena that nobody points into; a mapping only says where
// its bytes are, so one handle may be mapped many times. Memory of the host is
// not there. Under the driver's lock.
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
  unsigned references = 1;  // handles
  unsigned mappings = 0;
};

// Forgets the memory when neither a handle nor a mapping is left.
void ReleaseIfUnused(Driver& driver, Lane lane, PhysicalMemory* memory);

}  // namespace atp::sim
