// SPDX-License-Identifier: Apache-2.0
// Literals of PTX: how they are written, and the bits that they stand for.
#include <gtest/gtest.h>

#include <cstring>

#include "ptx/parser.h"

namespace atp::ptx {
namespace {

uint64_t BitsOf(double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

TEST(Literals, DecimalNumbersWithAPointOrAnExponentAreDoubles) {
  for (const auto& [text, value] : {std::pair{"1.5", 1.5},
                                    {"-0.25", -0.25},
                                    {"2e3", 2000.0},
                                    {"1.0E-7", 1.0e-7},
                                    {"0.1", 0.1}}) {
    Operand operand;
    ASSERT_TRUE(ParseLiteral(text, &operand)) << text;
    EXPECT_EQ(operand.kind, Operand::Kind::kFloat64) << text;
    EXPECT_EQ(operand.bits, BitsOf(value)) << text;
  }
}

TEST(Literals, BitsOfFloatsAreTakenAsTheyAre) {
  Operand operand;
  ASSERT_TRUE(ParseLiteral("0f3F800000", &operand));
  EXPECT_EQ(operand.kind, Operand::Kind::kFloat32);
  EXPECT_EQ(operand.bits, 0x3F800000u);
  ASSERT_TRUE(ParseLiteral("0d3FF0000000000000", &operand));
  EXPECT_EQ(operand.kind, Operand::Kind::kFloat64);
  EXPECT_EQ(operand.bits, BitsOf(1));
}

TEST(Literals, WhatIsNoNumberIsRefused) {
  for (const char* text :
       {"", "+1.5", " 1.5", "1.5 ", "nan", "inf", "1.5x", "1e999", ".", "e5", "0f3F80"}) {
    Operand operand;
    EXPECT_FALSE(ParseLiteral(text, &operand)) << text;
  }
}

}  // namespace
}  // namespace atp::ptx
