// SPDX-License-Identifier: Apache-2.0
#include "shim/observation.h"

#include <gtest/gtest.h>

#include "shim/on_copy.h"

namespace atp::shim {
namespace {

constexpr uint64_t kBase = 0x300000000000;

class ObservationTest : public testing::Test {
 protected:
  ObservationTest() {
    for (uint64_t i = 0; i < 2; ++i) {
      records_[i] = g_tracker.Insert(kBase + 4 * i * kGranule, 3 << 20, 2 * kGranule, nullptr, 0);
    }
  }
  ~ObservationTest() override {
    for (Record* record : records_) g_tracker.Remove(record);
  }
  static uint64_t Signature(uint64_t identity, std::initializer_list<uint64_t> addresses) {
    Observation observation(identity, nullptr, nullptr, false);
    for (uint64_t address : addresses) observation.Touch(address, 0, true, true);
    return observation.signature();
  }
  Record* records_[2];
};

TEST_F(ObservationTest, OnlyAddressesInMemoryOfOursAreTouches) {
  Observation observation(1, nullptr, nullptr, false);
  observation.Touch(kBase + 100, 0, true, true);
  observation.Touch(7, 0, true, true);
  observation.Touch(kBase + 3 * kGranule, 0, true, true);
  EXPECT_EQ(observation.touch_count(), 1u);
}

TEST_F(ObservationTest, TheSignatureTellsFunctionsAllocationsAndGranulesApart) {
  const uint64_t first = kBase, second = kBase + 4 * kGranule;
  EXPECT_EQ(Signature(1, {first, second}), Signature(1, {first, second}));
  EXPECT_NE(Signature(1, {first, second}), Signature(1, {second, first}));
  EXPECT_NE(Signature(1, {first}), Signature(2, {first}));
  EXPECT_NE(Signature(1, {first}), Signature(1, {first + kGranule}));
}

// A program that walks through a buffer, a row a step, repeats all the same.
TEST_F(ObservationTest, APointerThatWalksWithinAGranuleIsTheSameTouch) {
  EXPECT_EQ(Signature(1, {kBase}), Signature(1, {kBase + 4096}));
}

TEST_F(ObservationTest, ScalarsAreNotPartOfTheSignature) {
  EXPECT_EQ(Signature(1, {kBase, 17}), Signature(1, {kBase, 18}));
}

TEST_F(ObservationTest, AScanOfManyWordsTellsTheSameThingsApart) {
  const auto scanned = [](std::initializer_list<uint64_t> words) {
    Observation observation(1, nullptr, nullptr, false);
    {
      Observation::Scan scan(&observation);
      for (uint64_t word : words) scan.Touch(word, true, false);
    }
    return observation.signature();
  };
  const uint64_t first = kBase, second = kBase + 4 * kGranule;
  EXPECT_EQ(scanned({first, 17, second}), scanned({first + 8, 18, second}));
  EXPECT_NE(scanned({first, second}), scanned({second, first}));
  EXPECT_NE(scanned({first}), scanned({first, first}));
  EXPECT_NE(scanned({first}), scanned({first + kGranule}));
}

TEST_F(ObservationTest, ScansAddToWhatIsThereAndKeepWhatFits) {
  Observation observation(1, nullptr, nullptr, false);
  observation.Touch(kBase, 100, true, true);
  const uint64_t before = observation.signature();
  {
    Observation::Scan scan(&observation);
    for (uint64_t i = 0; i < Observation::kMaxTouches + 5; ++i)
      scan.Touch(kBase + 8 * i, true, false);
  }
  EXPECT_NE(observation.signature(), before);
  EXPECT_EQ(observation.touch_count(), Observation::kMaxTouches);
  EXPECT_EQ(observation.dropped(), 6u);
  EXPECT_EQ(observation.touches()[0].bytes, 100u);
  EXPECT_EQ(observation.touches()[2].offset, 8u);
  EXPECT_TRUE(observation.touches()[2].reads && !observation.touches()[2].writes);
}

TEST_F(ObservationTest, AllocationsAreNamedOnceAWayHoweverManyPointersThereAre) {
  Observation observation(1, nullptr, nullptr, false);
  {
    Observation::Scan scan(&observation);
    for (uint64_t i = 0; i < 100; ++i) {
      scan.Touch(kBase + 8 * i, true, false);
      scan.Touch(kBase + 4 * kGranule + 8 * i, true, i == 50);
    }
  }
  ASSERT_EQ(observation.uses().size(), 3u);
  EXPECT_EQ(observation.uses()[0].allocation, records_[0]);
  EXPECT_FALSE(observation.uses()[0].writes);
  EXPECT_EQ(observation.uses()[1].allocation, records_[1]);
  EXPECT_FALSE(observation.uses()[1].writes);
  EXPECT_EQ(observation.uses()[2].allocation, records_[1]);
  EXPECT_TRUE(observation.uses()[2].writes);
}

TEST_F(ObservationTest, OfVeryManyAllocationsNoneIsNamed) {
  std::vector<Record*> many;
  for (uint64_t i = 0; i < 100; ++i) {
    many.push_back(g_tracker.Insert(kBase + (100 + i) * kGranule, 1, kGranule, nullptr, 0));
  }
  Observation observation(1, nullptr, nullptr, false);
  {
    Observation::Scan scan(&observation);
    for (Record* record : many) scan.Touch(record->address, true, true);
  }
  EXPECT_EQ(observation.touch_count(), many.size());
  EXPECT_TRUE(observation.uses().empty());
  for (Record* record : many) g_tracker.Remove(record);
}

TEST_F(ObservationTest, MoreTouchesThanFitAreCountedAndStillPartOfTheSignature) {
  Observation observation(1, nullptr, nullptr, false);
  for (uint64_t i = 0; i < Observation::kMaxTouches + 5; ++i) {
    observation.Touch(kBase + 8 * i, 0, true, true);
  }
  EXPECT_EQ(observation.touch_count(), Observation::kMaxTouches);
  EXPECT_EQ(observation.dropped(), 5u);
}

TEST(CopySides, ABoxRunsFromItsFirstToItsLastByte) {
  CUDA_MEMCPY3D copy = {};
  copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = 0x10000;
  copy.srcPitch = 512;
  copy.srcHeight = 10;
  copy.srcXInBytes = 16;
  copy.srcY = 2;
  copy.srcZ = 1;
  copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
  copy.WidthInBytes = 100;
  copy.Height = 3;
  copy.Depth = 2;
  const Sides<CUDA_MEMCPY3D> sides(&copy);
  EXPECT_EQ(sides.from.address, 0x10000u + 512 * 10 + 2 * 512 + 16);
  EXPECT_EQ(sides.from.bytes, 512u * 10 + 2 * 512 + 100);
  EXPECT_EQ(sides.to.address, 0u);
}

TEST(CopySides, AZeroPitchMeansRowsWithoutGaps) {
  CUDA_MEMCPY2D copy = {};
  copy.srcMemoryType = CU_MEMORYTYPE_UNIFIED;
  copy.srcDevice = 0x10000;
  copy.dstMemoryType = CU_MEMORYTYPE_HOST;
  copy.dstHost = reinterpret_cast<void*>(0x20000);
  copy.WidthInBytes = 64;
  copy.Height = 4;
  const Sides<CUDA_MEMCPY2D> sides(&copy);
  EXPECT_EQ(sides.from.bytes, 256u);
  EXPECT_EQ(sides.to.address, 0x20000u);
}

}  // namespace
}  // namespace atp::shim
