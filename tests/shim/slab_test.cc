// SPDX-License-Identifier: Apache-2.0
#include "shim/slab.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>

namespace atp::shim {
namespace {

constexpr uint64_t kBase = 0x7f0000000000;
const auto kContext = reinterpret_cast<CUcontext>(0x10);

class SlabTest : public testing::Test {
 protected:
  uint64_t Take(uint64_t bytes) {
    if (const uint64_t slot = slabs_->Take(bytes, 0, kContext)) return slot;
    Record* record =
        tracker_->Insert(kBase + kGranule * mapped_++, kGranule, kGranule, kContext, 0);
    EXPECT_TRUE(slabs_->AddSlab(record, bytes));
    return slabs_->Take(bytes, 0, kContext);
  }
  bool Give(uint64_t address) {
    bool empty = false;
    const bool given = slabs_->Give(tracker_->Find(address), address, &empty);
    emptied_ += empty;
    return given;
  }
  std::unique_ptr<Tracker> tracker_ = std::make_unique<Tracker>();
  std::unique_ptr<Slabs> slabs_ = std::make_unique<Slabs>();
  uint64_t mapped_ = 0;
  int emptied_ = 0;
};

TEST_F(SlabTest, SlotsAreAlignedLargeEnoughAndWasteLittle) {
  for (uint64_t bytes = 1; bytes < Slabs::kMaxBytes; bytes += 777) {
    const uint64_t slot = Slabs::SlotBytes(bytes);
    EXPECT_GE(slot, bytes);
    EXPECT_EQ(slot % kSlabAlignment, 0u);
    EXPECT_LE(slot, std::max(bytes + bytes / 4 + 1, bytes + kSlabAlignment));
  }
}

TEST_F(SlabTest, SlotsFillTheBlocksOfASlab) {
  EXPECT_EQ(Slabs::SlabBytes(4096), kGranule);
  EXPECT_EQ(Slabs::SlabBytes(kGranule / 4), kGranule);
  EXPECT_EQ(Slabs::SlabBytes(768 << 10), 2 * kGranule) << "five slots";
  for (uint64_t bytes = 512; bytes < Slabs::kMaxBytes; bytes += 512) {
    const uint64_t slab = Slabs::SlabBytes(bytes), slot = Slabs::SlotBytes(bytes);
    EXPECT_EQ(slab % kGranule, 0u);
    EXPECT_LE(slab % slot * 9, slab) << bytes;
    EXPECT_LE(slab / slot, 4096u);
  }
}

TEST_F(SlabTest, AllocationsDoNotOverlapAndShareSlabs) {
  std::set<uint64_t> starts;
  for (int i = 0; i < 1000; ++i) starts.insert(Take(4096));
  EXPECT_EQ(starts.size(), 1000u);
  uint64_t last = 0;
  for (uint64_t start : starts) {
    EXPECT_GE(start, last);
    last = start + 4096;
  }
  EXPECT_EQ(mapped_, 2u);  // 512 a slab
}

TEST_F(SlabTest, TheRangeIsWhatTheProgramAskedForNotTheSlot) {
  const uint64_t address = Take(5000);
  uint64_t start = 0, bytes = 0;
  ASSERT_TRUE(slabs_->Range(*tracker_->Find(address), address + 4999, &start, &bytes));
  EXPECT_EQ(start, address);
  EXPECT_EQ(bytes, 5000u);
  EXPECT_FALSE(slabs_->Range(*tracker_->Find(address), address + 5000, &start, &bytes));
}

TEST_F(SlabTest, OnlyTheStartOfALiveAllocationCanBeGivenBackAndOnlyOnce) {
  const uint64_t address = Take(4096), other = Take(4096);
  EXPECT_FALSE(Give(address + 512));
  EXPECT_TRUE(Give(address));
  EXPECT_FALSE(Give(address));
  EXPECT_EQ(emptied_, 0);
  EXPECT_TRUE(Give(other));
  EXPECT_EQ(emptied_, 1);
}

TEST_F(SlabTest, AFullSlabIsUsedAgainAfterAFree) {
  std::vector<uint64_t> all;
  for (int i = 0; i < 512; ++i) all.push_back(Take(4096));
  EXPECT_EQ(mapped_, 1u);
  EXPECT_TRUE(Give(all[77]));
  EXPECT_EQ(Take(4096), all[77]);
  EXPECT_EQ(mapped_, 1u);
}

TEST_F(SlabTest, DevicesAndContextsDoNotShareSlabs) {
  Take(4096);
  EXPECT_EQ(slabs_->Take(4096, 1, kContext), 0u);
  EXPECT_EQ(slabs_->Take(4096, 0, reinterpret_cast<CUcontext>(0x20)), 0u);
}

// Contexts come back with the same handle (a primary one that is reset), their memory does not.
TEST_F(SlabTest, ASlabThatGoesWithItsContextServesNobodyAnyMore) {
  const uint64_t address = Take(4096);
  slabs_->Forget(tracker_->Find(address));
  EXPECT_EQ(slabs_->Take(4096, 0, kContext), 0u);
  for (int i = 0; i < 512; ++i) Take(4096);  // a full one is in no list
  slabs_->Forget(tracker_->Find(kBase + kGranule));
  EXPECT_EQ(slabs_->Take(4096, 0, kContext), 0u);
}

}  // namespace
}  // namespace atp::shim
