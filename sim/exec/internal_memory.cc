// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "sim/exec/worker.h"

namespace atp::sim::exec {

uint8_t* InternalMemory::data() {
  if (data_ == nullptr) data_ = std::make_unique<uint8_t[]>(bytes());
  return data_.get();
}

// What cooperative_groups::grid_group finds behind %envreg1 and %envreg2: its size, then the
// barrier word.
void InternalMemory::ResetGrid() {
  std::memset(data(), 0, kGridBytes);
  uint32_t size = 4;
  std::memcpy(data(), &size, sizeof(size));
}

// First fit. Device-side malloc is rare and small.
uint64_t InternalMemory::Allocate(uint64_t size) {
  if (size == 0 || size > kHeapBytes) return 0;
  size = (size + 15) / 16 * 16;
  if (pieces_.empty()) pieces_.push_back({kGridBytes, kHeapBytes, false});
  for (size_t k = 0; k < pieces_.size(); ++k) {
    if (pieces_[k].used || pieces_[k].bytes < size) continue;
    uint64_t rest = pieces_[k].bytes - size;
    pieces_[k].bytes = size;
    pieces_[k].used = true;
    uint64_t offset = pieces_[k].offset;
    if (rest != 0)
      pieces_.insert(pieces_.begin() + static_cast<ptrdiff_t>(k) + 1, {offset + size, rest, false});
    return TagBase(kTagInternal) + offset;
  }
  return 0;
}

bool InternalMemory::Release(uint64_t address) {
  for (size_t k = 0; k < pieces_.size(); ++k) {
    if (!pieces_[k].used || TagBase(kTagInternal) + pieces_[k].offset != address) continue;
    pieces_[k].used = false;
    if (k + 1 < pieces_.size() && !pieces_[k + 1].used) {
      pieces_[k].bytes += pieces_[k + 1].bytes;
      pieces_.erase(pieces_.begin() + static_cast<ptrdiff_t>(k) + 1);
    }
    if (k > 0 && !pieces_[k - 1].used) {
      pieces_[k - 1].bytes += pieces_[k].bytes;
      pieces_.erase(pieces_.begin() + static_cast<ptrdiff_t>(k));
    }
    return true;
  }
  return false;
}

}  // namespace atp::sim::exec
