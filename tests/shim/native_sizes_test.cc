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
