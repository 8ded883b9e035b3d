// SPDX-License-Identifier: Apache-2.0
#include "sim/driver/host_touches.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include "sim/driver/driver.h"

namespace atp::sim {
namespace {

constexpr uint64_t kPage = 1u << kPageBits;
constexpr uint64_t kPresent = uint64_t{1} << 63;
constexpr uint64_t kPagesAtOnce = 4096;

int PageMap() {
  static const int file = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  return file;
}

// Tells the machine about a run of pages and forgets them in the program's page table.
void Report(Driver& driver, Lane lane, const Allocation& allocation, uint64_t begin, uint64_t end) {
  const auto advice = std::prev(allocation.advised.upper_bound(begin));
  driver.machine().HostAccess(lane, begin, end - begin, /*write=*/!advice->second.read_mostly);
  madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
  driver.memory().NoteWritten(begin, end - begin);
}

void CollectPages(Driver& driver, Lane lane, const Allocation& allocation, uint64_t begin,
                  uint64_t end) {
  std::vector<uint64_t> entries(std::min(kPagesAtOnce, (end - begin) / kPage));
  uint64_t run = 0;  // start of the current run of present pages, 0 when there is none
  for (uint64_t at = begin; at < end;) {
    const uint64_t pages = std::min<uint64_t>(entries.size(), (end - at) / kPage);
    const ssize_t got =
        pread(PageMap(), entries.data(), pages * 8, static_cast<off_t>(at / kPage * 8));
    if (got != static_cast<ssize_t>(pages * 8)) break;
    for (uint64_t i = 0; i < pages; ++i, at += kPage) {
      const bool present = (entries[i] & kPresent) != 0;
      if (present && !run) run = at;
      if (!present && run) {
        Report(driver, lane, allocation, run, at);
        run = 0;
      }
    }
  }
  if (run) Report(driver, lane, allocation, run, end);
}

}  // namespace

void CollectHostTouches(Driver& driver, Lane lane, uint64_t begin, uint64_t end) {
  if (PageMap() < 0 || !driver.settings().concurrent_managed) return;
  const auto& all = driver.memory().all();
  auto it = all.upper_bound(begin);
  if (it != all.begin()) --it;
  for (; it != all.end() && it->first < end; ++it) {
    const Allocation& allocation = *it->second;
    if (!allocation.IsManaged() || allocation.end() <= begin) continue;
    const uint64_t from = std::max(begin, allocation.begin) / kPage * kPage;
    const uint64_t to = (std::min(end, allocation.end()) + kPage - 1) / kPage * kPage;
    CollectPages(driver, lane, allocation, from, to);
  }
}

void CollectHostTouches(Driver& driver, Lane lane, const std::vector<WaveTouches>& waves) {
  constexpr unsigned kBlockShift = 21 - kPageBits;
  std::vector<uint64_t> blocks;
  for (const WaveTouches& wave : waves) {
    uint64_t last = UINT64_MAX;
    for (const PageTouch& touch : wave.pages) {
      const uint64_t block = touch.page >> kBlockShift;
      if (block == last) continue;
      last = block;
      if (driver.memory().IsDeviceAddress(block * kBlockBytes)) blocks.push_back(block);
    }
  }
  std::sort(blocks.begin(), blocks.end());
  blocks.erase(std::unique(blocks.begin(), blocks.end()), blocks.end());
  for (size_t i = 0; i < blocks.size();) {
    size_t next = i + 1;
    while (next < blocks.size() && blocks[next] == blocks[next - 1] + 1) ++next;
    CollectHostTouches(driver, lane, blocks[i] * kBlockBytes, (blocks[next - 1] + 1) * kBlockBytes);
    i = next;
  }
}

void CollectAllHostTouches(Driver& driver, Lane lane) {
  for (const auto& [address, allocation] : driver.memory().all()) {
    if (allocation->IsManaged()) CollectHostTouches(driver, lane, address, allocation->end());
  }
}

}  // namespace atp::sim
