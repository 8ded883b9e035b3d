// SPDX-License-Identifier: Apache-2.0
// Small allocations packed into managed slabs of 2 to 8 MiB, for programs whose small allocations
// exceed what placement leaves native. A slab holds slots of one size class (four classes a
// doubling, multiples of 512 bytes, so at most a fifth is lost). The caller maps and frees slabs;
// nothing here calls the driver. One lock; not on the launch path.
#pragma once

#include <cstdint>
#include <mutex>

#include "shim/tracker.h"

namespace atp::shim {

inline constexpr uint64_t kSlabAlignment = 512;  // as the driver aligns small allocations

struct Slab {
  Record* record = nullptr;
  uint64_t slot_bytes = 0;
  uint32_t slot_count = 0;
  uint32_t free_count = 0;
  uint32_t size_class = 0;
  Slab* next =
      nullptr;  // in its class's list of slabs with free slots, or in the list of spare headers
  Slab* previous = nullptr;
  uint64_t taken[64] = {};        // one bit a slot: at most 4096
  uint32_t requested[4096] = {};  // what the program asked for
};

class Slabs {
 public:
  static constexpr uint64_t kMaxBytes = 1u << 20;  // larger ones get managed memory of their own

  // The slot size that serves `bytes`, and the size of a slab for them: the fewest blocks of 2 MiB,
  // at most four, of which slots leave no more than a sixteenth, or the least (two slots of 768 KiB
  // leave a quarter of one block, five a sixteenth of two).
  static uint64_t SlotBytes(uint64_t bytes);
  static uint64_t SlabBytes(uint64_t bytes);

  // A slot in an existing slab of this device and context, 0 = none has room: add one with AddSlab
  // and ask again.
  uint64_t Take(uint64_t bytes, int device, CUcontext context);
  bool AddSlab(Record* record, uint64_t bytes);  // `record`: a tracked managed allocation of 2 MiB

  // The program's allocation around `address`: its start and size. False when no live one covers
  // it.
  bool Range(const Record& record, uint64_t address, uint64_t* start, uint64_t* bytes);
  // Gives the slot back. `*empty` is set when the slab holds nothing any more; it is then detached,
  // and the caller unmaps record's memory.
  bool Give(Record* record, uint64_t address, bool* empty);
  // The memory of a slab is about to go with its context.
  void Forget(Record* record);

 private:
  static constexpr uint32_t kClasses = 64;
  static uint32_t ClassOf(uint64_t slot_bytes);
  void Link(Slab* slab);
  void Unlink(Slab* slab);
  void Retire(Slab* slab);
  Slab* NewHeader();

  std::mutex mutex_;
  Slab* with_room_[kClasses] = {};
  Slab* spare_ = nullptr;
};

extern Slabs g_slabs;

}  // namespace atp::shim
