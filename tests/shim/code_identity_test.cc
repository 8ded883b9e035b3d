// SPDX-License-Identifier: Apache-2.0
#include "shim/code_identity.h"

#include <elf.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <string>

namespace atp::shim {
namespace {

TEST(CodeIdentity, TextCountsToItsEnd) {
  EXPECT_EQ(HashOfImage(".version 8.0 A"), HashOfImage(std::string(".version 8.0 A").c_str()));
  EXPECT_NE(HashOfImage(".version 8.0 A"), HashOfImage(".version 8.0 B"));
  EXPECT_NE(HashOfImage(".version 8.0"), HashOfImage(".version 8.0 "));
}

TEST(CodeIdentity, MachineCodeCountsToTheEndOfItsTables) {
  std::string image(4096, '\0');
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_shoff = 2048;
  header.e_shentsize = 64;
  header.e_shnum = 2;
  std::memcpy(image.data(), &header, sizeof header);
  const uint64_t before = HashOfImage(image.data());
  image[2048 + 128] = 1;  // behind the end
  EXPECT_EQ(HashOfImage(image.data()), before);
  image[2047] = 1;
  EXPECT_NE(HashOfImage(image.data()), before);
}

TEST(CodeIdentity, LargeImagesAreSampledFromBeginningToEnd) {
  std::string text = ".version 8.0" + std::string(8u << 20, 'x');
  const uint64_t before = HashOfImage(text.c_str());
  EXPECT_EQ(HashOfImage(text.c_str()), before);
  text.back() = 'y';
  EXPECT_NE(HashOfImage(text.c_str()), before);
}

TEST(CodeIdentity, AFileIsItsBytes) {
  const std::string file = testing::TempDir() + "code_identity.ptx";
  const std::string text = ".version 8.0 A";
  std::ofstream(file) << text;
  EXPECT_EQ(HashOfImageFile(file.c_str()), HashOfImage(text.c_str()));
  EXPECT_EQ(HashOfImageFile((file + ".not").c_str()), 0u);
}

TEST(CodeIdentity, WhatWasLoadedIsListedOnceInOrder) {
  RememberCode(reinterpret_cast<void*>(0x10), 30);
  RememberCode(reinterpret_cast<void*>(0x20), 20);
  RememberCode(reinterpret_cast<void*>(0x30), 30);
  EXPECT_EQ(CodeOf(reinterpret_cast<void*>(0x20)), 20u);
  EXPECT_EQ(CodeOf(reinterpret_cast<void*>(0x40)), 0u);
  const std::vector<uint64_t> loaded = LoadedCode();
  EXPECT_TRUE(std::is_sorted(loaded.begin(), loaded.end()));
  EXPECT_EQ(std::count(loaded.begin(), loaded.end(), 30u), 1);
}

}  // namespace
}  // namespace atp::shim
