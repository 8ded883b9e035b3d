// SPDX-License-Identifier: Apache-2.0
// The address range from which all device and managed memory comes: one sparse memory file, mapped
// twice. The program's view is what pointers point into; it is inaccessible except where memory is
// managed (or is host memory made by the virtual memory calls), so that following a device pointer
// on the host crashes as on a real machine. The device's view is always accessible and serves
// kernels and copies. Called by the allocation code only, under the driver's lock. Never unmapped.
#pragma once

#include <cstdint>
#include <map>

namespace atp::sim {

class Arena {
 public:
  // An arena of about `wanted` bytes; smaller when the address space has no room for it (ulimit
  // -v), null when there is not even room for the smallest.
  static Arena* Create(uint64_t wanted);

  // First fit. `alignment` is a power of two, at least a page. 0 when the arena is full.
  uint64_t Allocate(uint64_t bytes, uint64_t alignment);
  // Gives a range back and drops its content.
  void Free(uint64_t address, uint64_t bytes);
  // Like Allocate, at an address of the caller's choice; false when any of it is taken.
  bool AllocateAt(uint64_t address, uint64_t bytes);

  // Makes a range of the program's view accessible or not. Page aligned.
  bool SetProgramAccess(uint64_t address, uint64_t bytes, bool accessible, bool writable = true);

  // Where an address lies in the memory file, for another process that maps it.
  struct Place {
    int file = -1;
    uint64_t offset = 0;
  };
  Place PlaceOf(uint64_t address) const { return {file_, address - begin_}; }
  // Puts a piece of another process's memory file behind an allocated range (the device's view of
  // it; the program's stays inaccessible), and our own file back. Page aligned.
  bool MapForeign(uint64_t address, uint64_t bytes, int file, uint64_t offset);
  bool UnmapForeign(uint64_t address, uint64_t bytes);

  bool Contains(uint64_t address) const { return address >= begin_ && address - begin_ < bytes_; }
  // What to add to an address of the program's view to get the device's view.
  int64_t device_delta() const { return device_delta_; }

 private:
  Arena() = default;
  void ReturnRange(uint64_t offset, uint64_t bytes);
  bool MapDeviceView(uint64_t address, uint64_t bytes, int file, uint64_t offset);

  int file_ = -1;
  uint64_t begin_ = 0;
  uint64_t bytes_ = 0;
  int64_t device_delta_ = 0;
  std::map<uint64_t, uint64_t> free_;  // offset -> bytes
};

}  // namespace atp::sim
