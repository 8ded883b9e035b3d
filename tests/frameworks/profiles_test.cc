// SPDX-License-Identifier: Apache-2.0
#include "frameworks/profiles.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace atp::frameworks {
namespace {

TEST(Profiles, EachHasAKeyOfItsOwnAndAWayToBeRecognised) {
  std::set<std::string> keys;
  for (const Profile& profile : Profiles()) {
    EXPECT_TRUE(keys.insert(profile.key).second) << profile.key;
    EXPECT_TRUE(profile.module != nullptr || profile.program != nullptr) << profile.key;
    EXPECT_TRUE(IsFrameworkSetting(profile.key)) << profile.key;
    EXPECT_TRUE(!profile.if_installed || profile.module != nullptr) << profile.key;
  }
}

TEST(Profiles, NoDefaultChangesPyTorch) {
  for (const Profile& profile : Profiles()) {
    const bool torch = profile.module != nullptr && std::string(profile.module) == "torch";
    const bool sets = profile.set[0].name != nullptr;
    EXPECT_TRUE(!torch || !sets || profile.only_if_named) << profile.key;
  }
}

TEST(Profiles, ASettingIsAutoOffOrAListOfKeys) {
  for (const char* good : {"auto", "off", "0", "no", "", "torch-async", "jax,torch-async"}) {
    EXPECT_TRUE(IsFrameworkSetting(good)) << good;
  }
  for (const char* bad : {"torchasync", "jax,", ",jax", "jax;torch", "JAX"}) {
    EXPECT_FALSE(IsFrameworkSetting(bad)) << bad;
  }
}

TEST(Profiles, AListNamesWhatItHolds) {
  const Profile& first = Profiles()[0];
  const Profile& second = Profiles()[1];
  const std::string both = std::string(first.key) + "," + second.key;
  EXPECT_TRUE(Names(both.c_str(), first));
  EXPECT_TRUE(Names(both.c_str(), second));
  EXPECT_FALSE(Names(first.key, second));
}

}  // namespace
}  // namespace atp::frameworks
