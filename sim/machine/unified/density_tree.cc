// SPDX-License-Identifier: Apache-2.0
#include "sim/machine/unified/density_tree.h"

namespace atp::sim {
namespace {

constexpr int kBigPage = 16;  // pages of 4 KiB in 64 KiB

}  // namespace

PageMask ExpandFaults(const PageMask& faulted, const PageMask& resident, const PageMask& valid,
                      int threshold_percent) {
  PageMask filled;
  for (int page = faulted.Next(0); page < PageMask::kPages; page = faulted.Next(page)) {
    int first = page / kBigPage * kBigPage;
    filled.SetRange(first, kBigPage);
    page = first + kBigPage;
  }
  filled &= valid;
  const PageMask occupied = (resident & valid) | filled;
  PageMask result = filled;
  for (int page = faulted.Next(0); page < PageMask::kPages; page = faulted.Next(page)) {
    int first = page / kBigPage * kBigPage;
    int best = kBigPage;
    for (int size = 2 * kBigPage; size <= PageMask::kPages; size *= 2) {
      int begin = page / size * size;
      int pages = valid.CountRange(begin, size);
      if (occupied.CountRange(begin, size) * 100 > pages * threshold_percent) best = size;
    }
    result.SetRange(page / best * best, best);
    page = first + kBigPage;  // faults of one 64 KiB region climb alike
  }
  return result & valid;
}

}  // namespace atp::sim
