// SPDX-License-Identifier: Apache-2.0
#include "shim/native_sizes.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <random>

namespace atp::shim {
namespace {

TEST(NativeSizes, AgreesWithAMapOverRandomSequences) {
  auto sizes = std::make_unique<NativeSizes>();
  std::map<uint64_t, uint64_t> model;
  std::mt19937_64 random(3);
  for (int step = 0; step < 200000; ++step) {
    const uint64_t address = 0x7f0000000000 + random() % 20000 * 512;
    NativeSizes::Entry entry;
    const bool known = sizes->Find(address, &entry);
    ASSERT_EQ(known, model.count(address) == 1) << "step " << step;
    if (known) {
      ASSERT_TRUE(sizes->Take(address, &entry));
      ASSERT_EQ(entry.bytes, model[address]);
      model.erase(address);
    } else {
      model[address] = static_cast<uint64_t>(step);
      ASSERT_TRUE(sizes->Insert({address, static_cast<uint64_t>(step), 0, false}));
    }
    ASSERT_EQ(sizes->size(), model.size());
  }
}

TEST(NativeSizes, HoldersAreToldByReasonAndCallerTheLargestFirst) {
  auto sizes = std::make_unique<NativeSizes>();
  uint64_t address = 0x1000;
  const auto hold = [&](uint64_t bytes, int device, WhyNative why, uintptr_t caller) {
    ASSERT_TRUE(sizes->Insert({address++, bytes, device, false, why, caller}));
  };
  for (int i = 0; i < 10; ++i) hold(5, 0, WhyNative::kSmall, 0);
  for (int i = 0; i < 3; ++i) hold(100, 0, WhyNative::kExporter, 7);
  hold(200, 0, WhyNative::kExporter, 8);
  hold(1000, 1, WhyNative::kExporter, 8);
  NativeSizes::Holder holders[4];
  ASSERT_EQ(sizes->Holders(0, holders, 4), 3u);
  EXPECT_EQ(holders[0].bytes, 300u);
  EXPECT_EQ(holders[0].caller, 7u);
  EXPECT_EQ(holders[0].count, 3u);
  EXPECT_EQ(holders[1].bytes, 200u);
  EXPECT_EQ(holders[2].why, WhyNative::kSmall);
  EXPECT_EQ(sizes->Holders(0, holders, 1), 1u);
  EXPECT_EQ(holders[0].bytes, 300u);
  for (uintptr_t caller = 1; caller < 200; ++caller) hold(1, 2, WhyNative::kExporter, caller);
  EXPECT_EQ(sizes->Holders(2, holders, 4), 4u);
  EXPECT_GT(holders[0].count, 100u) << "those too many to be told apart are counted as one";
}

TEST(NativeSizes, UnknownAndNullAddressesAreNotTaken) {
  auto sizes = std::make_unique<NativeSizes>();
  NativeSizes::Entry entry;
  EXPECT_FALSE(sizes->Take(0x1000, &entry));
  ASSERT_TRUE(sizes->Insert({0x1000, 5, 2, true}));
  EXPECT_FALSE(sizes->Take(0, &entry));
  ASSERT_TRUE(sizes->Take(0x1000, &entry));
  EXPECT_EQ(entry.device, 2);
  EXPECT_TRUE(entry.packed);
  EXPECT_FALSE(sizes->Take(0x1000, &entry));
}

}  // namespace
}  // namespace atp::shim
