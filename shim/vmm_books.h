// SPDX-License-Identifier: Apache-2.0
// What exists of virtual memory management in this process: ranges that are managed memory,
// physical memory, and the mappings between them; and where the bytes of memory are that is not
// mapped just now. Under the lock of vmm.cc, which is the only user.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <unordered_map>

#include "shim/device.h"
#include "shim/settings.h"
#include "shim/vmm.h"

namespace atp::shim {

struct Memory {  // what cuMemCreate made
  uint64_t bytes = 0;
  CUmemAllocationProp prop{};
  int device = 0;
  MemoryHandle key = 0;     // as the program knows it
  MemoryHandle native = 0;  // the driver's; 0 = a promise of ours
  unsigned references = 1;  // handles
  // Of these, references that the driver does not know: from before the memory became its own.
  unsigned own_references = 0;
  unsigned mappings = 0;
  uint64_t mapped_at = 0;    // of a promise: its one mapping in managed memory
  uint64_t contents_at = 0;  // of an unmapped promise: where its bytes were left, and how many
  uint64_t contents_bytes = 0;
  bool has_contents = false;  // it was mapped before
  bool in_stash = false;      // contents_at is a managed allocation of its own
};

struct Mapping {
  uint64_t bytes = 0;
  Memory* memory = nullptr;
  unsigned char access[kMaxDevices] = {};  // CUmemAccess_flags
};

struct Range {  // a reservation that is managed memory
  uint64_t bytes = 0;
  CUcontext context = nullptr;  // null: the context is gone, and the memory with it
};

struct VmmBooks {
  std::map<uint64_t, Range> ranges;      // by address
  std::map<uint64_t, Mapping> mappings;  // by address, ours and the driver's
  std::unordered_map<MemoryHandle, std::unique_ptr<Memory>> memories;
  std::unordered_map<MemoryHandle, MemoryHandle> aliases;  // other names of the driver -> key
  std::map<uint64_t, Memory*> left;  // by contents_at, those that lie in a range
};
VmmBooks& Books();   // never destroyed: hooks may run until the very end
bool RangesInUse();  // without the lock: has there ever been a range?

Memory* MemoryOf(MemoryHandle handle);
Range* RangeAround(uint64_t address, uint64_t bytes, uint64_t* begin);
const Mapping* MappingAt(uint64_t address, uint64_t* start = nullptr);
bool AnyMapping(uint64_t address, uint64_t bytes);
bool MadeOfMappings(uint64_t address, uint64_t bytes);  // exactly
void AddMapping(uint64_t address, uint64_t bytes, Memory* memory);
void RemoveMappings(uint64_t address, uint64_t bytes);
void NoteAccess(uint64_t address, uint64_t bytes, int device, CUmemAccess_flags flags);
void CountNative(const Memory& memory, bool there);
void ForgetIfUnused(Memory* memory);

// The bytes of memory that is unmapped but still has a handle. The context is current.
bool BringContents(Memory* memory, uint64_t address, uint64_t bytes);  // to a new mapping
bool KeepContentsElsewhere(uint64_t address, uint64_t bytes);          // before a range is reused
void DropContents(Memory* memory);
// Of memory that the current context reaches; returns when it is done.
bool CopyWithin(uint64_t to, uint64_t from, uint64_t bytes);
// Pages of the range that nobody's bytes are on hold nothing worth moving.
void DiscardUnclaimed(uint64_t address, uint64_t bytes, CUcontext context);

}  // namespace atp::shim
