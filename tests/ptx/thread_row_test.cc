// SPDX-License-Identifier: Apache-2.0
// Rows of threads compute what each of their threads computes.
#include "ptx/thread_row.h"

#include <gtest/gtest.h>

#include <random>

#include "ptx/reach_arithmetic.h"

namespace atp::ptx {
namespace {

constexpr ReachOp kOps[] = {
    ReachOp::kMov,     ReachOp::kAdd, ReachOp::kSub,   ReachOp::kMul,     ReachOp::kMulHi,
    ReachOp::kMulWide, ReachOp::kMad, ReachOp::kMadHi, ReachOp::kMadWide, ReachOp::kDiv,
    ReachOp::kRem,     ReachOp::kMin, ReachOp::kMax,   ReachOp::kAbs,     ReachOp::kNeg,
    ReachOp::kAnd,     ReachOp::kOr,  ReachOp::kXor,   ReachOp::kNot,     ReachOp::kShl,
    ReachOp::kShr,     ReachOp::kCvt, ReachOp::kBfe,   ReachOp::kBfi,     ReachOp::kLop3};

class Random {
 public:
  uint64_t Below(uint64_t end) { return engine_() % end; }
  // Small and large, also just below and above powers of two.
  uint64_t Bits() {
    const uint64_t small = Below(40), power = uint64_t{1} << Below(64);
    switch (Below(5)) {
      case 0:
        return small;
      case 1:
        return power + small - 20;
      case 2:
        return 0 - small;
      case 3:
        return power - 1;
      default:
        return engine_();
    }
  }
  RowValue Value(unsigned width, bool same) {
    RowValue value;
    value.bits = Cut(Bits(), width);
    if (!same) value.step = Below(3) == 0 ? static_cast<int64_t>(Bits()) : Signed(Below(9) - 4, 8);
    return value;
  }

 private:
  std::mt19937_64 engine_{20261201};
};

uint64_t InThread(const RowValue& value, uint64_t k, unsigned width) {
  return Cut(value.bits + static_cast<uint64_t>(value.step) * k, width);
}

// Widths as the instructions have them.
void Shape(ReachOp op, Random* random, ReachStep* step, unsigned widths[4]) {
  step->op = op;
  step->is_signed = random->Below(2) != 0;
  step->width = static_cast<uint8_t>(2u << random->Below(3));
  if (op == ReachOp::kMulWide || op == ReachOp::kMadWide) step->width /= 2;
  if (step->width < 2) step->width = 2;
  const bool wide = op == ReachOp::kMulWide || op == ReachOp::kMadWide;
  step->to_width = static_cast<uint8_t>(wide ? 2 * step->width : step->width);
  if (op == ReachOp::kCvt) step->to_width = static_cast<uint8_t>(2u << random->Below(3));
  for (unsigned k = 0; k < 4; ++k) widths[k] = step->width;
  if (op == ReachOp::kMadWide) widths[2] = step->to_width;
  if (op == ReachOp::kShl || op == ReachOp::kShr) widths[1] = 4;
}

TEST(ThreadRow, EachThreadOfARowGetsWhatItWouldAlone) {
  Random random;
  unsigned followed[std::size(kOps)] = {};
  for (int n = 0; n < 400000; ++n) {
    const size_t which = random.Below(std::size(kOps));
    ReachStep step;
    unsigned widths[4];
    Shape(kOps[which], &random, &step, widths);
    const uint64_t count = 1 + random.Below(70);
    RowValue from[4], to[2];
    for (unsigned k = 0; k < 4; ++k) {
      from[k] = random.Value(widths[k], count == 1 || random.Below(2) != 0);
    }
    if (!ComputeRow(step, from, count, to)) {
      ASSERT_GT(count, 1u);
      continue;
    }
    ASSERT_TRUE(to[0].known());
    followed[which] += !to[0].same();
    for (uint64_t k = 0; k < count; ++k) {
      uint64_t bits[4];
      for (unsigned j = 0; j < 4; ++j) bits[j] = InThread(from[j], k, widths[j]);
      const uint64_t alone = Cut(Compute(step, bits[0], bits[1], bits[2], bits[3]), step.to_width);
      ASSERT_EQ(InThread(to[0], k, step.to_width), alone)
          << "operation " << static_cast<int>(step.op) << " of width " << int{step.width};
    }
  }
  for (const ReachOp op : {ReachOp::kAdd, ReachOp::kMadWide, ReachOp::kCvt, ReachOp::kRem}) {
    EXPECT_GT(followed[static_cast<size_t>(op)], 20u);
  }
}

TEST(ThreadRow, ThreadsThatDisagreeInAComparisonAreSplit) {
  Random random;
  unsigned agreed = 0, split = 0;
  for (int n = 0; n < 400000; ++n) {
    ReachStep step;
    unsigned widths[4];
    Shape(ReachOp::kSetp, &random, &step, widths);
    step.to_width = 0;
    step.comparison = static_cast<Comparison>(random.Below(6));
    const uint64_t count = 1 + random.Below(70);
    RowValue from[4], to[2];
    for (unsigned k = 0; k < 2; ++k) from[k] = random.Value(step.width, count == 1);
    if (!ComputeRow(step, from, count, to)) {
      ++split;
      continue;
    }
    ++agreed;
    for (uint64_t k = 0; k < count; ++k) {
      const bool alone =
          Holds(InThread(from[0], k, step.width), InThread(from[1], k, step.width), step);
      ASSERT_EQ(to[0].bits != 0, alone);
      ASSERT_EQ(to[1].bits != 0, !alone);
    }
  }
  EXPECT_GT(agreed, 10000u);
  EXPECT_GT(split, 10000u);
}

TEST(ThreadRow, OfAPointerOnlyTheOffsetIsFollowed) {
  RowValue pointer, index, to[2];
  pointer.origin = 1;
  index.step = 4;
  ReachStep step;
  step.width = step.to_width = 8;
  const auto compute = [&](ReachOp op, const RowValue& a, const RowValue& b) {
    const RowValue from[4] = {a, b, {}, {}};
    step.op = op;
    EXPECT_TRUE(ComputeRow(step, from, 8, to));
    return to[0];
  };
  EXPECT_EQ(compute(ReachOp::kAdd, pointer, index).origin, 1);
  EXPECT_EQ(compute(ReachOp::kSub, pointer, index).step, -4);
  EXPECT_EQ(compute(ReachOp::kSub, pointer, pointer).origin, RowValue::kNumber);
  for (const ReachOp op : {ReachOp::kAnd, ReachOp::kMul, ReachOp::kShr, ReachOp::kXor}) {
    EXPECT_FALSE(compute(op, pointer, index).known());
  }
  EXPECT_FALSE(compute(ReachOp::kSub, index, pointer).known());
  EXPECT_FALSE(compute(ReachOp::kAdd, pointer, pointer).known());
}

}  // namespace
}  // namespace atp::ptx
