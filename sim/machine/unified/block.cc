// SPDX-License-Identifier: Apache-2.0
#include "sim/machine/unified/block.h"

#include <algorithm>

namespace atp::sim {
namespace {

// A number in [0, 1) that depends on the slot only: whether the host finds contiguous memory is the
// same in every run.
double SlotLottery(uint64_t slot) {
  uint64_t x = slot + 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  x ^= x >> 31;
  return static_cast<double>(x >> 11) / static_cast<double>(uint64_t{1} << 53);
}

}  // namespace

PageMask SlotMask(uint64_t slot, uint64_t address, uint64_t bytes) {
  uint64_t begin = std::max(address, slot * kBlockBytes);
  uint64_t end = std::min(address + bytes, (slot + 1) * kBlockBytes);
  if (begin >= end) return PageMask();
  int first = static_cast<int>((begin - slot * kBlockBytes) >> kPageBits);
  int last = static_cast<int>((end - slot * kBlockBytes + kPageBytes - 1) >> kPageBits);
  return PageMask::Range(first, last - first);
}

void AddressSpace::Add(uint64_t address, uint64_t bytes) {
  auto range = std::make_unique<Range>();
  range->begin = address;
  range->end = address + bytes;
  for (uint64_t slot = address / kBlockBytes; slot * kBlockBytes < range->end; ++slot) {
    auto block = std::make_unique<Block>();
    block->slot = slot;
    block->valid = SlotMask(slot, address, bytes);
    block->whole = block->valid == PageMask::All();
    block->host_large = block->whole && SlotLottery(slot) < f2m_;
    block->views.resize(static_cast<size_t>(devices_));
    range->slots.push_back(std::move(block));
  }
  ranges_[address] = std::move(range);
}

void AddressSpace::Remove(uint64_t begin) {
  last_ = nullptr;
  ++layout_;
  ranges_.erase(begin);
}

Range* AddressSpace::Find(uint64_t address) {
  if (last_ != nullptr && address >= last_->begin && address < last_->end) return last_;
  auto next = ranges_.upper_bound(address);
  if (next == ranges_.begin()) return nullptr;
  Range* range = std::prev(next)->second.get();
  if (address >= range->end) return nullptr;
  last_ = range;
  return range;
}

Block* AddressSpace::BlockOf(uint64_t page) {
  Range* range = Find(page << kPageBits);
  if (range == nullptr) return nullptr;
  uint64_t slot = page / PageMask::kPages;
  int index = static_cast<int>(page % PageMask::kPages);
  Block* block = range->slots[slot - range->begin / kBlockBytes].get();
  while (block != nullptr && !block->valid.Test(index)) block = block->sibling.get();
  return block;
}

bool AddressSpace::Covers(uint64_t address, uint64_t bytes) {
  uint64_t end = address + bytes;
  while (address < end) {
    Range* range = Find(address);
    if (range == nullptr) return false;
    address = range->end;
  }
  return true;
}

bool AddressSpace::SplitAt(uint64_t address) {
  if (address % kBlockBytes == 0) return false;
  uint64_t page = address >> kPageBits;
  Block* block = BlockOf(page);
  if (block == nullptr) return false;
  int index = static_cast<int>(page % PageMask::kPages);
  PageMask upper = block->valid & PageMask::Range(index, PageMask::kPages - index);
  if (upper == block->valid) return false;
  Divide(block, upper);
  ++layout_;
  return true;
}

// Both parts keep what they have; device memory that was one chunk of 2 MiB becomes parts of a
// split chunk (Unified does that first, so that views hold small chunks only).
void AddressSpace::Divide(Block* block, const PageMask& upper) {
  auto part = std::make_unique<Block>(Block{});
  part->slot = block->slot;
  part->policy = block->policy;
  part->host_arrival = block->host_arrival;
  part->views.resize(block->views.size());
  auto divide = [&](PageMask* low, PageMask* high) {
    *high = *low & upper;
    *low -= upper;
  };
  divide(&block->valid, &part->valid);
  divide(&block->on_host, &part->on_host);
  divide(&block->host_pages, &part->host_pages);
  divide(&block->host_mapped, &part->host_mapped);
  divide(&block->discarded, &part->discarded);
  divide(&block->discard_kept, &part->discard_kept);
  divide(&block->dead, &part->dead);
  block->whole = false;
  part->host_large = false;
  block->host_large = false;
  for (size_t d = 0; d < block->views.size(); ++d) {
    DeviceView &low = block->views[d], &high = part->views[d];
    divide(&low.resident, &high.resident);
    divide(&low.read_only, &high.read_only);
    divide(&low.pending, &high.pending);
    divide(&low.remote, &high.remote);
    high.arrival = low.arrival;
    high.remote_from = low.remote_from;
    low.remote_large = high.remote_large = false;
    for (auto it = low.small.begin(); it != low.small.end();) {
      if (upper.Test(it->block_page)) {
        high.small.push_back(*it);
        it = low.small.erase(it);
      } else {
        ++it;
      }
    }
  }
  part->sibling = std::move(block->sibling);
  block->sibling = std::move(part);
}

}  // namespace atp::sim
