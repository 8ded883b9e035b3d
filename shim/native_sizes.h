// SPDX-License-Identifier: Apache-2.0
// Sizes of the plain device allocations that the program holds, by address: a free names only the
// address, and the accounts must come out right. Open addressing; one lock, never held across a
// driver call. O(1) whatever the number of live allocations.
#pragma once

#include <cstdint>
#include <mutex>

#include "shim/findings.h"

namespace atp::shim {

class NativeSizes {
 public:
  struct Entry {
    uint64_t address = 0;  // 0 = empty
    uint64_t bytes = 0;
    int device = 0;
    bool packed = false;  // counts against what placement may leave native
    WhyNative why = WhyNative::kSmall;
    uintptr_t caller = 0;  // who asked; 0 = nobody looked
  };
  // False when memory for the table is out: the allocation is then not accounted.
  bool Insert(const Entry& entry);
  bool Take(uint64_t address, Entry* entry);  // removes; false when unknown
  bool Find(uint64_t address, Entry* entry);
  // What is held on a device, by reason and caller: at most `most`, the largest first.
  struct Holder {
    WhyNative why = WhyNative::kSmall;
    uintptr_t caller = 0;
    uint64_t bytes = 0, count = 0;
  };
  size_t Holders(int device, Holder* holders, size_t most);
  uint64_t size() const { return size_; }

 private:
  bool Grow();
  Entry* Slot(uint64_t address);
  void Erase(uint64_t index);

  std::mutex mutex_;
  Entry* entries_ = nullptr;
  uint64_t capacity_ = 0;  // power of two
  uint64_t size_ = 0;
};

extern NativeSizes g_native_sizes;

}  // namespace atp::shim
