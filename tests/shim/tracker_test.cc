// SPDX-License-Identifier: Apache-2.0
#include "shim/tracker.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <random>
#include <set>
#include <thread>
#include <vector>

namespace atp::shim {
namespace {

constexpr uint64_t kBase = 0x7f0000000000;

class TrackerTest : public testing::Test {
 protected:
  Record* Insert(uint64_t granule, uint64_t granules = 1) {
    return tracker_->Insert(kBase + granule * kGranule, granules * kGranule - 1000,
                            granules * kGranule, nullptr, 0);
  }
  std::unique_ptr<Tracker> tracker_ = std::make_unique<Tracker>();
};

TEST_F(TrackerTest, FindsEveryAddressOfAnAllocationAndNoneOutside) {
  Record* record = Insert(4, 3);
  EXPECT_EQ(tracker_->Find(record->address), record);
  EXPECT_EQ(tracker_->Find(record->address + 3 * kGranule - 1), record);
  EXPECT_EQ(tracker_->Find(record->address - 1), nullptr);
  EXPECT_EQ(tracker_->Find(record->address + 3 * kGranule), nullptr);
}

TEST_F(TrackerTest, AnAllocationThatGrowsIsFoundWhereItGrew) {
  Record* record = Insert(4, 3);
  const uint64_t id = record->id;
  ASSERT_TRUE(tracker_->Grow(record, 5 * kGranule));
  EXPECT_EQ(record->id, id);
  EXPECT_EQ(record->bytes, 5 * kGranule);
  EXPECT_EQ(tracker_->Find(record->address + 5 * kGranule - 1), record);
  EXPECT_EQ(tracker_->Find(record->address + 5 * kGranule), nullptr);
  tracker_->Remove(record);
  EXPECT_EQ(tracker_->Find(kBase + 8 * kGranule), nullptr);
}

TEST_F(TrackerTest, GrowthBeyondWhatCanBeAddressedLeavesItAsItWas) {
  Record* record =
      tracker_->Insert((1ull << 47) - 2 * kGranule, 2 * kGranule, 2 * kGranule, nullptr, 0);
  ASSERT_NE(record, nullptr);
  EXPECT_FALSE(tracker_->Grow(record, 4 * kGranule));
  EXPECT_EQ(record->mapped_bytes, 2 * kGranule);
  EXPECT_EQ(tracker_->Find((1ull << 47) - 1), record);
}

TEST_F(TrackerTest, NumbersThatAreNoAddressesAreNotFound) {
  Insert(0);
  EXPECT_EQ(tracker_->Find(0), nullptr);
  EXPECT_EQ(tracker_->Find(1), nullptr);
  EXPECT_EQ(tracker_->Find(UINT64_MAX), nullptr);
  EXPECT_EQ(tracker_->Find(1ull << 47), nullptr);
}

TEST_F(TrackerTest, AFinderOfManyFindsWhatFindDoes) {
  constexpr uint64_t kFar = 1u << 14;  // granules: in another table
  Record *near = Insert(4, 3), *far = Insert(kFar);
  Tracker::Finder finder(*tracker_);
  for (const uint64_t address :
       {near->address, uint64_t{0}, uint64_t{12345}, near->address + 3 * kGranule, far->address,
        near->address + 1, ~uint64_t{0}, uint64_t{1} << 47, far->address + kGranule,
        near->address + 3 * kGranule - 1, kBase + 2 * kFar * kGranule}) {
    EXPECT_EQ(finder.Find(address), tracker_->Find(address)) << address;
  }
}

TEST_F(TrackerTest, ARemovedAllocationIsNotFoundAndItsRecordStaysReadable) {
  Record* record = Insert(1);
  const uint64_t id = record->id;
  tracker_->Remove(record);
  EXPECT_EQ(tracker_->Find(kBase + kGranule), nullptr);
  for (uint64_t i = 0; i + 1 < Tracker::kQuarantine; ++i) tracker_->Remove(Insert(2));
  EXPECT_EQ(record->id, id);
}

TEST_F(TrackerTest, ARecordThatIsUsedAgainHasNoHistory) {
  Record* record = Insert(1);
  record->shown = record->read_mostly = true;
  record->read_mostly_broken = 2;
  tracker_->Remove(record);
  Record* again = nullptr;
  for (uint64_t i = 0; i <= 2 * Tracker::kQuarantine && again != record; ++i) {
    tracker_->Remove(Insert(2));
    again = Insert(3);
    tracker_->Remove(again);
  }
  ASSERT_EQ(again, record);
  EXPECT_FALSE(again->shown || again->read_mostly);
  EXPECT_EQ(again->read_mostly_broken, 0);
}

TEST_F(TrackerTest, EachIsVisitedOnceByAddressWhateverItsSize) {
  Record* records[] = {Insert(2, 3), Insert(9000), Insert(20000, 9000)};  // in several tables
  std::vector<Record*> seen;
  tracker_->ForEach(nullptr, [&](Record* record) { seen.push_back(record); });
  EXPECT_EQ(seen, std::vector<Record*>(std::begin(records), std::end(records)));
}

TEST_F(TrackerTest, TheLowestFreeSlotIsTakenHoweverManyAreLive) {
  std::vector<Record*> records;
  for (uint64_t i = 0; i < 20000; ++i) records.push_back(Insert(i));
  for (uint32_t slot : {0u, 63u, 64u, 4095u, 4096u, 19999u}) {
    tracker_->Remove(records[slot]);
    Record* again = Insert(30000 + slot);
    EXPECT_EQ(again->slot, slot);
  }
}

TEST_F(TrackerTest, IdentitiesAreNeverReused) {
  std::set<uint64_t> ids;
  for (int i = 0; i < 5000; ++i) {
    Record* record = Insert(7);
    EXPECT_TRUE(ids.insert(record->id).second);
    tracker_->Remove(record);
  }
}

TEST_F(TrackerTest, TheLowestFreeSlotComesFirstSoThatAPeriodGetsTheSameSlotsEachTime) {
  Insert(0);
  std::vector<std::vector<uint32_t>> slots;
  for (int period = 0; period < 3; ++period) {
    std::vector<Record*> records;
    for (uint64_t i = 1; i <= 100; ++i) records.push_back(Insert(i));
    slots.emplace_back();
    for (Record* record : records) slots.back().push_back(record->slot);
    std::shuffle(records.begin(), records.end(), std::mt19937(static_cast<unsigned>(period)));
    for (Record* record : records) tracker_->Remove(record);
  }
  EXPECT_EQ(slots[0], slots[1]);
  EXPECT_EQ(slots[0], slots[2]);
}

TEST_F(TrackerTest, RestoreMakesARefusedFreeFindableAgain) {
  Record* record = Insert(3, 2);
  tracker_->Remove(record);
  ASSERT_TRUE(tracker_->Restore(record));
  ASSERT_NE(tracker_->Find(kBase + 4 * kGranule), nullptr);
  EXPECT_EQ(tracker_->Find(kBase + 4 * kGranule)->bytes, 2 * kGranule - 1000);
}

TEST_F(TrackerTest, AnAddressBeyondTheTableIsRefusedAndLeavesNothingBehind) {
  EXPECT_EQ(tracker_->Insert(1ull << 47, kGranule, kGranule, nullptr, 0), nullptr);
  EXPECT_EQ(tracker_->live(), 0u);
  EXPECT_NE(Insert(1), nullptr);
}

TEST_F(TrackerTest, AgreesWithASimpleModelOverRandomSequences) {
  std::mt19937 random(1);
  std::map<uint64_t, Record*> model;  // first granule -> record
  for (int step = 0; step < 20000; ++step) {
    const uint64_t granule = random() % 512 * 4;
    if (auto found = model.find(granule); found != model.end()) {
      tracker_->Remove(found->second);
      model.erase(found);
    } else {
      model[granule] = Insert(granule, 1 + random() % 4);
    }
    const uint64_t probe = kBase + random() % (2048 * kGranule);
    const Record* expected = nullptr;
    auto next = model.upper_bound((probe - kBase) / kGranule);
    if (next != model.begin()) {
      Record* before = std::prev(next)->second;
      if (probe < before->address + before->mapped_bytes) expected = before;
    }
    ASSERT_EQ(tracker_->Find(probe), expected) << "step " << step;
  }
  EXPECT_EQ(tracker_->live(), model.size());
}

TEST_F(TrackerTest, ForEachVisitsTheRecordsOfOneContext) {
  auto* mine = reinterpret_cast<CUcontext>(0x10);
  auto* other = reinterpret_cast<CUcontext>(0x20);
  tracker_->Insert(kBase, 1, kGranule, mine, 0);
  tracker_->Insert(kBase + kGranule, 1, kGranule, other, 0);
  tracker_->Insert(kBase + 2 * kGranule, 1, kGranule, mine, 0);
  int visited = 0;
  tracker_->ForEach(mine, [&](Record* record) {
    EXPECT_EQ(record->context, mine);
    tracker_->Remove(record);
    ++visited;
  });
  EXPECT_EQ(visited, 2);
  EXPECT_EQ(tracker_->live(), 1u);
}

TEST_F(TrackerTest, ReadersNeverSeeForeignMemoryWhileAllocationsComeAndGo) {
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> rounds{0};
  std::thread reader([&] {
    for (; !stop.load(); ++rounds) {
      for (uint64_t granule = 0; granule < 64; ++granule) {
        const Record* record = tracker_->Find(kBase + granule * kGranule);
        // Either gone or a record of this tracker: its slot is small whatever its present use.
        ASSERT_LT(record != nullptr ? record->slot : 0, 64u);
      }
    }
  });
  std::mt19937 random(2);
  std::vector<Record*> live(64);
  for (int step = 0; step < 20000; ++step) {
    // A record may be looked at until kQuarantine later removals, however busy the machine is.
    if (step % (Tracker::kQuarantine / 2) == 0) {
      for (const uint64_t seen = rounds; rounds < seen + 2;) std::this_thread::yield();
    }
    Record*& record = live[random() % 64];
    if (record != nullptr) {
      tracker_->Remove(record);
      record = nullptr;
    } else {
      record = Insert(static_cast<uint64_t>(&record - live.data()));
    }
  }
  stop = true;
  reader.join();
}

}  // namespace
}  // namespace atp::shim
