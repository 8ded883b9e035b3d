// SPDX-License-Identifier: Apache-2.0
// Address -> Allocation for all managed memory that the shim placed. Find is lock-free and O(1): a
// two-level table over 2 MiB granules, which suffices because every managed allocation of ours
// starts on a 2 MiB boundary and owns its granules whole. Insert and Remove are serialised by the
// caller's lock-free readers' needs only: they take the tracker's own lock, never held across a
// driver call. Records are type-stable: a reader that races with a Remove sees an old record, never
// foreign memory; a record is reused only after kQuarantine later removals, so that a mover that
// still holds one has long noticed that its id is gone.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "shim/loop.h"

namespace atp::shim {

inline constexpr uint64_t RoundUpToGranule(uint64_t bytes) {
  return (bytes + kGranule - 1) / kGranule * kGranule;
}

struct Slab;
struct PieceTable;

struct Record : Allocation {
  Slab* slab = nullptr;  // not null: a slab that holds many small allocations of the program
  PieceTable* pieces = nullptr;  // not null: stream-ordered pieces lie in it (pieces.h)
  uint64_t idle_order = 0;  // not 0: the program has given it back, and it is kept (idle_ranges.h)
  Record* next = nullptr;
};

class Tracker {
 public:
  // Null: not memory of ours. The record covers [address, address + mapped_bytes).
  Record* Find(uint64_t address) const {
    const uint64_t granule = address / kGranule;
    if (granule >= kLeaves * kLeafEntries) return nullptr;
    const Leaf* leaf = leaves_[granule / kLeafEntries].load(std::memory_order_acquire);
    if (leaf == nullptr) return nullptr;
    return leaf->records[granule % kLeafEntries].load(std::memory_order_acquire);
  }

  // Finds many addresses one after the other, most of which are near each other. For a moment: one
  // thread, one launch.
  class Finder;

  // Takes over [address, address + mapped_bytes), both multiples of 2 MiB. Null when out of slots
  // or memory for the table.
  Record* Insert(uint64_t address, uint64_t bytes, uint64_t mapped_bytes, CUcontext context,
                 int device);
  // The record covers more at its end from now on; nobody else may be using it. False: out of
  // memory for the table, and the record is as it was.
  bool Grow(Record* record, uint64_t mapped_bytes);
  // Find gives null from now on. The record stays readable for a while (see above).
  void Remove(Record* record);
  // Undoes a Remove whose free the driver refused. The record must not have been removed long ago.
  bool Restore(Record* record);

  // Calls visit(Record*) for each live record of a context, null = all, by address. Not under the
  // lock: visit may call Remove.
  template <typename Visit>
  void ForEach(CUcontext context, Visit visit) {
    for (uint64_t leaf = 0; leaf < kLeaves; ++leaf) {
      const Leaf* entries = leaves_[leaf].load(std::memory_order_acquire);
      for (uint64_t i = 0; entries != nullptr && i < kLeafEntries; ++i) {
        Record* record = entries->records[i].load(std::memory_order_acquire);
        const bool starts =
            record != nullptr && record->address / kGranule == leaf * kLeafEntries + i;
        if (starts && (context == nullptr || record->context == context)) visit(record);
      }
    }
  }

  uint64_t live() const { return live_.load(std::memory_order_relaxed); }

  static constexpr uint32_t kMaxSlots = 1u << 20;
  static constexpr uint64_t kQuarantine = 1024;

 private:
  static constexpr uint64_t kLeafEntries = 1u << 13;  // 16 GiB of addresses a leaf
  static constexpr uint64_t kLeaves = 1u << 13;       // 47 bits of addresses
  struct Leaf {
    std::atomic<Record*> records[kLeafEntries];
  };

  bool SetGranules(uint64_t address, uint64_t mapped_bytes, Record* record);
  Record* NewRecord();
  int64_t TakeSlot();
  void GiveSlot(uint32_t slot);

  std::atomic<Leaf*> leaves_[kLeaves] = {};
  std::mutex mutex_;
  std::atomic<uint64_t> live_{0};
  uint64_t last_id_ = 0;
  // Lowest free slot first: a program that allocates and frees in the same order each iteration
  // gets the same slots each iteration.
  uint64_t slot_words_[kMaxSlots / 64] = {};              // bit set = taken
  uint64_t slot_groups_[kMaxSlots / 64 / 64] = {};        // bit set = word full
  uint64_t slot_summary_[kMaxSlots / 64 / 64 / 64] = {};  // bit set = group full
  Record* quarantine_head_ = nullptr;                     // oldest first
  Record* quarantine_tail_ = nullptr;
  uint64_t quarantined_ = 0;
  Record* arena_ = nullptr;  // untouched records of the newest chunk
  uint64_t arena_left_ = 0;
};

class Tracker::Finder {
 public:
  explicit Finder(const Tracker& tracker) : tracker_(tracker) {}
  Record* Find(uint64_t address) {
    const uint64_t number = address / (kGranule * kLeafEntries);
    if (number != number_) {
      const Leaf* leaf =
          number < kLeaves ? tracker_.leaves_[number].load(std::memory_order_acquire) : nullptr;
      if (leaf == nullptr) return nullptr;
      leaf_ = leaf;
      number_ = number;
    }
    return leaf_->records[address / kGranule % kLeafEntries].load(std::memory_order_acquire);
  }

 private:
  const Tracker& tracker_;
  const Leaf* leaf_ = nullptr;  // once made it stays
  uint64_t number_ = kLeaves;
};

extern Tracker g_tracker;

}  // namespace atp::shim
