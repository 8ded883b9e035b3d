// SPDX-License-Identifier: Apache-2.0
// Which launches are proven to be repeatable, by kernels as nvcc compiles them (purity.cu and
// reach.cu).
#include "ptx/purity.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <sstream>

#include "tests/ptx/arguments.h"

namespace atp::ptx {
namespace {

constexpr uint64_t kPlenty = 10'000'000;
constexpr uint64_t kA = 0x7f0000000000, kB = 0x7f0010000000, kC = 0x7f0020000000;

class Purity : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    Read("/reach.ptx", &reach_);
    Read("/purity.ptx", &purity_);
  }
  static void Read(const char* name, ParsedModule* module) {
    std::ifstream file(std::string(ATP_PTX_DIR) + name);
    std::stringstream text;
    text << file.rdbuf();
    std::string error;
    ASSERT_TRUE(ParseModule(
        text.str(), [](std::string_view) { return true; }, module, &error))
        << error;
  }

  static LaunchProof Prove(const char* kernel, const Geometry& geometry, const Arguments& arguments,
                           uint64_t budget = kPlenty) {
    const ParsedModule& module = purity_.function_by_name.count(kernel) != 0 ? purity_ : reach_;
    LaunchProof proof;
    const auto pure =
        PureKernel::Make(module, *module.functions[module.function_by_name.at(kernel)], &proof.why);
    if (pure == nullptr) return proof;
    return pure->Prove(geometry, arguments.bytes(), arguments.pointers(), budget);
  }
  // As text: for each pointer what is read and written, "r0..64 w0..64 -"; or why not.
  static std::string Uses(const char* kernel, const Geometry& geometry, const Arguments& arguments,
                          uint64_t budget = kPlenty) {
    const LaunchProof proof = Prove(kernel, geometry, arguments, budget);
    if (!proof.proven()) return proof.why;
    std::string text;
    for (const PointerUse& use : proof.uses) {
      if (!text.empty()) text += ' ';
      if (use.reads()) {
        text += 'r' + std::to_string(use.read_begin) + ".." + std::to_string(use.read_end);
      }
      if (use.writes()) {
        text += 'w' + std::to_string(use.write_begin) + ".." + std::to_string(use.write_end);
      }
      if (!use.reads() && !use.writes()) text += '-';
    }
    return text;
  }
  static ParsedModule reach_, purity_;
};
ParsedModule Purity::reach_, Purity::purity_;

Arguments Two() { return Arguments().Pointer(kA).Pointer(kB); }
Arguments Three() { return Two().Pointer(kC); }
const Geometry kOneBlock = {{1, 1, 1}, {64, 1, 1}};

TEST_F(Purity, AGuardMakesTheEndExact) {
  for (const int n : {1, 31, 250, 256, 999, 1000}) {
    const std::string bytes = std::to_string(4 * n);
    EXPECT_EQ(Uses("Add", {{4, 1, 1}, {250, 1, 1}}, Three().Add(n)),
              "r0.." + bytes + " r0.." + bytes + " w0.." + bytes);
  }
}

TEST_F(Purity, AGridThatStridesCoversTheCountOnce) {
  EXPECT_EQ(Uses("GridStride", {{8, 1, 1}, {128, 1, 1}}, Two().Add(size_t{10000})),
            "r0..160000 w0..160000");
}

TEST_F(Purity, AMatrixProductInTilesIsProven) {
  EXPECT_EQ(Uses("Multiply", {{3, 2, 1}, {16, 16, 1}}, Three().Add(32).Add(48).Add(64)),
            "r0..8192 r0..12288 w0..6144");
}

TEST_F(Purity, RowsAndColumnsByDivisionAreFollowed) {
  EXPECT_EQ(Uses("Pool", {{4, 1, 1}, {256, 1, 1}}, Two().Add(60).Add(900)), "r0..14400 w0..3600");
}

TEST_F(Purity, SharedMemoryAndShufflesOfABlockAreItsOwn) {
  EXPECT_EQ(Uses("Softmax", {{7, 1, 1}, {128, 1, 1}}, Two().Add(1000)), "r0..28000 w0..28000");
}

TEST_F(Purity, ATransposedMatrixIsOneRange) {
  EXPECT_EQ(Uses("Transpose", {{4, 3, 1}, {16, 16, 1}}, Two().Add(50).Add(40)),
            "r0..8000 w0..8000");
}

TEST_F(Purity, BothOutputsAreKnown) {
  EXPECT_EQ(Uses("Halves", {{4, 1, 1}, {64, 1, 1}}, Three().Add(256)),
            "r0..1024 w0..1024 w0..1024");
}

TEST_F(Purity, RandomNumbersFromArgumentsArePure) {
  EXPECT_EQ(Uses("Dropout", {{4, 1, 1}, {64, 1, 1}}, Two().Add(7u).Add(256)), "r0..1024 w0..1024");
}

TEST_F(Purity, APointerMayBeComparedWithNull) {
  EXPECT_EQ(Uses("AddBias", {{4, 1, 1}, {64, 1, 1}}, Three().Add(256)),
            "r0..1024 r0..1024 w0..1024");
}

TEST_F(Purity, AnOutputMayBeginBesidesItsPointer) {
  EXPECT_EQ(Uses("Append", {{2, 1, 1}, {128, 1, 1}}, Two().Add(100).Add(256)),
            "r0..1024 w102400..103424");
}

TEST_F(Purity, TheLaneIsFollowedInRowsThatAreNoWholeWarps) {
  EXPECT_EQ(Uses("Columns", {{4, 1, 1}, {256, 1, 1}}, Two().Add(512)), "r0..4096 w0..4096");
}

TEST_F(Purity, ValuesOfPointersDoNotChangeTheProof) {
  const LaunchProof one = Prove("Softmax", {{7, 1, 1}, {128, 1, 1}}, Two().Add(1000));
  const LaunchProof other =
      Prove("Softmax", {{7, 1, 1}, {128, 1, 1}}, Arguments().Pointer(64).Pointer(52).Add(1000));
  ASSERT_TRUE(one.proven() && other.proven());
  EXPECT_EQ(one.uses[1].write_end, other.uses[1].write_end);
  EXPECT_EQ(one.steps, other.steps);
}

TEST_F(Purity, WhatHangsOnAPointersBitsIsNotProven) {
  EXPECT_NE(Prove("WhereAligned", {{4, 1, 1}, {64, 1, 1}}, Two().Add(256)).why, "");
}

TEST_F(Purity, InPlaceIsReadAndWritten) {
  const Arguments arguments = Arguments().Pointer(kA).Add(256);
  EXPECT_EQ(Uses("InPlace", {{4, 1, 1}, {64, 1, 1}}, arguments), "r0..1024w0..1024");
  const LaunchProof proof = Prove("InPlace", {{4, 1, 1}, {64, 1, 1}}, arguments);
  EXPECT_FALSE(OutputsApart(proof, arguments.bytes(), arguments.pointers()));
}

TEST_F(Purity, OutputsMustLieApartFromInputsAndFromEachOther) {
  const auto apart = [](uint64_t in, uint64_t low, uint64_t high) {
    const Arguments arguments = Arguments().Pointer(in).Pointer(low).Pointer(high).Add(256);
    const LaunchProof proof = Prove("Halves", {{4, 1, 1}, {64, 1, 1}}, arguments);
    return proof.proven() && OutputsApart(proof, arguments.bytes(), arguments.pointers());
  };
  EXPECT_TRUE(apart(kA, kA + 1024, kA + 2048));
  EXPECT_TRUE(apart(kA, kA - 1024, kA + 1024));
  EXPECT_FALSE(apart(kA, kA + 1020, kA + 4096));
  EXPECT_FALSE(apart(kA, kA - 1020, kA + 4096));
  EXPECT_FALSE(apart(kA, kA + 4096, kA + 4096 + 1020));
  EXPECT_FALSE(apart(kA, kA + 4096, kA + 4096));
}

TEST_F(Purity, WhatIsWrittenMustHaveNoGapsAndNoByteTwice) {
  EXPECT_EQ(Uses("EverySecond", {{4, 1, 1}, {64, 1, 1}}, Two().Add(256)),
            "what is written has gaps");
  EXPECT_EQ(Uses("AllToOne", kOneBlock, Two()), "a byte is written twice");
}

TEST_F(Purity, WhatDataDecideIsNotProven) {
  EXPECT_NE(Prove("OnlyPositive", {{4, 1, 1}, {64, 1, 1}}, Two().Add(256)).why, "");
  EXPECT_EQ(Uses("Scatter", kOneBlock, Three()), "an address hangs on data");
  EXPECT_EQ(Uses("Gather", {{10, 1, 1}, {64, 1, 1}}, Three().Add(64)), "an address hangs on data");
  EXPECT_NE(Prove("Maybe", {{2, 1, 1}, {256, 1, 1}},
                  Arguments().Pointer(kA).Pointer(kB).Pointer(kC).Pointer(kC + 4096).Add(512))
                .why,
            "");
}

TEST_F(Purity, StateOtherThanMemoryEndsIt) {
  const Arguments out = Arguments().Pointer(kA);
  EXPECT_EQ(Uses("Sum", kOneBlock, Two()).substr(0, 4), "has ");
  EXPECT_EQ(Uses("SumInShared", kOneBlock, Two()).substr(0, 4), "has ");
  EXPECT_NE(Prove("Clock", kOneBlock, out).why.find("clock"), std::string::npos);
  EXPECT_EQ(Uses("Volatile", kOneBlock, Two()).substr(0, 11), "has ld.vola");
  EXPECT_EQ(Uses("Fence", kOneBlock, Two()).substr(0, 4), "has ");
  EXPECT_NE(Prove("Print", kOneBlock, Two()).why, "");
  EXPECT_EQ(Uses("State", kOneBlock, Two()), "uses the variable state");
  EXPECT_EQ(Uses("Table", kOneBlock, Two()).substr(0, 12), "has ld.const");
  EXPECT_NE(Prove("Texture", kOneBlock, Arguments().Add(uint64_t{1}).Pointer(kA)).why, "");
  EXPECT_NE(Prove("Active", kOneBlock, out).why, "");
  EXPECT_NE(Prove("Calls", kOneBlock, Two()).why, "");
}

TEST_F(Purity, PointersFromMemoryAreNotFollowed) {
  EXPECT_EQ(Uses("Indirect", {{4, 1, 1}, {32, 1, 1}}, Three()), "an address hangs on data");
}

TEST_F(Purity, AnAddressThatIsNotSaidToBeAPointerIsNone) {
  const Arguments arguments = Arguments().Pointer(kA).Pointer(kB).Add(kC).Add(256);
  EXPECT_EQ(Uses("Add", {{4, 1, 1}, {64, 1, 1}}, arguments),
            "an address comes from no pointer among the parameters");
}

TEST_F(Purity, LargeLaunchesCostOneRunARow) {
  // 16 million threads.
  const LaunchProof proof = Prove("Add", {{1u << 14, 1, 1}, {1024, 1, 1}}, Three().Add(1 << 24));
  EXPECT_TRUE(proof.proven()) << proof.why;
  EXPECT_LT(proof.steps, uint64_t{40} << 14);
}

TEST_F(Purity, MoreStepsThanTheBudgetAreNoProof) {
  EXPECT_EQ(Uses("Add", {{4, 1, 1}, {250, 1, 1}}, Three().Add(1000), 20),
            "it takes too many steps");
}

}  // namespace
}  // namespace atp::ptx
