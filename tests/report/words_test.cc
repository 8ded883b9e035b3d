// SPDX-License-Identifier: Apache-2.0
#include "report/words.h"

#include <gtest/gtest.h>

namespace atp::report {
namespace {

TEST(Words, NumbersHaveThreeDigitsAndAUnit) {
  EXPECT_EQ(SayBytes(2.1 * (1u << 30)), "2.10 GiB");
  EXPECT_EQ(SayBytes(11.14 * (1u << 20)), "11.1 MiB");
  EXPECT_EQ(SayBytes(0), "0");
  EXPECT_EQ(SaySeconds(0.0261), "26.1 ms");
  EXPECT_EQ(SaySeconds(0.09999999), "100 ms");
  EXPECT_EQ(SaySeconds(1e-10), "0");
  EXPECT_EQ(SayPercent(38, 100), "38 %");
  EXPECT_EQ(SayPercent(1, 80), "1.2 %");
  EXPECT_EQ(SayPercent(1, 1e6), "0 %");
  EXPECT_EQ(SayPercent(1, 0), "0 %");
  EXPECT_EQ(SayCount(1, "launch"), "1 launch");
  EXPECT_EQ(SayCount(2, "launch"), "2 launches");
}

TEST(Words, KernelsHaveTheNamesOfTheirAuthors) {
  EXPECT_EQ(SayKernel("Bump"), "Bump");
  EXPECT_EQ(SayKernel("_ZN7example10AdamUpdateEPfmN1a8AdamStepE"), "example::AdamUpdate");
  EXPECT_EQ(SayKernel("_ZN7example4GemmILb0ELb1EEEvPKfS2_Pfiii"), "example::Gemm<false, true>");
  EXPECT_EQ(SayKernel("_ZN12_GLOBAL__N_13RunEi"), "Run");
  EXPECT_EQ(SayKernel("_Z"), "_Z");
}

}  // namespace
}  // namespace atp::report
