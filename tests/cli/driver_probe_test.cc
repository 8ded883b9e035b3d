// SPDX-License-Identifier: Apache-2.0
#include "cli/driver_probe.h"

#include <gtest/gtest.h>

namespace atp::cli {
namespace {

TEST(DriverProbe, TellsTheSizeOfEachCard) {
  const DriverProbe probe = ProbeDriver(FAKE_DRIVER, {{"FAKE_CARDS", "2"}});
  EXPECT_TRUE(probe.loaded);
  EXPECT_EQ(probe.status, 0);
  EXPECT_EQ(probe.card_bytes, (std::vector<uint64_t>{uint64_t{1} << 30, uint64_t{1} << 31}));
}

TEST(DriverProbe, PassesOnWhyADriverDoesNotStart) {
  const DriverProbe probe = ProbeDriver(FAKE_DRIVER, {{"FAKE_CUINIT", "100"}});
  EXPECT_TRUE(probe.loaded);
  EXPECT_EQ(probe.status, 100);
  EXPECT_TRUE(probe.card_bytes.empty());
}

TEST(DriverProbe, ALibraryThatIsNoDriverIsNotLoaded) {
  EXPECT_FALSE(ProbeDriver("libnonexistent.so", {}).loaded);
  EXPECT_FALSE(ProbeDriver("libm.so.6", {}).loaded);
}

}  // namespace
}  // namespace atp::cli
