// SPDX-License-Identifier: Apache-2.0
#include "cli/driver_probe.h"

#include <gtest/gtest.h>

namespace atp::cli {
namespace {

TEST(DriverProbe, TellsTheSizeOfEachCard) {
  const DriverProbe probe = ProbeDriver(FAKE_DRIVER, {{"FAKE_CARDS", "2"}});
  EXPECT_TRUE(probe.loaded);
  EXPECT_EQ(probe.status, 0);
  ASSERT_EQ(probe.cards.size(), 2u);
  EXPECT_EQ(probe.cards[0].bytes, uint64_t{1} << 30);
  EXPECT_EQ(probe.cards[1].bytes, uint64_t{1} << 31);
}

TEST(DriverProbe, TellsVersionNameAndWhatACardCanDo) {
  const DriverProbe probe = ProbeDriver(FAKE_DRIVER, {{"FAKE_COHERENT", "1"}});
  EXPECT_EQ(probe.version, 12040);
  ASSERT_EQ(probe.cards.size(), 1u);
  EXPECT_EQ(probe.cards[0].name, "Fake card");
  EXPECT_EQ(probe.cards[0].major * 10 + probe.cards[0].minor, 80);
  EXPECT_TRUE(probe.cards[0].managed && probe.cards[0].concurrent && probe.cards[0].coherent);
}

TEST(DriverProbe, PassesOnWhyADriverDoesNotStart) {
  const DriverProbe probe = ProbeDriver(FAKE_DRIVER, {{"FAKE_CUINIT", "100"}});
  EXPECT_TRUE(probe.loaded);
  EXPECT_EQ(probe.status, 100);
  EXPECT_TRUE(probe.cards.empty());
}

TEST(DriverProbe, ALibraryThatIsNoDriverIsNotLoaded) {
  EXPECT_FALSE(ProbeDriver("libnonexistent.so", {}).loaded);
  EXPECT_FALSE(ProbeDriver("libm.so.6", {}).loaded);
}

}  // namespace
}  // namespace atp::cli
