// SPDX-License-Identifier: Apache-2.0
#include "policy/launch_history.h"

#include <algorithm>
#include <bit>
#include <new>

namespace atp::policy {
// Fresh from the system, zeros cost nothing until they are touched.
LaunchHistory::Row LaunchHistory::Zeros(uint64_t count) {
  Row row(static_cast<uint64_t*>(std::calloc(count, sizeof(uint64_t))));
  if (row == nullptr) throw std::bad_alloc();
  return row;
}

LaunchHistory::LaunchHistory(uint64_t limit) {
  const uint64_t size = std::bit_ceil(std::max<uint64_t>(limit, 2));
  mask_ = size - 1;
  signatures_ = Zeros(size);
  prefix_ = Zeros(size);
  power_ = Zeros(size + 1);
  power_[0] = 1;
}

void LaunchHistory::Push(uint64_t signature) {
  signatures_[count_ & mask_] = signature;
  prefix_[count_ & mask_] = total_;
  total_ = Append(total_, signature);
  if (count_ <= mask_) power_[count_ + 1] = Multiply(power_[count_], kBase);
  ++count_;
}

uint64_t LaunchHistory::RunAt(uint64_t distance) const {
  if (distance == 0 || distance >= count_ - oldest()) return 0;
  uint64_t low = 0, high = count_ - oldest() - distance;  // a run of `low` is certain
  // Most end within a few launches, which lie side by side.
  constexpr uint64_t kFew = 8;
  while (low < std::min(high, kFew) && At(count_ - 1 - low) == At(count_ - 1 - low - distance)) {
    ++low;
  }
  if (low < kFew) return low;
  auto equal = [&](uint64_t run) {
    return Hash(count_ - run, count_) == Hash(count_ - distance - run, count_ - distance);
  };
  while (2 * low <= high && equal(2 * low)) low *= 2;
  high = std::min(high, 2 * low - 1);
  while (low < high) {
    const uint64_t middle = low + (high - low + 1) / 2;
    equal(middle) ? low = middle : high = middle - 1;
  }
  return low;
}

}  // namespace atp::policy
